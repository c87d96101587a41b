"""Rollouts: synchronised seeds, batches, failure, devices, and bad input."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.envs import make
from spota.policies import fnn, lqr, pd
from spota.sim import devices, rollout
from spota.sim.effects import ActionDelay, ObservationNoise

ENV = make("ball-balancer")
DOMAINS = ENV.domain.sample(jax.random.key(0), 40)
KEYS = jax.random.split(jax.random.key(1), (40, 1))


class Push(eqx.Module):
    """A constant action."""

    action: float

    def __call__(self, observation):
        return jnp.full((2, *observation.shape[1:]), self.action)


@pytest.fixture(scope="module")
def good():
    return rollout.collect(ENV, pd(ENV), DOMAINS, KEYS[:, 0])


@pytest.fixture(scope="module")
def bad():
    return rollout.collect(ENV, Push(1.0), DOMAINS, KEYS[:, 0])


def test_two_policies_start_alike_and_see_the_same_noise_whatever_happens(good, bad):
    assert not bad.survived.any()
    np.testing.assert_array_equal(good.observations[0], bad.observations[0])
    still, moving = (
        rollout.watch(ENV.with_effects(delay=ActionDelay(longest=30)), p, DOMAINS, KEYS[:, 0])
        for p in (Push(1.0), pd(ENV))
    )
    noise = [
        np.asarray(w.observation) - np.stack([np.asarray(leaf) for leaf in jax.tree.leaves(w.state)], axis=1)
        for w in (still, moving)
    ]
    assert not still.alive[-1].any()
    np.testing.assert_allclose(noise[0], noise[1], atol=2e-6)
    assert noise[0].std() > 0


def test_failure_ends_the_reward_and_the_motion(bad):
    alive, rewards = np.asarray(bad.alive), np.asarray(bad.rewards)
    assert (rewards[~alive] == 0).all()
    assert (rewards[alive] > 0).all()
    assert (np.diff(alive.astype(int), axis=0) <= 0).all()
    watched = rollout.watch(ENV, Push(1.0), DOMAINS, KEYS[:, 0])
    np.testing.assert_array_equal(watched.state.x[-1], watched.state.x[-2])


def test_returns_are_the_sums_of_the_collected_rewards(good):
    outcome = rollout.returns(ENV, pd(ENV), DOMAINS, KEYS)
    np.testing.assert_allclose(outcome.returns[:, 0], good.rewards.sum(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(outcome.survived[:, 0], good.survived)


def test_return_of_a_domain_is_the_same_alone_and_in_a_batch_of_1000():
    domains, keys = ENV.domain.sample(jax.random.key(5), 1000), jax.random.split(jax.random.key(6), (1000, 1))
    many = rollout.returns(ENV, pd(ENV), domains, keys).returns
    for i in (0, 137, 999):
        one = rollout.returns(ENV, pd(ENV), {k: v[i : i + 1] for k, v in domains.items()}, keys[i : i + 1]).returns
        np.testing.assert_allclose(one[0, 0], many[i, 0], rtol=1e-4)


def test_chunks_and_devices_change_nothing(monkeypatch):
    whole = rollout.returns(ENV, pd(ENV), DOMAINS, KEYS).returns
    monkeypatch.setattr(rollout, "CHUNK", 7)
    np.testing.assert_allclose(rollout.returns(ENV, pd(ENV), DOMAINS, KEYS).returns, whole, rtol=1e-4)
    one = jax.devices()[:1]
    monkeypatch.setattr(devices.jax, "devices", lambda: one)
    np.testing.assert_allclose(rollout.returns(ENV, pd(ENV), DOMAINS, KEYS).returns, whole, rtol=1e-4)


def test_rollouts_of_one_domain_differ_by_start_and_noise():
    keys = jax.random.split(jax.random.key(2), (1, 8))
    values = np.asarray(rollout.returns(ENV, pd(ENV), ENV.domain.nominal(), keys).returns)
    assert values.shape == (1, 8)
    assert len(np.unique(values)) == 8


def test_time_limit_is_no_failure(good):
    assert good.alive[-1].sum() == good.survived.sum()
    assert good.survived.mean() > 0.9
    assert good.last_observation.shape == (8, 40)


def test_an_environment_can_wear_other_effects():
    quiet = ENV.with_effects(noise=None)
    watched = rollout.watch(quiet, pd(ENV), DOMAINS, KEYS[:, 0])
    np.testing.assert_array_equal(watched.observation[:, 2], watched.state.x)
    with pytest.raises(ValueError, match="8 signals"):
        ENV.with_effects(noise=ObservationNoise((0.1, 0.1)))


def test_nan_actions_are_named():
    with pytest.raises(ValueError, match="NaN in the policy's actions"):
        rollout.returns(ENV, Push(float("nan")), DOMAINS, KEYS)


def test_one_nan_among_good_policies_is_found():
    broken = eqx.tree_at(lambda p: p.biases[-1], fnn(jax.random.key(0), ENV), jnp.array([0.0, jnp.nan]))
    with pytest.raises(ValueError, match="domain 0"):
        rollout.returns(ENV, broken, DOMAINS, KEYS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ball_mass": jnp.full(40, -0.1)}, "ball_mass = -0.1 kg in domain 0: must be positive"),
        ({"action_delay": jnp.full(40, 31.0)}, "longest_delay=31"),
        ({"gravity": jnp.full(40, jnp.inf)}, "gravity"),
        ({"gravity": jnp.ones(3)}, "differ in length"),
    ],
)
def test_impossible_domains_are_refused_before_anything_runs(change, message):
    with pytest.raises(ValueError, match=message):
        rollout.returns(ENV, pd(ENV), {**DOMAINS, **change}, KEYS)


def test_longer_delay_is_possible_when_asked_for():
    env = make("cart-pole", longest_delay=40)
    domains = env.domain.grid("action_delay", [0.0, 10.0, 40.0])
    outcome = rollout.returns(env, lqr(env), domains, jax.random.split(jax.random.key(0), (3, 4)))
    assert outcome.survived[0].all()
    assert outcome.returns[2].mean() < outcome.returns[0].mean()
