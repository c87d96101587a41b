"""Our Cart-Pole as a Gymnasium environment is our Cart-Pole: trajectories, and what a controller earns there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("gymnasium")

import quanser_gym
import spota
from spota.policies import lqr
from spota.sim.rollout import watch

OURS = quanser_gym.OURS
N, STEPS = 6, 200  # without feedback an upright pole doubles the rounding every 40 steps


def test_the_same_domains_and_commands_give_the_same_trajectories():
    quiet = OURS.with_effects(noise=None)
    domains = OURS.domain.sample(jax.random.key(0), N)
    domains["rail_length"] = jnp.where(jnp.arange(N) < 2, 0.12, domains["rail_length"])  # two fail at once
    steps = watch(quiet, lqr(quiet), domains, jax.random.split(jax.random.key(1), N))
    state, alive = steps.state, np.asarray(steps.alive)
    ours = np.stack([state.x, state.alpha - np.pi, state.x_dot, state.alpha_dot], axis=1)
    env = quanser_gym.single(ours[0].T.astype(float))
    machines = env.open({n: np.asarray(c, float) for n, c in domains.items()}, np.arange(N, dtype=np.uint32))
    up = np.ones(N, bool)
    for t in range(STEPS):
        assert (up == alive[t]).all()
        np.testing.assert_allclose(machines.observe()[:, up], ours[t][:, up], atol=3e-4)
        earned, failed = machines.step(np.asarray(steps.command[t], np.float32), up)
        np.testing.assert_allclose(earned[up], steps.reward[t][up], atol=3e-4)
        up = up & ~failed
    assert up.any() and not up.all()  # both were compared


@pytest.mark.slow
def test_lqr_earns_the_same_on_500_domains():
    env, policy = quanser_gym.many(), lqr(OURS)
    domains, keys = OURS.domain.sample(jax.random.key(2), 500), jax.random.split(jax.random.key(3), (500, 1))
    ours, theirs = (np.asarray(spota.returns(e, policy, domains, keys).returns) for e in (OURS, env))
    assert theirs.mean() == pytest.approx(ours.mean(), rel=0.01)
    assert np.corrcoef(ours[:, 0], theirs[:, 0])[0, 1] > 0.8  # the domain decides, and each has its own


def test_it_is_sound():
    found = spota.check(quanser_gym.many())
    assert found.sound, found
