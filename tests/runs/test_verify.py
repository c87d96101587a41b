"""`spota verify`: every edit of a run is found, and nothing else is."""

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
import tomli_w

from spota import policies
from spota.certify.certificate import Certificate
from spota.cli import main
from spota.envs import make
from spota.files.blocks import read_block, write_block
from spota.runs.directory import AS_MADE, fingerprint_of
from spota.runs.verification import verify
from spota.show import pages

TINY = (
    "spota.n_G=10", "spota.n_J=1", "spota.n_b=50", "spota.performance_domains=2000", "spota.hidden=[2]",
    "spota.growth=constant", "spota.max_iterations=2", "spota.looks=2",
)  # fmt: skip
TRAIN = ("train", "catapult", "--no-report", "--set", *TINY, "--beta", "0.001")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "a"
    main([*TRAIN, "--out", str(out)])
    return out


@pytest.fixture
def run(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "a", ignore=shutil.ignore_patterns(".lock")))


def edit_json(path: Path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def rewrite(path: Path, old: str, new: str):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def edit_block(run: Path, name: str, change: Callable[[dict], dict]):
    """As an enemy would who knows the format: with a checksum that fits."""
    fingerprint = fingerprint_of(tomllib.loads((run / "config.toml").read_text()))
    path = run / f"{name}.npz"
    write_block(path, name, fingerprint, change(read_block(path, name, fingerprint)))


def test_a_run_that_nobody_touched_is_intact(run, capsys):
    main(["verify", str(run)])
    told = capsys.readouterr().out
    assert "a is as it was written." in told
    assert "the certificates, computed again from their blocks" in told
    main(["verify", str(run), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["intact"] and not document["wrong"] and not document["skipped"]


def test_an_edited_bound_is_found_and_the_exit_code_says_so(run, capsys):
    edit_json(run / "certificate.json", ucbog=1.0)
    with pytest.raises(SystemExit) as stop:
        main(["verify", str(run)])
    assert stop.value.code == 1
    told = capsys.readouterr().out
    assert "certificate.json was edited: ucbog is 1.0 and should be" in told
    assert "do not rely on its certificate" in told


def lower_bound(arrays: dict) -> dict:
    certificate = json.loads(str(arrays["json"]))
    return {**arrays, "json": np.array(json.dumps({**certificate, "ucbog": 1.0}))}


def of_format_3(arrays: dict) -> dict:
    return {**arrays, "json": np.array(json.dumps({**json.loads(str(arrays["json"])), "format": 3}))}


def test_certificates_by_older_rules_are_not_computed_again(run):
    for path in sorted(run.glob("iteration-*/c*.npz")):
        if "json" in np.load(path):
            edit_block(run, path.relative_to(run).with_suffix("").as_posix(), of_format_3)
    found = verify(run)
    assert found.skipped == [
        "The certificates were not computed again: they have format 3, and this version, which writes format 4, "
        "computes bounds by other rules."
    ]


@pytest.mark.parametrize("document", [{}, {"format": "3"}, {"format": [4]}])
def test_a_certificate_that_is_none_is_told_and_nothing_breaks(run, document):
    edit_block(run, "iteration-01/certificate", lambda arrays: {**arrays, "json": np.array(json.dumps(document))})
    assert not verify(run).intact


def double(name: str) -> Callable[[dict], dict]:
    return lambda arrays: {**arrays, name: 2 * arrays[name]}


EDITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "iteration's file": (
        lambda run: edit_json(run / "iteration-02/certificate.json", verdict="certified"),
        "iteration-02/certificate.json was edited: verdict is 'certified' and should be 'undecided'",
    ),
    "result": (
        lambda run: rewrite(run / "result.json", '"ucbog": ', '"ucbog": 1'),
        "result.json was edited: ucbog is",
    ),
    "warning": (lambda run: edit_json(run / "certificate.json", warnings=[]), "certificate.json was edited"),
    "table": (lambda run: edit_json(run / "certificate.json", domain={}), "certificate.json was edited"),
    "missing": (lambda run: (run / "certificate.json").unlink(), "certificate.json cannot be read"),
    "seed": (
        lambda run: rewrite(run / "config.toml", "seed = 0", "seed = 1"),
        "config.toml was edited: seed was 0 and is 1",
    ),
    "bit": (
        lambda run: (run / "iteration-01/references.npz").write_bytes(
            (run / "iteration-01/references.npz").read_bytes().replace(b"array", b"arrax", 1)[:-40]
        ),
        "iteration-01/references.npz is not as it was written",
    ),
    "gone": (
        lambda run: (run / "iteration-01/comparison.npz").unlink(),
        "iteration-01/comparison.npz, which the certificate of iteration-01 rests on, is missing",
    ),
    "checksummed block": (
        lambda run: edit_block(run, "iteration-01/comparison", double("candidate_returns")),
        "iteration-01/comparison.npz is not the block that the certificate of iteration-01 rests on",
    ),
    "checksummed certificate": (
        lambda run: edit_block(run, "iteration-01/certificate", lower_bound),
        "iteration-01/certificate.npz does not follow from the other blocks: ucbog is 1.0",
    ),
    "checksummed challenger": (
        lambda run: edit_block(run, "iteration-01/challenger", lower_bound),
        "iteration-01/challenger.npz does not follow from the other blocks: ucbog is 1.0",
    ),
    "policy": (
        lambda run: policies.save(policies.fnn(jax.random.key(9), make("catapult"), (2,)), run / "policy.npz"),
        "policy.npz is another policy",
    ),
    "torn policy": (
        lambda run: (run / "policy.npz").write_bytes((run / "policy.npz").read_bytes()[:-9]),
        "policy.npz was edited or damaged",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_found(run, edit):
    change, words = EDITS[edit]
    change(run)
    assert any(words in wrong for wrong in verify(run).wrong), verify(run).wrong


def test_a_run_without_the_copy_of_its_settings_shows_by_its_blocks_that_they_were_edited(run):
    (run / AS_MADE).unlink()
    assert verify(run).intact
    config = tomllib.loads((run / "config.toml").read_text())
    (run / "config.toml").write_text(tomli_w.dumps({**config, "seed": 1}))
    assert "config.toml was edited: its blocks come from other settings." in verify(run).wrong


def test_what_is_no_run_is_said(tmp_path):
    with pytest.raises(ValueError, match="is not a run directory, because it has no config.toml"):
        verify(tmp_path)


def test_an_unfinished_run_is_looked_at_as_far_as_it_got(run):
    shutil.rmtree(run / "iteration-02")
    for name in ("result.json", "certificate.json"):
        (run / name).unlink()
    shutil.copy(run / "iteration-01/certificate.json", run / "certificate.json")
    kept = Certificate.from_json((run / "certificate.json").read_text())
    found = verify(run)
    policy = policies.load(run / "policy.npz")
    if policies.fingerprint(policy) == kept.policy_sha256:
        assert found.intact
    else:
        assert found.wrong == ["policy.npz is another policy than the one that the run found."]


def test_an_assessment_is_computed_again(run, tmp_path):
    shutil.copy(run / "policy.npz", "mine.npz")
    settings = [one for one in TINY if not one.startswith(("spota.growth", "spota.max"))]
    main(["assess", "mine.npz", "--set", *settings, "--beta", "0.001", "--out", "b"])
    found = verify(tmp_path / "b")
    assert found.intact and not found.skipped, (found.wrong, found.skipped)
    edit_block(tmp_path / "b", "iteration-01/certificate", lower_bound)
    assert not verify(tmp_path / "b").intact


# What happens without asking.


def test_a_report_says_that_the_certificate_was_edited(run, capsys):
    edit_json(run / "certificate.json", ucbog=1.0)
    main(["report", str(run), "--quick"])
    assert "certificate.json was edited: ucbog is 1.0 and should be" in " ".join(capsys.readouterr().err.split())
    assert "certificate.json was edited" in (run / "report.html").read_text("utf-8")


def test_a_report_of_a_whole_run_says_nothing_of_the_kind(run):
    assert pages.read(run).edited == ()


def test_edited_settings_are_refused_before_a_block_is_overwritten(run, capsys):
    before = {path: path.read_bytes() for path in run.rglob("*.npz")}
    rewrite(run / "config.toml", "n_J = 1", "n_J = 2")
    with pytest.raises(SystemExit) as stop:
        main(["train", "--resume", str(run)])
    assert stop.value.code == 2
    assert "was edited after the run began: spota.n_J was 1 and is 2" in " ".join(capsys.readouterr().err.split())
    assert {path: path.read_bytes() for path in run.rglob("*.npz")} == before
