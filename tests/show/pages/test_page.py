"""The page of a run: it tells the truth about every kind of directory."""

import base64
import dataclasses
import json
import re

import pytest
from run_directories import CART_POLE, NASTY, Words, copied, words_of

from spota.certify.certificate import Certificate
from spota.cli import main
from spota.files.atomic import write_json
from spota.policies.onnx_limits import parse_model
from spota.policies.onnx_ours import papers_of
from spota.show.pages import coverage, page, read, write
from spota.show.pages.material import Material
from spota.stats.split import Part


def test_a_certified_run_says_so_and_gives_the_certificates_figures(certified):
    c = Certificate.from_json((certified / "certificate.json").read_text())
    text = words_of(write(certified, full=False))
    assert text.split("Certified")[0].endswith("catapult · SPOTA · seed 0 · certified ")
    assert c.sentence.removeprefix("Certified: o") in text
    assert "What this promises" in text and "What it does not promise" in text
    assert "There is one iteration, so there is one point." in text
    assert all(warning in text for warning in c.warnings)
    assert "planet" in text
    assert f"spota train --config {certified}/config.toml" in text
    assert c.policy_sha256 is not None and c.policy_sha256 in text
    for name in c.intervals:
        assert coverage.interval_name(name) in text


def test_a_finished_run_offers_its_policy_with_its_certificate(certified):
    pytest.importorskip("onnx")
    text = write(certified, full=False).read_text()
    (data,) = re.findall(r'download="policy.onnx" href="data:[^,]*,([^"]+)"', text)
    papers = papers_of(parse_model(base64.b64decode(data)))
    assert json.loads(papers["spota.certificate"]) == json.loads((certified / "certificate.json").read_text())
    assert f"spota export {certified} policy.onnx" in text


def test_a_run_that_was_not_certified_says_so(refused):
    text = words_of(write(refused, full=False))
    assert " Undecided " in text
    assert "It ended after 2 iterations" in text
    assert "There is one iteration" not in text
    assert "Go on with" not in text


@pytest.mark.parametrize(
    ("lost", "place_in_the_run", "certificate"),
    [
        (r"iteration|result|certificate|policy", "in iteration 1.", False),
        (r"-02|(references|comparison|performance|certificate)\.|result|policy", "before its references were", False),
        (r"-02|(performance|certificate)\.|result|policy", "in iteration 1, before its performance was", False),
        (r"-02|result", "in iteration 1, after look 1 at its candidate.", True),
        (r"-02/(comparison|performance|certificate)|result", "in iteration 2, before its comparison was", True),
    ],
)  # fmt: skip
def test_a_killed_run_says_where_it_stands(refused, tmp_path, lost, place_in_the_run, certificate):
    run = copied(refused, tmp_path / "killed", lost)
    text = words_of(write(run, full=False))
    assert " Unfinished " in text
    assert place_in_the_run in text
    assert f"Go on with: spota train --resume {run}" in text
    assert ("So far: undecided" in text) == certificate == ("What the certificate says" in text)
    assert ("There is no certificate yet." in text) != certificate
    assert ("The run has not kept a policy yet." in text) != certificate


def test_a_killed_run_shows_the_curve_of_the_block_that_it_was_in(refused, tmp_path):
    run = copied(refused, tmp_path / "killed", "iteration-02|result")
    lines = [{"block": "iteration-02/candidate", "iteration": i, "returns": 10.0 * i} for i in (1, 2)]
    with (run / "metrics.jsonl").open("a") as file:
        file.write("\n".join(map(json.dumps, lines)) + '\n{"torn')
    found = read(run).training
    assert found is not None and not found.finished
    assert found.returns.tolist() == [[10.0, 20.0]]
    assert "The block that was not finished" in words_of(write(run, full=False))
    assert read(refused).training is None


def test_a_training_says_that_nothing_is_certified(moving):
    text = words_of(write(moving, CART_POLE, full=False))
    assert "cart-pole · a training with ppo · seed 3 · moving" in text
    assert "Trained, without a certificate" in text
    assert f"spota assess {moving}" in text
    assert "mean return on 500 unseen domains, of 50 45 " in text
    assert "What the certificate says" not in text


def test_a_training_that_was_stopped_is_unfinished(moving, tmp_path):
    run = copied(moving, tmp_path / "stopped", "solution|result|policy")
    (run / "metrics.jsonl").write_text('{"block": "solution", "iteration": 1, "returns": 7.5}\n')
    text = words_of(write(run))
    assert "The run stands in the training. There is no certificate yet." in text
    assert "mean return on its own domains so far" in (run / "report.html").read_text()


def test_an_assessment_has_a_certificate_and_no_candidate(assessed):
    text = words_of(write(assessed, full=False))
    assert "catapult · an assessment of mine.npz · seed 0" in text
    assert read(assessed).status in ("certified", "refuted", "undecided")
    assert "What the certificate says" in text
    assert "The bound over the iterations" not in text
    assert "Candidates" not in text
    assert "A candidate of our own" in text
    assert "On their own domains each started from the best policy there was: " in text
    assert "exact solver" in text
    assert "References of iteration 1" in text
    assert f"spota assess --config {assessed}/config.toml" in text


