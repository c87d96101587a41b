"""The studies against exact values, and `spota reproduce`."""

import dataclasses
import json

import numpy as np
import pytest

from spota.certify.settings import Spota
from spota.cli import main
from spota.commands.coverage_page import coverage_page
from spota.envs import catapult
from spota.experiments import example, figures, intervals
from spota.experiments.example import SIGMA, illustrative_example
from spota.experiments.intervals import Case, coverage, draw, unseen_returns
from spota.experiments.parabolas import PARABOLAS, best
from spota.experiments.whole_runs import Counts, Kind
from spota.polopt.exact import LinearQuadratic
from spota.show import plots
from spota.stats.split import FLOOR, crash_level, split_upper

EXACT = {"1": 30.137773, "5": 5.572591, "10": 2.755024, "30": 0.911347, "100": 0.272668}


def test_reproduce_catapult_has_the_exact_values_and_means_near_them(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "spota_on_the_catapult", lambda *_: one_iteration())
    main(["reproduce", "catapult", "--json", "--out", str(tmp_path)])
    document = json.loads(capsys.readouterr().out)
    assert document["exact_bias"] == pytest.approx(EXACT, abs=1e-6)
    assert document["gap"]["exact"] == pytest.approx(3.573176, abs=1e-6)
    assert document["estimated_gap_30"]["exact"] == pytest.approx(4.484523, abs=1e-6)
    for name in ("gap", "estimated_gap_30", "bias_30"):
        found = document[name]
        assert abs(found["mean"] - found["exact"]) < 3 * found["standard_error"]
    assert document["spota"]["ucbog"][0] > document["spota"]["true_gap"]
    assert {p.name for p in tmp_path.iterdir()} == {"catapult.png", "catapult.pdf", "catapult.json"}


def one_iteration():
    settings = Spota(beta=10.0, n_J=1, max_iterations=1, performance_domains=10, n_b=100)
    return ORIGINAL(0, settings)


ORIGINAL = example.spota_on_the_catapult


def test_the_sample_optimum_beats_every_other_extension():
    drawn = illustrative_example(seeds=20)
    assert (drawn.best >= drawn.candidate - 1e-9).all()
    assert (drawn.best >= drawn.optimum - 1e-9).all()
    assert (drawn.gap >= 0).all()


def test_the_estimate_exceeds_the_gap_by_the_bias():
    drawn = illustrative_example(seed=1, seeds=4000, largest=30)
    error = drawn.bias.std(axis=0) / np.sqrt(4000)
    assert (np.abs(drawn.bias.mean(axis=0) - drawn.exact_bias) < 4.5 * error).all()


@pytest.mark.parametrize("n", [1, 5])
def test_the_bias_by_drawing_is_the_exact_one(n):
    assert PARABOLAS["catapult"].bias(n) == pytest.approx(catapult.simulation_optimization_bias(n), rel=0.01)


def test_linear_quadratic_optimum_is_the_best_of_a_grid():
    problem = LinearQuadratic()
    a, b = problem.draw(np.random.default_rng(0), (400_000,))
    grid = np.linspace(0.5, 1.2, 71)
    values = [problem.returns(theta, a, b).mean() for theta in grid]
    assert grid[int(np.argmax(values))] == pytest.approx(problem.optimum, abs=0.01)
    loss = problem.returns(problem.optimum, a, b).mean() - problem.returns(problem.optimum + SIGMA, a, b).mean()
    assert loss == pytest.approx(problem.curvature * SIGMA**2 / 2, rel=0.02)


def test_the_parabola_is_the_return_up_to_its_top():
    problem, theta = LinearQuadratic(), np.linspace(-1, 2, 5)
    c, x = problem.parabola(1.3, 0.7)
    drop = problem.returns(x, 1.3, 0.7) - problem.returns(theta, 1.3, 0.7)
    np.testing.assert_allclose(drop, c * (theta - x) ** 2 / 2)


@pytest.mark.parametrize("problem", ["catapult", "lq"])
def test_gaps_of_exact_references_average_to_gap_plus_bias(problem):
    sets = draw(np.random.default_rng(0), Case(problem, 4, 5), 4000)
    means = np.asarray(sets.raw, np.float64).mean(axis=(1, 2))
    assert abs(means.mean() - sets.gap - sets.bias) < 4 * means.std() / np.sqrt(4000) + 0.01 * sets.bias
    assert (sets.final >= 0).all()
    assert (sets.raw.mean(axis=-1) > -1e-3).all()  # the best on average over its own domains
    assert sets.final.mean() > sets.raw.mean()


def test_best_is_the_weighted_mean():
    assert best(np.array([1.0, 3.0]), np.array([0.0, 4.0])) == 3.0


