"""Policies with memory in rollouts: a state from the start of an episode on, the same on pure and on host platforms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from host_point_mass import HostPointMass, PurePointMass
from point_mass import PointMass
from spota.policies import Architecture, fnn, new_network
from spota.sim import rollout
from spota.sim.acting import remembers
from spota.sim.checks import check_policy

N = 7


class Integral(eqx.Module):
    """A proportional controller with integral action, and a count of the steps that it has seen."""

    k_p: float = 0.5
    k_i: float = 0.3

    def start(self, n):
        return {"sum": jnp.zeros(n), "steps": jnp.zeros(n, jnp.int32)}

    def step(self, state, observation):
        total = state["sum"] + observation[0]
        action = -self.k_p * observation[:1] - self.k_i * total[None]
        return {"sum": total, "steps": state["steps"] + 1}, action


@pytest.fixture(scope="module")
def drawn():
    domains = HostPointMass().domain.sample(jax.random.key(1), N)
    return domains, jax.random.split(jax.random.key(2), N)


def test_actions_are_those_of_a_loop_by_hand(drawn):
    domains, keys = drawn
    seen = rollout.collect(PurePointMass(), Integral(), domains, keys)
    observed = np.asarray(seen.observations)[:, 0]
    want = -0.5 * observed - 0.3 * np.cumsum(observed, axis=0)
    np.testing.assert_allclose(np.asarray(seen.actions)[:, 0], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("architecture", [None, Architecture((4,), 3, 2), Architecture((4,), recurrent=3)])
def test_host_and_pure_platforms_agree(drawn, architecture):
    domains, keys = drawn
    policy = Integral() if architecture is None else _lively(new_network(jax.random.key(0), PointMass(), architecture))
    mine, same = (rollout.collect(env, policy, domains, keys) for env in (HostPointMass(), PurePointMass()))
    np.testing.assert_array_equal(mine.alive, same.alive)
    np.testing.assert_allclose(mine.rewards, same.rewards, rtol=1e-4)
    alive = np.asarray(same.alive)  # the host stops when all have failed
    a, b = (np.moveaxis(np.asarray(x.actions), 1, -1)[alive] for x in (mine, same))
    np.testing.assert_allclose(a, b, atol=1e-4)
    total = rollout.returns(HostPointMass(), policy, domains, keys[:, None]).returns[:, 0]
    np.testing.assert_allclose(total, np.asarray(same.rewards).sum(axis=0), rtol=1e-4)


def test_a_rollout_remembers_nothing_of_its_neighbours(drawn):
    domains, keys = drawn
    policy = _lively(new_network(jax.random.key(0), PointMass(), Architecture((4,), 3)))
    together = rollout.collect(PurePointMass(), policy, domains, keys)
    last = {name: column[-1:] for name, column in domains.items()}
    alone = rollout.collect(PurePointMass(), policy, last, keys[-1:])
    np.testing.assert_allclose(alone.actions[..., 0], together.actions[..., -1], rtol=1e-5, atol=1e-6)


def test_a_policy_without_memory_carries_none(drawn):
    domains, keys = drawn
    policy = fnn(jax.random.key(0), PointMass(), (4,))
    assert not remembers(policy) and remembers(Integral()) and not remembers(Integral)
    world = rollout.begin(PurePointMass(), rollout.acting_with(policy), domains, keys)
    assert jax.tree.leaves(world.memory) == []


def test_a_memory_that_does_not_fit_is_refused():
    class Flat(Integral):
        def start(self, n):
            return {"sum": jnp.zeros(()), "steps": jnp.zeros(n, jnp.int32)}

    class Turning(Integral):
        def step(self, state, observation):
            state, action = super().step(state, observation)
            return {**state, "steps": 1.0 * state["steps"]}, action

    class Forgetful(Integral):
        def step(self, state, observation):
            return (), super().step(state, observation)[1]

    env = PointMass()
    for wrong, words in ((Flat(), "last axis must be the rollouts"), (Turning(), "let both return the same"),
                         (Forgetful(), "the same kind of state")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            check_policy(env, wrong)


def _lively(policy):
    """Every number other than zero, so that every part of it counts."""
    leaves, structure = jax.tree.flatten(policy)
    keys = jax.random.split(jax.random.key(9), len(leaves))
    return jax.tree.unflatten(
        structure, [x + 0.4 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys, strict=True)]
    )
