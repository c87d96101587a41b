"""A policy that remembers leaves with its papers: what it remembers goes in and comes out of its ONNX file."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime

from flipping import missed
from point_mass import PointMass
from spota import policies
from spota.deploy.onnx import OnnxController
from spota.policies import Architecture, architecture_of, fingerprint, new_network
from spota.policies.onnx_export import exported as built
from spota.policies.onnx_ours import PAPERS, papers_of, papers_sha256
from spota.runs import exporting
from spota.runs.onnx_verification import verify_file
from spota.sim.acting import followed
from spota.sim.effects import scale_and_clip

ENV = PointMass()
KINDS = {
    "two observations": Architecture((16, 16), 2),
    "a stack": Architecture((16, 16), 4),
    "a stack with a stride": Architecture((8,), 4, 3),
    "units": Architecture((16, 16), recurrent=8),
}


def lively(architecture: Architecture):
    """A network in which every number counts."""
    leaves, structure = jax.tree.flatten(new_network(jax.random.key(3), ENV, architecture))
    keys = jax.random.split(jax.random.key(4), len(leaves))
    moved = [x + 0.2 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(structure, moved)


PLACES = ((b"weight_1", b"bias_1"), (b"spota.contract", b"spota.certificate"))
"""Where bits are flipped: weights and contract."""
POLICIES = {name: lively(architecture) for name, architecture in KINDS.items()}


def sequences(n: int) -> np.ndarray:
    """Thirty steps of n rollouts; some observations lie outside of their sensor's range."""
    return np.random.default_rng(n).normal(size=(30, n, 2)).astype(np.float32)


def commands(policy, seen: np.ndarray) -> np.ndarray:
    """What we do ourselves, in physical units."""
    low, high = (tuple(getattr(s, end) for s in ENV.actions) for end in ("low", "high"))
    actions = followed(policy, jnp.asarray(seen.transpose(0, 2, 1)))
    return np.stack([np.asarray(scale_and_clip(action, low, high)).T for action in actions])


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    into = tmp_path_factory.mktemp("memory")
    return {
        name: exporting.export(policy, into / f"{name.replace(' ', '_')}.onnx", ENV)
        for name, policy in POLICIES.items()
    }


@pytest.mark.parametrize("n", [1, 500])
@pytest.mark.parametrize("name", KINDS)
def test_onnxruntime_remembers_what_we_remember(files, name, n):
    session = onnxruntime.InferenceSession(files[name])
    about = json.loads(session.get_modelmeta().custom_metadata_map["spota.contract"])["memory"]
    memory, found, seen = np.full((n, about["size"]), about["start"], np.float32), [], sequences(n)
    for now in seen:
        action, memory = session.run(["action", about["output"]], {"observation": now, about["input"]: memory})
        found.append(np.asarray(action))
    wanted = commands(POLICIES[name], seen)
    np.testing.assert_allclose(np.stack(found), wanted, atol=1e-6)
    afresh = commands(POLICIES[name], seen[-1:])  # as if nothing had been before
    assert np.abs(wanted[-1] - afresh[0]).max() > 1e-3


@pytest.mark.parametrize("name", KINDS)
def test_it_comes_back_as_the_same_policy(files, name):
    again = policies.find(files[name], ENV)
    assert fingerprint(again) == fingerprint(POLICIES[name]) and architecture_of(again) == KINDS[name]


@pytest.mark.parametrize("name", KINDS)
def test_it_is_intact_and_its_rollouts_repeat(files, name):
    found = verify_file(files[name], ENV)
    assert found.intact and found.skipped == ["There is no certificate in it."]
    assert "5 recorded rollouts, repeated" in found.checked and "parity with onnxruntime" in found.checked


@pytest.mark.parametrize("name", ["a stack with a stride", "units"])
def test_flipped_bits_are_noticed(files, tmp_path, name):
    assert missed(files[name], tmp_path, 30, PLACES) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_two_hundred_flipped_bits_are_noticed(files, tmp_path, name):
    assert missed(files[name], tmp_path, 200, PLACES) == 0


@pytest.mark.parametrize("change", [{"start": 1.0}, {"size": 3}, {"stride": 2}, {"observations": 5}, {"input": "m"}])
def test_another_word_about_the_memory_is_noticed(tmp_path, change):
    policy = POLICIES["a stack with a stride"]
    model = onnx.load_from_string(exporting.in_bytes(policy, None))
    papers = papers_of(model)
    contract = json.loads(papers["spota.contract"])
    papers["spota.contract"] = json.dumps({**contract, "memory": {**contract["memory"], **change}}, ensure_ascii=False)
    papers[PAPERS[-1]] = papers_sha256(papers)  # whoever does this knows our format
    path = tmp_path / "edited.onnx"
    path.write_bytes(built(policy, papers).SerializeToString(deterministic=True))
    with pytest.raises(ValueError, match="it was changed|no policy of ours"):
        policies.find(path, ENV)


@pytest.mark.parametrize("name", KINDS)
def test_on_a_machine_it_remembers_from_tick_to_tick_and_forgets_before_an_episode(files, name):
    act, into, seen = OnnxController(files[name]), np.zeros(1), sequences(1)
    wanted = commands(POLICIES[name], seen)[:, 0]
    for _ in range(2):
        act.reset()
        found = []
        for now in seen[:, 0]:
            act(now, into)
            found.append(into.copy())
        np.testing.assert_allclose(np.stack(found), wanted, atol=1e-6)


def test_a_memory_of_others_is_refused_in_words(files, tmp_path):
    model = onnx.load(files["units"])
    del model.metadata_props[:]
    path = tmp_path / "foreign.onnx"
    onnx.save(model, path)
    with pytest.raises(ValueError, match="'observation', 'memory'.*start and step"):
        policies.find(path, ENV)
