"""Any callable on NumPy arrays: the same rollouts as a compiled policy, on pure and on host environments."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spota
from host_point_mass import HostPointMass, PurePointMass
from spota.sim.host_policy import HostPolicy, ready

PURE, HOST = PurePointMass(), HostPointMass()
GAINS = np.array([[-1.2, -0.9]], np.float32)
DOMAINS = PURE.domain.sample(jax.random.key(0), 5)
KEYS = jax.random.split(jax.random.key(1), (5, 1))


def compiled(observation):
    return jnp.tensordot(jnp.asarray(GAINS), observation, 1) / 2


def side_by_side(observation):
    return np.asarray(GAINS @ np.asarray(observation)) / 2


def one_by_one(observation):
    force = float(GAINS[0] @ observation)
    if force > 2.0:  # no array can decide this
        force = 2.0
    return force / 2


@spota.policy(units="physical")
def newtons(observation):
    return GAINS @ np.asarray(observation)


@pytest.mark.parametrize("env", [PURE, HOST])
@pytest.mark.parametrize("policy", [side_by_side, one_by_one, newtons])
def test_a_function_in_numpy_earns_what_the_same_one_in_jax_does(env, policy):
    want = spota.returns(env, compiled, DOMAINS, KEYS)
    found = spota.returns(env, policy, DOMAINS, KEYS)
    np.testing.assert_allclose(found.returns, want.returns, rtol=1e-5)
    np.testing.assert_array_equal(found.survived, want.survived)


def test_trajectories_agree_and_stand_still_after_the_last_failure():
    for policy in (lambda o: jnp.ones((1, o.shape[1])) + 0 * o[:1], None):
        want = spota.collect(PURE, policy or compiled, DOMAINS, KEYS[:, 0])
        ours: Any = (lambda o: np.ones((1, o.shape[1]))) if policy else side_by_side
        found = spota.collect(PURE, ours, DOMAINS, KEYS[:, 0])
        for name in ("rewards", "alive", "survived", "last_observation"):
            np.testing.assert_allclose(getattr(found, name), getattr(want, name), atol=1e-5)
        assert bool(want.survived.all()) == (policy is None)


def test_what_runs_in_jax_stays_there_and_gets_its_units():
    assert ready(PURE, compiled) is compiled
    volts = ready(PURE, spota.policy(lambda o: 2 * compiled(o), units="physical"))
    assert not isinstance(volts, HostPolicy)
    seen = jnp.ones((2, 3))
    np.testing.assert_allclose(volts(seen), compiled(seen), rtol=1e-6)


def test_networks_of_one_kind_are_followed_by_jax_once():
    followed = []

    class Linear(eqx.Module):
        gains: jax.Array

        def __call__(self, observation):
            followed.append(self.gains.shape)
            return jnp.tensordot(self.gains, observation, 1)

    for scale in (1.0, 2.0):
        ready(HOST, Linear(jnp.asarray(scale * GAINS)))
    assert followed == [(1, 2)]
    with pytest.raises(ValueError, match="shape"):  # another kind
        ready(HOST, Linear(jnp.ones((3, 2))))


def test_one_by_one_where_side_by_side_would_mix_rollouts():
    def greedy(observation):
        return np.atleast_1d(np.asarray(observation).max(axis=0)) - np.asarray(observation).max()

    alone: Any = lambda o: greedy(o) if o.ndim == 1 else greedy(o)[None]  # noqa: E731
    together: Any = side_by_side
    assert ready(PURE, together).side_by_side and not ready(PURE, alone).side_by_side


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda _: np.zeros(5), "works neither in jax .* nor in NumPy: it returned an array of shape"),
        (lambda _: 1 / 0, "ZeroDivisionError: division by zero .test_host_policy.py, line"),
        (lambda o: np.random.normal(size=(1, o.shape[-1])), "two different answers to the same observation"),
    ],
)
def test_what_cannot_be_run_is_refused_in_plain_words(policy, message):
    with pytest.raises(ValueError, match=message):
        spota.returns(PURE, policy, DOMAINS, KEYS)
