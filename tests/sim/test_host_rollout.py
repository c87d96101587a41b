"""Host environments run like pure ones: same noise, delay and dead band, same returns, alone and in a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from host_point_mass import HostPointMass, Masses, PurePointMass
from spota.policies import fnn, lqr
from spota.sim import rollout
from spota.sim.host_groups import pieces

N = 40


@pytest.fixture(scope="module")
def drawn():
    env = HostPointMass()
    domains = env.domain.sample(jax.random.key(1), N)
    return fnn(jax.random.key(0), env), domains, jax.random.split(jax.random.key(2), N)


def swing(observation):
    """Failing on some domains: it pushes away."""
    return 0.15 * jnp.sign(observation[:1])


def test_returns_are_those_of_the_same_physics_compiled(drawn):
    _, domains, keys = drawn
    for policy in (drawn[0], swing):
        mine = rollout.returns(HostPointMass(), policy, domains, keys[:, None], discount=0.97)
        same = rollout.returns(PurePointMass(), policy, domains, keys[:, None], discount=0.97)
        np.testing.assert_allclose(mine.returns, same.returns, rtol=1e-5)
        np.testing.assert_array_equal(mine.survived, same.survived)
    assert 0 < mine.survived.mean() < 1


def test_trajectories_are_those_of_the_same_physics_compiled(drawn):
    _, domains, keys = drawn
    mine, same = (rollout.collect(env, swing, domains, keys) for env in (HostPointMass(), PurePointMass()))
    alive = np.asarray(same.alive)
    np.testing.assert_array_equal(mine.alive, alive)
    np.testing.assert_allclose(mine.rewards, same.rewards, rtol=1e-5)
    for name in ("observations", "actions"):
        a, b = (np.moveaxis(np.asarray(getattr(x, name)), 1, -1)[alive] for x in (mine, same))
        np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(mine.last_observation, same.last_observation, atol=1e-5)
    stood = np.asarray(rollout.watch(HostPointMass(), swing, domains, keys).state)
    assert stood.shape == (20, 2, N) and np.abs(stood[0, 0] - 0.3).max() < 1e-6


def test_a_rollout_is_the_same_alone_and_in_a_batch_and_in_pieces(drawn):
    policy, domains, keys = drawn
    env = HostPointMass(spread=0.5)
    together = rollout.returns(env, policy, domains, keys[:, None]).returns
    pieced = rollout.returns(HostPointMass(spread=0.5, at_once=7), policy, domains, keys[:, None]).returns
    alone = [
        rollout.returns(env, policy, {n: c[i : i + 1] for n, c in domains.items()}, keys[i : i + 1, None])
        for i in (0, 17)
    ]
    np.testing.assert_array_equal(together, pieced)
    np.testing.assert_allclose([a.returns[0, 0] for a in alone], together[np.array([0, 17]), 0], rtol=1e-6)
    assert len(set(np.asarray(together)[:, 0].tolist())) == N  # every machine has a start of its own


@pytest.mark.parametrize(("policies", "rollouts", "at_once"), [(1, 40, 7), (3, 10, 9), (20, 5, 64), (5, 4, 1)])
def test_pieces_hold_every_rollout_once_and_have_one_shape(policies, rollouts, at_once):
    found = list(pieces(HostPointMass(at_once=at_once), policies, rollouts))
    assert np.concatenate([index[:size] for index, size in found]).tolist() == list(range(rollouts))
    assert len({index.size for index, _ in found}) == 1
    assert found[0][0].size == 1 or policies * found[0][0].size <= at_once


def test_nan_of_the_physics_is_a_failure(drawn):
    policy, domains, keys = drawn
    seen = rollout.collect(HostPointMass(diverges_at=5), policy, domains, keys)
    heavy = np.asarray(domains["mass"]) > 1
    assert heavy.any() and not np.asarray(seen.survived)[heavy].any()
    assert np.asarray(seen.alive)[:5].all() and not np.asarray(seen.alive)[5:, heavy].any()
    assert np.isfinite(seen.observations).all() and not np.asarray(seen.rewards)[5:, heavy].any()


def test_nan_of_the_policy_is_an_error(drawn):
    _, domains, keys = drawn
    with pytest.raises(ValueError, match="host-point-mass is not a number.*NaN in the policy"):
        rollout.returns(HostPointMass(), lambda o: o[:1] * jnp.nan, domains, keys[:, None])


def test_a_simulator_that_raises_is_told_with_its_domain_and_closed(drawn, monkeypatch):
    policy, domains, keys = drawn
    closed = []
    monkeypatch.setattr(Masses, "close", lambda self: closed.append(self.mass.size))
    env = HostPointMass(tears_above=1.3)
    heavy = int(np.argmax(np.asarray(domains["mass"]) > 1.3))
    with pytest.raises(ValueError, match=rf"host-point-mass broke on domain {heavy} \(mass=1\.\d+,.*rope is torn"):
        rollout.returns(env, policy, domains, keys[:, None])
    assert closed == [N]


def test_what_needs_gradients_says_so():
    with pytest.raises(ValueError, match="host-point-mass is simulated outside of jax.*--solver ppo"):
        rollout.pure(HostPointMass())
    with pytest.raises(ValueError, match="no equilibrium"):
        lqr(HostPointMass())
