"""Advantages against the sums that they abbreviate."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spota.polopt.gae import advantages

T = 12


def episode(seed: int, ends: int | None):
    """Rewards and values of one rollout that fails after `ends` steps, or survives."""
    generator = np.random.default_rng(seed)
    steps = T if ends is None else ends
    alive = np.arange(T) < steps
    rewards, values = generator.normal(size=(2, T))
    return rewards * alive, values, float(generator.normal()), alive, ends is None


def by_gae(rewards, values, last, alive, survived, gamma, lam):
    r, v = (jnp.asarray(x, jnp.float32)[:, None] for x in (rewards, values))
    last_value, on = jnp.asarray([last], jnp.float32), jnp.asarray(alive)[:, None]
    return np.asarray(advantages(r, v, last_value, on, jnp.asarray([survived]), gamma, lam))[:, 0]


def by_sum(rewards, values, last, alive, survived, gamma, lam):
    """A_t = Σ_l (γλ)^l δ_{t+l}, written out for the steps that were taken."""
    steps = int(alive.sum())
    following = [*values[1:steps], last if survived else 0.0]
    deltas = [rewards[t] + gamma * following[t] - values[t] for t in range(steps)]
    sums = [sum((gamma * lam) ** k * deltas[t + k] for k in range(steps - t)) for t in range(steps)]
    return np.array(sums + [0.0] * (T - steps))


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    ends=st.none() | st.integers(1, T),
    gamma=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    lam=st.sampled_from([0.0, 0.3, 0.95, 1.0]),
)
def test_gae_equals_the_sum_it_abbreviates(seed, ends, gamma, lam):
    rollout = episode(seed, ends)
    np.testing.assert_allclose(by_gae(*rollout, gamma, lam), by_sum(*rollout, gamma, lam), atol=1e-4)


def test_lambda_zero_is_the_temporal_difference():
    rewards, values, last, alive, survived = episode(0, None)
    want = rewards + 0.9 * np.append(values[1:], last) - values
    np.testing.assert_allclose(by_gae(rewards, values, last, alive, survived, 0.9, 0.0), want, atol=1e-5)


@pytest.mark.parametrize("ends", [None, 7])
def test_lambda_one_is_the_return_minus_the_value(ends):
    rewards, values, last, alive, survived = episode(1, ends)
    rest = [sum(0.9 ** (k - t) * rewards[k] for k in range(t, T)) for t in range(T)]
    bootstrap = np.array([0.9 ** (T - t) * last * survived for t in range(T)])
    want = alive * (rest + bootstrap - values)
    np.testing.assert_allclose(by_gae(rewards, values, last, alive, survived, 0.9, 1.0), want, atol=1e-5)


def test_the_time_limit_bootstraps_and_a_failure_does_not():
    rewards, values, last, alive, _ = episode(2, None)
    truncated, failed = (by_gae(rewards, values, last, alive, survived, 0.9, 0.8) for survived in (True, False))
    np.testing.assert_allclose(truncated - failed, [0.9 * last * 0.72 ** (T - 1 - t) for t in range(T)], atol=1e-5)


def test_steps_that_were_not_taken_count_for_nothing():
    rewards, values, last, alive, survived = episode(3, 5)
    other = np.where(alive, values, 1e3)  # what a critic says about a frozen state
    result = by_gae(rewards, values, last, alive, survived, 0.99, 0.95)
    np.testing.assert_array_equal(result[5:], 0.0)
    np.testing.assert_array_equal(by_gae(rewards, other, 1e3, alive, survived, 0.99, 0.95), result)


def test_rollouts_side_by_side_do_not_mix():
    pair = [episode(4, None), episode(5, 6)]
    r, v = (jnp.stack([jnp.asarray(e[i], jnp.float32) for e in pair], axis=1) for i in (0, 1))
    last, alive = jnp.asarray([e[2] for e in pair], jnp.float32), jnp.stack([jnp.asarray(e[3]) for e in pair], axis=1)
    both = advantages(r, v, last, alive, jnp.asarray([e[4] for e in pair]), 0.99, 0.95)
    for i, one in enumerate(pair):
        np.testing.assert_allclose(both[:, i], by_gae(*one, 0.99, 0.95), atol=1e-6)
