"""The NumPy Cart-Pole that Stable-Baselines3 is timed on is the same as ours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.numpy_cart_pole import CartPole, CartPoles, State

from spota.envs import make
from spota.policies import lqr
from spota.sim.rollout import watch

N = 12
ENV = make("cart-pole").with_effects(noise=None)
GAINS = np.asarray(lqr(ENV).gains, float)[0] / ENV.actions[0].high


@pytest.fixture(scope="module")
def ours():
    """Domains with delays, every other rail too short, and all steps of a controller there; without noise."""
    domains = ENV.domain.sample(jax.random.key(0), N)
    domains["rail_length"] = jnp.where(jnp.arange(N) % 2 == 0, 0.12, domains["rail_length"])
    steps = watch(ENV, lqr(ENV), domains, jax.random.split(jax.random.key(1), N))
    alive = np.asarray(steps.alive)
    assert alive[-1].any() and not alive[-1].all()  # so that failures are compared, too
    s = steps.state
    states = np.stack([np.asarray(v, float) for v in (s.x, s.alpha - np.pi, s.x_dot, s.alpha_dot)])
    return {name: np.asarray(v, float) for name, v in domains.items()}, states, np.asarray(steps.reward), alive


def test_side_by_side_they_move_earn_and_fail_like_ours(ours):
    domains, states, rewards, alive = ours
    world = CartPoles(domains, seed=0)
    world.state = State(*states[:, 0].copy())
    up = np.ones(N, bool)
    for t in range(ENV.max_steps):
        assert (up == alive[t]).all()
        np.testing.assert_allclose(np.stack(world.state)[:, up], states[:, t, up], atol=1e-4)
        earned, failed, over = world.step(GAINS @ np.stack(world.state))
        np.testing.assert_allclose(earned[up], rewards[t, up], atol=1e-4)
        up &= ~failed
    assert over.all()


def test_one_at_a_time_they_move_earn_and_fail_like_ours(ours):
    domains, states, rewards, alive = ours
    for i in (int(alive[-1].argmin()), int(alive[-1].argmax())):  # one that fails, one that survives
        world, last = CartPole({name: v[i] for name, v in domains.items()}, seed=0), int(alive[:, i].sum())
        world.state = State(*states[:, 0, i].tolist())
        for t in range(last):
            np.testing.assert_allclose(world.state, states[:, t, i], atol=1e-4)
            earned, failed, over = world.step(float(GAINS @ np.array(world.state)))
            assert earned == pytest.approx(rewards[t, i], abs=1e-4)
            assert failed == (t == last - 1 < ENV.max_steps - 1)
        assert failed or over


def test_noise_and_start_have_the_spread_of_ours():
    domains = {name: np.asarray(v, float) for name, v in ENV.domain.nominal(20_000).items()}
    world = CartPoles(domains, seed=1)
    starts = np.stack(world.state)
    np.testing.assert_allclose(np.abs(starts).max(axis=1), [0.02, np.deg2rad(8), 0.02, np.deg2rad(5)], rtol=1e-2)
    scale = [1 / max(-s.low, s.high) for s in ENV.observations]
    world.state = State(*np.zeros((4, 20_000)))
    noise = make("cart-pole").effects.noise
    assert noise is not None
    np.testing.assert_allclose(world.observe().std(axis=0), np.array(scale) * noise.std, rtol=3e-2)
