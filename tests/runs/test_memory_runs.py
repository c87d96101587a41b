"""A policy with memory through a whole run: training, references, files, verification, comparison, assessment."""

import base64
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import spota
from point_mass import PointMass
from spota import policies
from spota.analysis import evaluate
from spota.analysis.attribution import alternatives
from spota.cli import main
from spota.policies import Architecture, Stacked, architecture_of, fingerprint, new_network
from spota.policies.onnx_limits import read_model
from spota.policies.onnx_ours import papers_of
from spota.runs.onnx_verification import verify_file
from spota.runs.verification import verify

FILE = f"{Path(__file__).parents[1] / 'point_mass.py'}:PointMass"
SMALL = {"n_c": 4, "n_r": 2, "n_G": 4, "n_J": 1, "n_b": 50, "performance_domains": 20, "hidden": (3,), "looks": 1,
         "max_iterations": 1, "method": "student_t_reference", "effort_references": 2, "trainings": 2}  # fmt: skip
FEW = {"iterations": 2, "rows": 4, "evaluation_rows": 4, "warm_up": 1}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with a memory of three observations."""
    directory = tmp_path_factory.mktemp("memory") / "a"
    told = {"settings": SMALL, "candidate": FEW, "reference": FEW}
    return directory, spota.train(FILE, preset="quick", memory=3, out=directory, seed=1, **told)


@pytest.mark.slow
def test_candidate_and_references_have_the_same_memory(trained):
    directory, result = trained
    assert architecture_of(result.policy) == Architecture((3,), 3)
    kept = spota.load(directory / "policy.npz")
    assert isinstance(kept, Stacked) and fingerprint(kept) == result.certificate.policy_sha256
    with np.load(directory / "iteration-01" / "references.npz") as block:
        assert block["policy.weights.0"].shape == (4, 3, 2 + 2 * 3)
    assert "memory = 3" in (directory / "config.toml").read_text()


@pytest.mark.slow
def test_a_run_with_memory_can_be_verified_and_explained(trained):
    directory, result = trained
    assert not verify(directory).wrong
    others = alternatives(directory, result.policy)
    assert len(others) == 4 and all(isinstance(other, Stacked) for other in others.values())
    env = PointMass()
    table = evaluate.sweep(jax.random.key(0), env, {"a": result.policy, **others}, {"mass": np.array([0.7, 1.2])})
    assert np.isfinite(table.mean).all() and table.mean.shape == (5, 2)


@pytest.mark.slow
def test_a_policy_with_memory_is_assessed_with_references_that_remember(trained):
    policy = new_network(jax.random.key(7), PointMass(), Architecture((3,), 2))
    told = {"candidate": FEW, "reference": FEW, "against": [trained[1].policy]}
    small = {k: v for k, v in SMALL.items() if k not in ("max_iterations", "n_c")}
    found = spota.assess(policy, FILE, preset="quick", settings={**small, "n_c": 4}, **told)
    assert found.imitation is None
    assert {"the policy", "our candidate", "policy 1"} <= set(found.certificate.starts)


@pytest.mark.slow
def test_a_run_with_memory_leaves_with_its_certificate_and_from_its_page(trained, tmp_path):
    directory, result = trained
    file = tmp_path / "policy.onnx"
    main(["export", str(directory), str(file), "--env", FILE])
    assert not verify_file(file, PointMass()).wrong
    assert fingerprint(policies.find(file, PointMass())) == result.certificate.policy_sha256
    papers = papers_of(read_model(file))
    assert json.loads(papers["spota.certificate"])["ucbog"] == pytest.approx(result.certificate.ucbog)
    main(["report", str(directory)])
    link = re.search(r'download="policy.onnx" href="data:[^,]*,([^"]*)"', (directory / "report.html").read_text())
    assert link is not None and base64.b64decode(link[1]) == file.read_bytes()


@pytest.mark.slow
def test_settings_without_memory_are_those_of_before(tmp_path):
    spota.train("catapult", settings={**SMALL, "trainings": 1}, out=tmp_path / "a")
    text = (tmp_path / "a" / "config.toml").read_text()
    assert "memory" not in text and "stride" not in text and "recurrent" not in text
