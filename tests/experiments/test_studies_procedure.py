"""The study of whole runs: its platform, solver and truth against brute force, and what the counts say."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.certify.algorithm import spota
from spota.certify.settings import Spota
from spota.experiments import whole_runs as procedure
from spota.experiments.rope import (
    BEST,
    Pull,
    best_pulls,
    earned,
    expected_return,
    gap,
    limit_of,
    optimum,
    rope,
    turning_points,
)  # fmt: skip
from spota.experiments.whole_runs import Candidate, CountedRun, Kind, count, counts_of, runs_of
from spota.sim import rollout

KEY = jax.random.key(0)
GRID = np.linspace(*BEST, 6001)


@pytest.mark.parametrize("weak", [0.002, 0.01, 0.02, 0.5])
def test_the_optimum_is_the_best_of_a_grid(weak):
    returns = expected_return(GRID, weak)
    assert GRID[returns.argmax()] == pytest.approx(optimum(weak), abs=1e-4)
    assert (gap(GRID, weak) >= -1e-9).all()


def test_the_optimum_of_few_weak_ropes_lies_between_the_limits():
    """Where tearing pays for a part of the way, neither end is best."""
    assert -0.04 < optimum(0.0005) < 0.0


@pytest.mark.parametrize("pull", [-0.1, -0.03, 0.05])
def test_the_true_gap_is_what_rollouts_lose(pull):
    env, n = rope(0.02), 400_000
    domains, keys = env.domain.sample(KEY, n), jax.random.split(KEY, (n, 1))
    policies = Pull(jnp.float32(optimum(0.02))), Pull(jnp.float32(pull))
    best, other = (np.asarray(rollout.returns(env, p, domains, keys).returns[:, 0], np.float64) for p in policies)
    assert abs((best - other).mean() - gap(pull, 0.02)) < 4 * (best - other).std() / n**0.5
    assert env.min_return <= other.min() and other.max() <= env.max_return


@pytest.mark.parametrize("weak", [0.05, 0.5])
def test_the_solver_beats_every_pull_of_a_grid(weak):
    env = rope(weak)
    drawn = {name: column.reshape(50, 6) for name, column in env.domain.sample(KEY, 300).items()}
    found = best_pulls(jax.random.split(KEY, 50), env, drawn, Pull(jnp.zeros(50)))
    host = {name: np.asarray(column, np.float64) for name, column in drawn.items()}
    tried = earned(GRID[:, None, None], host["best"], limit_of(host)).mean(axis=-1).max(axis=0)
    assert (np.asarray(found.score.returns) >= tried - 1e-3).all()
    np.testing.assert_allclose(found.score.returns, tried, atol=0.1)  # what a grid of 10⁻⁴ leaves


def test_rollouts_earn_what_the_solver_says():
    """A reference stands at a limit: no rounding may tear its rope."""
    env, n = rope(0.5), 200
    drawn = {name: column.reshape(n, 1) for name, column in env.domain.sample(KEY, n).items()}
    found = best_pulls(jax.random.split(KEY, n), env, drawn, Pull(jnp.zeros(n)))
    at_limit = np.asarray(found.policy.pull) == np.asarray(drawn["limit"][:, 0])
    assert at_limit.mean() > 0.1
    earned_there = [
        rollout.returns(env, Pull(pull), {k: v[i] for k, v in drawn.items()}, KEY[None, None]).returns[0, 0]
        for i, pull in enumerate(found.policy.pull[:20])
    ]
    np.testing.assert_allclose(earned_there, found.score.returns[:20], rtol=1e-6)


def test_turning_points_are_limits_and_means_of_what_holds():
    points = turning_points(np.array([[0.1, 0.3]]), np.array([[np.inf, -0.02]]))
    assert sorted(points[0]) == pytest.approx([-0.02, 0.1, 0.1, 0.2])


@pytest.fixture(scope="module")
def run() -> CountedRun:
    return next(runs_of(3, Kind("default", 0.01), 1))


def test_what_is_counted(run):
    def candidate(gap: float, ucbog: float, verdict: str = "certified", gap_at_least: float | None = None) -> Candidate:
        said = {"ucbog": ucbog, "verdict": verdict, "gap_at_least": gap_at_least}
        return Candidate(gap, dataclasses.replace(run.returned.certificate, threshold=10.0, **said))

    right, wrong = candidate(4.0, 8.0), candidate(16.0, 8.0)
    refused = candidate(30.0, 20.0, "undecided")  # its bound is too low, although it did not pass
    refuted = candidate(5.0, 40.0, "refuted", gap_at_least=12.0)  # and loses less than that
    runs = [
        CountedRun((right,), right),
        CountedRun((refused, right), right),
        CountedRun((refuted, right), right),
        CountedRun((wrong,), wrong),
    ]
    found = counts_of(Kind("default", 0.01), runs)
    assert (found.covers, found.certified, found.false_certificates, found.beyond) == (50, 100, 25, 25)
    assert (found.refuted, found.refuted_wrongly) == (25, 25)
    assert (found.median_ratio, found.high_ratio, found.gap) == (2.0, 2.0, 4.0)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_run_has_the_settings_that_users_get_and_returns_its_lowest_bound(run):
    certificates = [c.certificate for c in run.candidates]
    assert {(c.method, c.spending, c.looks) for c in certificates} == {("split", "cubes", Spota().looks)}
    assert {c.performance.n for c in certificates if c.performance} == {Spota().performance_domains}
    assert run.returned.certificate.ucbog == min(c.ucbog for c in certificates)


def test_the_gap_of_a_run_is_that_of_the_policy_it_returns(run):
    kind = Kind("default", 0.01)
    result = spota(jax.random.fold_in(jax.random.key(3), 0), rope(0.01), best_pulls, kind.settings, init=Pull())
    assert run.returned.gap == gap(float(result.policy.pull), 0.01)
    assert run.returned.certificate == result.certificate


@pytest.mark.slow
def test_the_default_procedure_is_right_where_the_papers_is_often_wrong():
    ours, papers = (count(0, Kind(name, 0.01), 10) for name in procedure.PROCEDURES)
    assert (ours.covers, ours.false_certificates, ours.refuted_wrongly) == (100, 0, 0)
    assert ours.certified > 20
    assert papers.covers < 80
    assert papers.false_certificates > 10