@pytest.mark.parametrize("case", [Case("exponential", 4, 5, 0.0), Case("crash", 4, 5, 0.3, 0.02), Case("lq", 4, 5)])
def test_returns_of_the_study_have_its_gaps_within_their_range(case):
    rng = np.random.default_rng(1)
    sets, unseen = draw(rng, case, 500), unseen_returns(rng, case.problem, case.crash, 20_000)
    np.testing.assert_allclose(sets.reference - sets.candidate, np.asarray(sets.raw), atol=1e-3)
    low, high = intervals._range(case.problem)
    assert low <= min(sets.candidate.min(), unseen.min()) and max(sets.reference.max(), unseen.max()) <= high
    drawn = sets.candidate.ravel()  # unseen domains are like those of the references
    error = np.hypot(drawn.std() / drawn.size**0.5, unseen.std() / unseen.size**0.5)
    assert abs(drawn.mean() - unseen.mean()) < 5 * error


def test_the_mean_of_crashing_gaps_is_the_one_stated():
    sets = draw(np.random.default_rng(2), Case("crash", 20, 5, 0.3, 0.02), 2000)
    means = np.asarray(sets.raw, np.float64).mean(axis=(1, 2))
    assert sets.gap == 12 + 0.02 * 1200
    assert abs(means.mean() - sets.gap) < 4 * means.std() / np.sqrt(2000)


def test_the_study_measures_the_interval_that_users_have(monkeypatch):
    monkeypatch.setattr(intervals, "POLICIES", 2)
    intervals.rare_losses.cache_clear()
    case = Case("crash", 5, 3, 0.0, 0.01)
    sets = draw(np.random.default_rng(3), case, 4)
    ours = intervals.split_bounds(7, case, sets)
    rng = np.random.default_rng([7, 10_000, 1])
    pilots = [(unseen_returns(rng, "crash", 0.01, n) for n in (intervals.PILOT, intervals.UNSEEN)) for _ in range(2)]
    for s, (pilot, unseen) in enumerate(pilots):
        candidate, reference = (x[s][..., None] for x in (sets.candidate, sets.reference))
        level, floor = crash_level(pilot := np.asarray(pilot)), crash_level(pilot, FLOOR)
        found = split_upper(candidate, reference, unseen, level, 0.0, 2400.0, floor=floor)
        assert found.bound == pytest.approx(ours[s])
    intervals.rare_losses.cache_clear()


def test_rare_crashes_escape_the_bootstrap_and_not_the_split():
    found = coverage(0, Case("crash", 20, 1, 0.0, 0.01), 500)
    assert found.covers_gap["studentized_reference"] < 40  # known: 28 %
    assert found.covers_gap["split"] > 94
    assert found.high["split"] < 3


@pytest.fixture(scope="module")
def measured():
    return coverage(0, Case("exponential", 20, 1, 0.0), 2000)


def test_known_coverage_is_found_again(measured):
    assert abs(measured.covers_gap["basic_pooled"] - 86.8) < 2
    assert measured.covers_gap["studentized_reference"] > 92.5
    assert measured.covers_gap["mrp"] == pytest.approx(measured.covers_gap["student_t_reference"], abs=0.2)


def counts(name: str, covers: float) -> Counts:
    return Counts(Kind(name, 0.01), 10.0, 500, covers, 80.0, 5.0, 1.0, 30.0, 0.0, 4.0, 2.0, 9.0)


def test_the_page_and_the_figure_show_the_study(measured, tmp_path):
    rows = [measured, dataclasses.replace(measured, case=Case("exponential", 20, 5, 0.3))]
    crashes = [dataclasses.replace(measured, case=Case("crash", 20, 50, 0.3, 0.002))]
    runs = [counts(name, covers) for name, covers in (("default", 97.0), ("paper", 55.0))]
    page = coverage_page(rows, crashes, runs, 0)
    assert f"**{rows[0].covers_mean['split']:.1f}**" in page
    assert f"| 0.2 % | 20 | 50 | 0.3 | {measured.covers_gap['basic_pooled']:.1f} |" in page
    assert f"at most {measured.high['split']:.2f} times the truth" in page
    assert "| paper | 1 % | 10 | 55.0 | 80.0 | 5.0 |" in page
    assert "right in at least 97.0 % of the runs" in page
    assert {f.suffix for f in plots.save(figures.coverage(rows), tmp_path / "coverage")} == {".png", ".pdf"}
    assert (tmp_path / "coverage.png").stat().st_size > 10_000
    json.dumps([row.to_dict() for row in rows], allow_nan=False)


def test_the_default_of_the_intervals_is_the_one_that_the_study_chose():
    from spota.commands.coverage_page import CHOSEN

    assert Spota().method == CHOSEN
