"""Networks that remember: what they read, their files, and a network as part of one that remembers more."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from point_mass import PointMass
from spota import policies
from spota.policies import Architecture, Recurrent, Stacked, architecture_of, fingerprint, new_network
from spota.policies.architecture import holds, widened
from spota.policies.imitate import imitate
from spota.sim.acting import followed

ENV = PointMass()
SEEN = jax.random.normal(jax.random.key(1), (9, 2, 5))
"""Nine steps of two signals in five rollouts; some lie outside of their sensor's range."""
STACK, UNITS = Architecture((4,), 3, 2), Architecture((4,), recurrent=3)


def lively(architecture: Architecture, key: int = 0):
    """A network in which every number counts."""
    leaves, structure = jax.tree.flatten(new_network(jax.random.key(key), ENV, architecture))
    keys = jax.random.split(jax.random.key(9), len(leaves))
    moved = [x + 0.4 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(structure, moved)


def actions(policy) -> np.ndarray:
    """What it does in nine steps."""
    return np.asarray(followed(policy, SEEN))


def layers(policy, x):
    for weight, bias in zip(policy.weights, policy.biases, strict=True):
        x = np.tanh(np.asarray(weight) @ x + np.asarray(bias)[:, None])
    return x


def test_a_stack_reads_what_was_seen_and_done_at_its_pace():
    policy = lively(STACK)
    scaled = np.clip(np.asarray(SEEN) / np.array([1.0, 2.0])[:, None], -1, 1)
    zeros, done = np.zeros((3, 5)), []
    for t in range(9):
        older = [zeros if t < k else np.concatenate([scaled[t - k], done[t - k]]) for k in (2, 4)]
        done.append(layers(policy, np.concatenate([scaled[t], *older])))
    np.testing.assert_allclose(actions(policy), np.stack(done), atol=1e-5)


def test_units_follow_with_their_own_lags():
    policy = lively(UNITS)
    scaled = np.clip(np.asarray(SEEN) / np.array([1.0, 2.0])[:, None], -1, 1)
    z, last, done = np.zeros((3, 5)), np.zeros((1, 5)), []
    share = 1 / (1 + np.exp(-np.asarray(policy.cell_share)))[:, None]
    for now in scaled:
        goal = np.tanh(np.asarray(policy.cell) @ np.concatenate([now, last, z]) + np.asarray(policy.cell_bias)[:, None])
        z = z + share * (goal - z)
        last = layers(policy, np.concatenate([now, z]))
        done.append(last)
    np.testing.assert_allclose(actions(policy), np.stack(done), atol=1e-5)


@pytest.mark.parametrize("architecture", [STACK, UNITS])
def test_a_new_memory_does_nothing_yet_but_can_learn(architecture):
    plain, new = (new_network(jax.random.key(0), ENV, a) for a in (Architecture((4,)), architecture))
    np.testing.assert_allclose(actions(new), actions(plain), atol=1e-6)
    slope = jax.grad(lambda p: followed(p, SEEN).sum())(new)
    assert np.abs(slope.weights[0][:, 2:]).max() > 0


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (Architecture((3,)), Architecture((5,), 4, 2)),
        (Architecture((3,)), Architecture((3,), recurrent=2)),
        (STACK, Architecture((6,), 5, 2)),
        (UNITS, Architecture((6,), recurrent=5)),
    ],
)
def test_a_network_is_part_of_one_that_remembers_more(small, large):
    policy = lively(small)
    wide = widened(policy, new_network(jax.random.key(5), ENV, large))
    assert architecture_of(wide) == large
    np.testing.assert_allclose(actions(wide), actions(policy), atol=1e-6)
    assert not holds(small, large)
    with pytest.raises(ValueError, match="does not fit"):
        widened(wide, policy)


def test_kinds_of_memory_do_not_mix():
    assert not holds(UNITS, STACK) and not holds(STACK, UNITS)
    assert not holds(Architecture((4,), 8, 1), STACK)  # another pace


@pytest.mark.parametrize("architecture", [STACK, UNITS])
def test_files_give_back_the_same_policy(tmp_path, architecture):
    policy = lively(architecture)
    again = policies.find(policy.save(tmp_path / "p.npz"), ENV)
    assert type(again) is type(policy) and fingerprint(again) == fingerprint(policy)
    assert architecture_of(again) == architecture
    np.testing.assert_array_equal(actions(again), actions(policy))
    with np.load(tmp_path / "p.npz", allow_pickle=False) as archive:
        assert json.loads(str(archive["about"]))["format"] == 3


def test_the_pace_of_a_stack_is_part_of_its_identity():
    policy = lively(STACK)
    other = Stacked(policy.weights, policy.biases, policy.contract, policy.memory, 1)
    assert fingerprint(other) != fingerprint(policy)


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = lively(STACK).save(tmp_path / "p.npz")
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    about = json.loads(str(arrays.pop("about")))

    def refused(words: str, kept=arrays, **changes):
        told = {name: value for name, value in {**about, **changes}.items() if value is not None}
        np.savez(path, about=np.array(json.dumps(told)), **kept)
        with pytest.raises(ValueError, match=words):
            policies.load(path)

    refused("it has no stride", stride=None)
    refused("1000 are remembered at most", memory=3, stride=1000)
    refused("memory is 100000, which is out of range", memory=100_000)
    refused("are no Stacked", memory=4)
    refused("changed after it was written", stride=1)
    refused("which is not a Recurrent", kind="Recurrent")
    units = lively(UNITS)
    cell = {f"array_{i}": np.asarray(a) for i, a in enumerate((units.cell, units.cell_bias, units.cell_share))}
    more = {f"array_{i + 3}": array for i, array in enumerate(arrays.values())}
    refused("are no Recurrent", {**cell, **more}, kind="Recurrent")
    refused("are no Recurrent", {**cell, **more, "array_1": np.ones((3, 3))}, kind="Recurrent")


def test_what_is_no_memory_is_refused():
    for wrong, words in (
        ({"memory": 0}, "from 1 to 1000"),
        ({"recurrent": -1}, "from 0 to 1000"),
        ({"memory": 3, "recurrent": 4}, "one kind of memory"),
        ({"memory": 300, "stride": 4}, "1196 steps"),
    ):
        with pytest.raises(ValueError, match=words):
            Architecture((16, 16), **wrong)


class Mean(eqx.Module):
    """Acts on the mean of the last two positions."""

    def start(self, n):
        return jnp.zeros(n)

    def step(self, last, observation):
        return observation[0], -0.4 * (observation[0] + last)[None]


@pytest.mark.slow
def test_a_stack_imitates_what_a_single_observation_cannot_show():
    plain, stacked = (
        imitate(jax.random.key(0), ENV, Mean(), architecture, rounds=2, steps=400, domains=12)
        for architecture in (Architecture((8,)), Architecture((8,), 2))
    )
    assert isinstance(stacked.policy, Stacked)
    assert float(stacked.error) < 0.5 * float(plain.error)
    units = imitate(jax.random.key(0), ENV, Mean(), Architecture((8,), recurrent=2), rounds=1, steps=5, domains=2)
    assert isinstance(units.policy, Recurrent) and units.policy.units == 2
