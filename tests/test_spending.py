"""α over candidates and looks: sums stay below α, and a run that tests on noise errs no more often."""

import math

import numpy as np
import pytest

from spota.spending import spent


@pytest.mark.parametrize("looks", [1, 3])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
def test_everything_that_is_ever_tested_sums_up_to_alpha(alpha, looks):
    total = math.fsum(spent(alpha, k, look, looks) for k in range(1, 3000) for look in range(1, looks + 1))
    assert alpha * (1 - 1e-3) < total < alpha


def test_the_first_candidate_has_most():
    assert spent(0.05, 1) == pytest.approx(0.05 * 0.607927, rel=1e-5)
    assert spent(0.05, 2) == pytest.approx(spent(0.05, 1) / 4)
    assert spent(0.05, 2, 3, 3) == pytest.approx(spent(0.05, 2) / 3)


def test_a_run_that_stops_at_its_first_success_errs_at_most_alpha():
    """Each of 8 candidates × 3 looks passes wrongly where a uniform number falls below its α."""
    levels = [spent(0.2, k, look, 3) for k in range(1, 9) for look in (1, 2, 3)]
    passed = (np.random.default_rng(0).random((20_000, len(levels))) < levels).any(axis=1).mean()
    independent = 1 - np.prod(1 - np.array(levels))
    assert passed == pytest.approx(independent, abs=4 * math.sqrt(independent / 20_000))
    assert passed < 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 5.0}, "write alpha=0.05"),
        ({"candidate": 0}, "candidate=0: candidates count from 1"),
        ({"look": 4}, "look=4 of looks=3"),
        ({"look": 0}, "look=0 of looks=3"),
    ],
)
def test_errors_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        spent(**{"alpha": 0.05, "candidate": 1, "look": 1, "looks": 3} | arguments)
