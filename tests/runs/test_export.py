"""A policy leaves with its papers: the same actions in onnxruntime, and whatever is changed is noticed."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("cryptography")

import onnxruntime
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flipping import missed
from point_mass import PointMass, regulator
from spota import policies
from spota.certify.certificate import Certificate, table_sha256
from spota.policies.onnx_limits import parse_model
from spota.policies.onnx_ours import PAPERS, papers_of, papers_sha256
from spota.runs import exporting, signing
from spota.runs.onnx_verification import verify_file
from spota.sim.effects import scale_and_clip

ENV = PointMass()
NETWORK, LINEAR = regulator(ENV), policies.lqr(ENV)
DEEP = jax.tree.map(lambda x: 3.0 * x, policies.fnn(jax.random.key(5), ENV, (16, 16)))
DATA = Path(__file__).parent.parent / "data"
PLACES = (
    (b"weight_1", b"bias_2"),
    (b"spota.contract", b"spota.certificate"),
    (b"spota.certificate", b"spota.rollouts"),
)
"""Where bits are flipped: weights, contract, certificate."""


def certificate(policy=NETWORK) -> Certificate:
    found = Certificate.from_dict(json.loads((DATA / "certificate-format-1.json").read_text()))
    sha256 = {"policy_sha256": policies.fingerprint(policy), "domain_sha256": table_sha256(found.domain)}
    return replace(found, env=ENV.name, **sha256)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    return exporting.export(NETWORK, tmp_path_factory.mktemp("out") / "policy.onnx", ENV, certificate())


def commands(policy, observation: np.ndarray) -> np.ndarray:
    low, high = (tuple(getattr(s, end) for s in ENV.actions) for end in ("low", "high"))
    return np.asarray(scale_and_clip(policy(jnp.asarray(observation.T)), low, high)).T


@pytest.mark.parametrize("policy", [NETWORK, DEEP, LINEAR])
def test_onnxruntime_does_what_we_do_in_physical_units(tmp_path, policy):
    path = exporting.export(policy, tmp_path / "p.onnx", None)
    session = onnxruntime.InferenceSession(path)
    for n in (1, 10_000):
        seen = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32)
        found = np.asarray(session.run(["action"], {"observation": seen})[0])
        np.testing.assert_allclose(found, commands(policy, seen), atol=1e-6)
    assert np.abs(found).max() > 0.05


def test_it_comes_back_as_the_same_policy(exported):
    again = policies.find(exported, ENV)
    assert policies.fingerprint(again) == policies.fingerprint(NETWORK)
    assert policies.fingerprint(policies.find(exporting.export(LINEAR, exported.with_name("l.onnx"), ENV), ENV)) == (
        policies.fingerprint(LINEAR)
    )


def test_the_papers_are_readable_without_us(exported):
    papers = onnxruntime.InferenceSession(exported).get_modelmeta().custom_metadata_map
    assert json.loads(papers["spota.contract"])["dt"] == ENV.dt
    assert json.loads(papers["spota.certificate"]) == certificate().to_dict()


def test_an_exported_policy_is_intact_and_its_rollouts_repeat(exported):
    found = verify_file(exported, ENV)
    assert found.intact and not found.skipped
    assert "5 recorded rollouts, repeated" in found.checked and "parity with onnxruntime" in found.checked


def test_flipped_bits_are_noticed(exported, tmp_path):
    assert missed(exported, tmp_path, 60, PLACES) == 0


@pytest.mark.slow
def test_a_thousand_flipped_bits_are_noticed(exported, tmp_path):
    assert missed(exported, tmp_path, 1000, PLACES) == 0


def test_the_papers_of_another_policy_are_noticed(exported, tmp_path):
    other = policies.fnn(jax.random.key(1), ENV, (2,))
    with pytest.raises(ValueError, match="belongs to another policy"):
        exporting.in_bytes(other, None, certificate())
    model = parse_model(exporting.in_bytes(other, None))
    papers = papers_of(model) | {
        "spota.certificate": papers_of(parse_model(exported.read_bytes()))["spota.certificate"]
    }
    papers[PAPERS[-1]] = papers_sha256(papers)  # whoever does this knows our format
    from spota.policies.onnx_export import exported as built

    path = tmp_path / "swapped.onnx"
    path.write_bytes(built(other, papers).SerializeToString(deterministic=True))
    assert "The certificate belongs to another policy." in verify_file(path).wrong


def test_bytes_that_a_reader_ignores_are_noticed(exported, tmp_path):
    path = tmp_path / "more.onnx"
    path.write_bytes(exported.read_bytes() + b"\xba\x3e\x02hi")  # a field that nobody knows
    assert any("would not write" in wrong for wrong in verify_file(path).wrong)


def test_a_foreign_file_has_no_papers():
    (wrong,) = verify_file(DATA / "rsl_rl.onnx").wrong
    assert "was not exported by spota" in wrong


def test_a_signature_proves_who_wrote_it(exported, tmp_path):
    private, stranger = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "key.pem").write_bytes(pem)
    for name, key in (("mine", private), ("theirs", stranger)):
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (tmp_path / f"{name}.pem").write_bytes(public)
    path = tmp_path / "policy.onnx"
    path.write_bytes(exported.read_bytes())
    assert "There is no signature" in str(signing.check_signature(path, tmp_path / "mine.pem"))
    signing.sign(path, tmp_path / "key.pem")
    assert signing.check_signature(path, tmp_path / "mine.pem") is None
    assert "is not the signature" in str(signing.check_signature(path, tmp_path / "theirs.pem"))
    path.write_bytes(exporting.in_bytes(LINEAR, None))
    assert "is not the signature" in str(signing.check_signature(path, tmp_path / "mine.pem"))
    with pytest.raises(ValueError, match="not a private key"):
        signing.sign(path, tmp_path / "mine.pem")


def test_what_is_no_network_is_not_exported(tmp_path):
    with pytest.raises(ValueError, match="cannot be exported"):
        exporting.export(lambda o: o, tmp_path / "p.onnx", None)
    with pytest.raises(ValueError, match="write e.g. policy.onnx"):
        exporting.export(NETWORK, tmp_path / "p.bin", None)
