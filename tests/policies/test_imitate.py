"""A network that imitates a controller, on a Cart-Pole that lives for a fifth of a second."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.envs.cart_pole import CartPole
from spota.policies import lqr
from spota.policies.imitate import _fit, imitate
from spota.policies.network import fnn


class ShortCartPole(CartPole):
    """A fifth of a second."""

    max_steps = 100


ENV = ShortCartPole()


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def imitation(told):
    return imitate(jax.random.key(0), ENV, lqr(ENV), rounds=3, steps=300, domains=12, watch=told.append)


def test_it_earns_what_the_original_earns(imitation):
    assert imitation.returns.shape == imitation.original_returns.shape == (12,)
    assert float(imitation.original_returns.mean()) > 40
    assert float(imitation.returns.mean()) == pytest.approx(float(imitation.original_returns.mean()), rel=0.1)


def test_it_does_what_the_original_does(imitation):
    rng = np.random.default_rng(0)
    observation = jnp.asarray(rng.uniform(-1, 1, (4, 500)) * [[0.02], [0.1], [0.05], [0.1]], jnp.float32)
    want = jnp.clip(lqr(ENV)(observation), -1, 1)
    assert float(jnp.corrcoef(imitation.policy(observation)[0], want[0])[0, 1]) > 0.97
    assert imitation.policy.hidden == (16, 16)
    assert float(imitation.error) < 0.15


def test_what_follows_a_failure_is_not_learnt():
    """Half of the actions are nonsense, but they come after a failure."""
    observations = jax.random.normal(jax.random.key(1), (4, 1000))
    alive = jnp.arange(1000) < 500
    actions = jnp.where(alive, 0.5, -1.0)[None]
    pupil, _ = _fit(
        jax.random.key(2),
        fnn(jax.random.key(3), ENV, (4,)),
        observations,
        actions,
        alive,
        steps=200,
        learning_rate=0.01,
    )
    np.testing.assert_allclose(pupil(observations), 0.5, atol=0.1)


def test_the_round_that_earns_most_is_kept_and_told(imitation, told):
    earned = [float(one.outcome.returns.mean()) for one in told]
    assert [one.number for one in told] == [1, 2, 3]
    assert [one.best for one in told] == list(np.maximum.accumulate(earned))
    best = told[int(np.argmax(earned))].policy
    jax.tree.map(np.testing.assert_array_equal, imitation.policy, best)


def test_zero_rounds_are_refused():
    with pytest.raises(ValueError, match="rounds=0"):
        imitate(jax.random.key(0), ENV, lqr(ENV), rounds=0)
