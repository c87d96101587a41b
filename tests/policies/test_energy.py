from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.envs import make
from spota.envs.cart_pole import CartPoleSwingUp
from spota.envs.qube import QubeSwingUp
from spota.policies.energy import energy
from spota.sim import rollout

NOMINAL, RANDOM = 16, 184


@dataclass(frozen=True, eq=False)
class LongCartPole(CartPoleSwingUp):
    max_steps = 8000


@dataclass(frozen=True, eq=False)
class LongQube(QubeSwingUp):
    max_steps = 8000


@dataclass(frozen=True, eq=False)
class Swings:
    """Tilts from upright, hand-overs and survival [T, n]; the first domains are nominal, the others random."""

    share: float
    tilt: np.ndarray
    held: np.ndarray
    alive: np.ndarray

    def balanced(self, first: int, last: int) -> np.ndarray:
        return (self.tilt[first:last] < 0.2).all(0) & self.alive[last - 1]


@pytest.fixture(scope="module", params=[(LongCartPole(), 0.68), (LongQube(), 0.8)], ids=["cart-pole", "qube"])
def swings(request):
    """16 s from hanging at rest, with noise."""
    env, share = request.param  # of random domains; 74 % and 87 % of 500 were measured
    nominal, random = env.domain.nominal(NOMINAL), env.domain.sample(jax.random.key(0), RANDOM)
    domains = {name: jnp.concatenate([nominal[name], random[name]]) for name in nominal}
    policy = energy(env)
    steps = rollout.watch(env, policy, domains, jax.random.split(jax.random.key(1), NOMINAL + RANDOM))
    tilt = np.abs((np.asarray(steps.state.alpha) % (2 * np.pi)) - np.pi)
    return Swings(share, tilt, np.asarray(jax.vmap(policy.holds)(steps.observation)), np.asarray(steps.alive))


def test_the_nominal_pole_stands_before_the_time_limit(swings):
    assert swings.balanced(3500, 4000)[:NOMINAL].all()


def test_the_nominal_pole_stands_for_another_8_seconds(swings):
    assert swings.balanced(4000, 8000)[:NOMINAL].all()


def test_the_hand_over_does_not_chatter(swings):
    """Noise at the border may flicker for a moment; a pole that stands is left to the regulator."""
    changes = (swings.held[1:4000] != swings.held[:3999]).sum(0)
    assert changes[:NOMINAL].max() <= 40
    assert swings.held[2000:, :NOMINAL].all()


def test_most_random_domains_are_swung_up(swings):
    assert swings.balanced(3500, 4000)[NOMINAL:].mean() >= swings.share


@pytest.mark.parametrize("name", ["cart-pole", "qube"])
def test_it_balances_like_the_regulator_that_it_hands_over_to(name):
    env = make(name)
    policy = energy(env)
    upright = jax.random.uniform(jax.random.key(0), (4, 50), minval=-0.05, maxval=0.05)
    assert policy.holds(upright).all()
    np.testing.assert_allclose(policy(upright), jnp.clip(policy.balance(upright), -1, 1))


@pytest.mark.parametrize("name", ["cart-pole-swing-up", "qube-swing-up"])
def test_actions_are_bounded_mirrored_and_elementwise(name):
    policy = energy(make(name))
    observation = jax.random.normal(jax.random.key(0), (4, 6, 5)) * jnp.array([0.3, 2.0, 1.0, 9.0])[:, None, None]
    action = policy(observation)
    assert action.shape == (1, 6, 5)
    assert np.abs(action).max() <= 1
    np.testing.assert_allclose(policy(-observation), -action, atol=1e-6)
    np.testing.assert_allclose(policy(observation[:, 2, 3]), action[:, 2, 3], atol=1e-5)


@pytest.mark.parametrize("name", ["cart-pole-swing-up", "qube-swing-up"])
def test_a_pole_that_hangs_still_is_set_in_motion(name):
    policy = energy(make(name))
    assert abs(policy(jnp.array([0.0, jnp.pi, 0.0, 0.0]))[0]) > 0.1
    assert policy.energy(jnp.array(jnp.pi), jnp.array(0.0)) == pytest.approx(-2)
    assert policy.energy(jnp.array(0.0), jnp.array(0.0)) == 0


@pytest.mark.parametrize("name", ["ball-balancer", "catapult"])
def test_platforms_without_a_pole_are_refused(name):
    with pytest.raises(ValueError, match=f"not for {name}"):
        energy(make(name))
