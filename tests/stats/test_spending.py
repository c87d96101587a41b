"""α over candidates and looks: sums stay at α, and a run that tests on noise errs no more often."""

import math

import numpy as np
import pytest

from spota.stats.spending import Trial, share

ALL = [Trial(k, 4, look, 3) for k in range(1, 5) for look in range(1, 4)]


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
def test_everything_that_a_run_could_ever_test_sums_up_to_alpha(alpha):
    endless = [share(i, 10_000) for i in range(1, 10_000)]
    assert math.fsum(endless) == pytest.approx(1.0)
    assert 0.9 * alpha < math.fsum(trial.alpha(alpha) for trial in ALL) < alpha


def test_the_first_look_at_the_first_candidate_has_most():
    assert share(1, 1) == 1
    assert [share(i, 3) / share(1, 3) for i in (1, 2, 3)] == pytest.approx([1, 1 / 8, 1 / 27])
    assert Trial(1, 3, 1, 3).alpha(0.05) == pytest.approx(0.05 * share(1, 3) ** 2)
    assert Trial().alpha(0.05) == 0.05


def test_a_run_that_goes_on_longer_than_planned_changes_nothing_that_was_said():
    assert Trial(2, 3, 1, 2).alpha(0.05) == Trial(2, 9, 1, 5).alpha(0.05)


def test_candidates_share_alpha_unless_told_otherwise_and_looks_always():
    assert Trial(2, 3, spending="none").alpha(0.05) == 0.05
    assert Trial(2, 3, 1, 3, "none").alpha(0.05) == pytest.approx(0.05 * share(1, 3))


def test_a_run_that_stops_at_its_first_success_errs_at_most_alpha():
    """Each of 4 candidates × 3 looks passes wrongly where a uniform number falls below its α."""
    levels = [trial.alpha(0.2) for trial in ALL]
    passed = (np.random.default_rng(0).random((20_000, len(levels))) < levels).any(axis=1).mean()
    independent = 1 - np.prod(1 - np.array(levels))
    assert passed == pytest.approx(independent, abs=4 * math.sqrt(independent / 20_000))
    assert passed < 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidate": 0}, "candidate=0 of candidates=3"),
        ({"candidate": 4}, "candidate=4 of candidates=3"),
        ({"look": 4}, "look=4 of looks=3"),
    ],
)
def test_errors_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        Trial(**{"candidates": 3, "looks": 3} | arguments)


def test_a_probability_that_is_none_is_refused():
    with pytest.raises(ValueError, match="write alpha=0.05"):
        Trial().alpha(5.0)