def test_the_effort_margin_is_told_and_part_of_every_bound(certified, tmp_path):
    whole = read(copied(certified, tmp_path / "measured"))
    kept = whole.iterations[0]
    assert kept.certificate is not None
    measured = dataclasses.replace(
        kept.certificate, intervals=dict.fromkeys(kept.certificate.intervals, 100.0), ucbog=137.0,
        effort_margin=37.0, effort_gain=12.0, effort_references=5, effort_factor=3,
    )  # fmt: skip
    told = dataclasses.replace(whole, iterations=(dataclasses.replace(kept, certificate=measured),))
    text = Words(page(Material(told, None, "no picture"))).text
    assert "an effort margin of 37: 5 references, trained 3 times as long, gained 12 more" in text
    assert "no policy that the solver finds, even with 3 times the effort, is better" in text
    assert "All of them include the effort margin of 37." in text
    assert text.count(" 137 ") >= len(measured.intervals)


def test_the_loss_is_added_up_from_its_parts(certified):
    whole = read(certified)
    kept = whole.iterations[0]
    assert kept.certificate is not None and kept.certificate.split is not None
    split = dataclasses.replace(
        kept.certificate.split, ordinary=Part(11.0, 23.0, 100, 0.03), rare=Part(3.0, 5.0, 20_000, 0.01),
        level=-20.0, failing=0.004, shortfall=17.0, failing_loss=2.0,
    )  # fmt: skip
    decided = dataclasses.replace(
        kept.certificate, method="split", split=split, intervals={**kept.certificate.intervals, "split": 28.0},
        ucbog=32.0, effort_margin=4.0, effort_gain=1.0, effort_references=5, effort_factor=3, n_G=20,
        max_return=0.0, largest_loss=85.0,
    )  # fmt: skip
    told = dataclasses.replace(whole, iterations=(dataclasses.replace(kept, certificate=decided),))
    text = Words(page(Material(told, None, "no picture"))).text
    assert "ordinary loss 11 23 100 domains of 20 references" in text
    assert "rare failures 3 5 20000 unseen domains" in text
    assert "longer training of references 1 4 5 references, trained 3 times as long" in text
    assert "together 15 32" in text
    assert "On 0.4 % of the machines it falls short of -20" in text


@pytest.mark.parametrize(
    ("settings", "solver", "missing"),
    [({}, {"iterations": 3}, True), ({"effort_references": 0}, {"iterations": 3}, False), ({}, "my.solver", False)],
)
def test_a_killed_run_misses_its_effort_only_where_it_is_measured(refused, tmp_path, settings, solver, missing):
    run = read(copied(refused, tmp_path / "killed", r"-02|(comparison|performance|certificate)\.|result|policy"))
    told = dataclasses.replace(run, config={**run.config, "spota": settings, "reference": solver})
    assert told.stopped_in == f"iteration 1, before its {'effort' if missing else 'comparison'} was finished"


def test_a_damaged_block_is_named_and_the_rest_is_shown(refused, tmp_path):
    run = copied(refused, tmp_path / "damaged")
    block = run / "iteration-01" / "comparison.npz"
    block.write_bytes(block.read_bytes()[:100])
    text = words_of(write(run, full=False))
    assert "iteration-01/comparison.npz is not a finished block of this run" in text
    assert "The bound over the iterations" in text


def test_what_is_no_run_is_refused_in_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path)])
    assert "is not a run directory, because it has no config.toml" in " ".join(capsys.readouterr().err.split())


def test_text_from_files_is_never_markup(certified, tmp_path):
    run = copied(certified, tmp_path / NASTY.replace("/", ""))
    whole = read(run)
    kept = whole.iterations[0]
    assert kept.certificate is not None
    row = {**kept.certificate.domain["planet"], "meaning": NASTY, "unit": NASTY, "symbol": NASTY}
    bad = dataclasses.replace(kept.certificate, domain={NASTY: row}, warnings=(NASTY,), policy_sha256=NASTY)
    assert kept.references is not None
    references = dataclasses.replace(kept.references, domains={NASTY: kept.references.domains["planet"]})
    kept = dataclasses.replace(kept, certificate=bad, references=references, candidate=None)
    told = dataclasses.replace(
        whole,
        config={**whole.config, "policy": NASTY, "seed": NASTY, "env": NASTY},
        iterations=(kept,),
        damaged=(NASTY,),
    )
    text = page(Material(told, None, NASTY))
    assert "img" not in Words(text).tags
    assert Words(text).text.count(NASTY) >= 8
    assert "<img" not in text.replace("\\u003c", "")


def test_a_command_writes_the_page(refused, tmp_path, capsys):
    out = tmp_path / "new" / "page.html"
    main(["report", str(refused), "--out", str(out), "--quick", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told == {"run": str(refused), "file": str(out), "bytes": out.stat().st_size}


def test_a_certificate_whose_table_does_not_cover_the_recorded_machine_is_void(certified, tmp_path):
    run = copied(certified, tmp_path / "run")
    write_json(run / "applies.json", {"answer": "covered", "why": "all is well"})
    assert "Void for your machine" not in words_of(write(run, full=False))
    write_json(run / "applies.json", {"answer": "not covered", "why": "pole_length near 0.165 m"})
    text = words_of(write(run, full=False))
    assert "Void for your machine" in text and "pole_length near 0.165 m" in text
    assert 'data-status="void"' in (run / "report.html").read_text()
