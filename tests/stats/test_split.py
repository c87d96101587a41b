"""The split interval: an identity, coverage where the truth is known, clamped bounds, plain errors."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats

from spota.stats.bounds import betting
from spota.stats.split import FLOOR, crash_level, gap_at_least, reference_bound, split_upper

CRASH = 0.01
TRUTH = 12 + CRASH * 1200


def returns(rng, shape):
    """Returns of a policy and of a reference in [0, 2500]: gaps Exp(12), and a crash of 500 to 1900 with CRASH."""
    reference = 2400 - 48 * rng.standard_exponential(shape)
    crash = (rng.random(shape) < CRASH) * rng.uniform(500, 1900, shape)
    return np.maximum(reference - 12 * rng.standard_exponential(shape) - crash, 0.0), reference


def drawn(seed, n_G=10, n_r=5, n_J=2, n=20_000):
    """(candidate, reference, unseen, level) as the bounds take them."""
    rng = np.random.default_rng(seed)
    candidate, reference = returns(rng, (n_G, n_r, n_J))
    return candidate, reference, returns(rng, n)[0], crash_level(returns(rng, 1000)[0])


def test_the_parts_are_those_of_the_formula_on_single_rollouts():
    candidate, reference, unseen, level = drawn(0, 3, 2, 2, 400)
    found = split_upper(candidate, reference, unseen, level, 0.0, 2500.0)
    gains = [r - max(c, level) for c, r in zip(candidate.ravel(), reference.ravel(), strict=True)]
    losses = [max(level - c, 0.0) for c in unseen]
    assert found.ordinary.mean == pytest.approx(np.mean(gains))
    assert found.rare.mean == pytest.approx(np.mean(losses))
    assert found.mean == pytest.approx(np.mean(gains) + np.mean(losses))
    assert (found.ordinary.n, found.rare.n) == (6, 400)
    assert (found.ordinary.alpha, found.rare.alpha) == pytest.approx((0.04, 0.01))
    assert found.rare.bound == pytest.approx(level - betting(level - np.array(losses), 0.0, level, 0.01))
    assert found.bound == pytest.approx(found.ordinary.bound + found.rare.bound)


def test_the_two_parts_estimate_the_whole_gap_without_bias():
    errors = [(split_upper(*drawn(seed, 10, 5, 1, 2000), 0.0, 2500.0).mean - TRUTH) for seed in range(300)]
    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(300)


def test_the_bound_covers_where_a_bootstrap_cannot():
    """10 × 5 domains have no crash in 60 % of all cases."""
    data = [drawn(seed, 10, 5, 1) for seed in range(150)]
    upper = np.array([split_upper(*d, 0.0, 2500.0).bound for d in data])
    assert (upper >= TRUTH).mean() > 0.95
    assert np.quantile(upper, 0.9) < 2 * TRUTH
    t = [scipy.stats.ttest_1samp((r - c).mean((1, 2)), 0, alternative="less") for c, r, *_ in data]
    assert np.mean([one.confidence_interval(0.95).high >= TRUTH for one in t]) < 0.6


def test_reference_bound_step_by_step():
    gains = np.random.default_rng(1).exponential(size=(7, 3))
    means = gains.mean(axis=1)
    means = np.append(means, means.max() + (means.max() - means.mean()) / math.log(7))
    error = max(means.std(ddof=1) / math.sqrt(7), gains.std(ddof=1) / math.sqrt(21))
    want = means.mean() + scipy.stats.t.isf(0.04, 6) * error
    assert reference_bound(gains, 0.04) == pytest.approx(want)


def test_means_that_agree_by_luck_have_the_spread_of_their_domains():
    gains = np.array([[0.0, 10.0], [10.0, 0.0], [4.0, 6.0]])  # every reference gains 5
    assert reference_bound(gains, 0.05) == pytest.approx(5 + scipy.stats.t.isf(0.05, 2) * gains.std(ddof=1) / 6**0.5)


@pytest.mark.parametrize(("n_G", "law"), [(10, "expon"), (20, "expon"), (20, "bernoulli"), (20, "norm")])
def test_reference_bound_covers_means_of_skewed_gains(n_G, law):
    laws = {"expon": scipy.stats.expon(), "bernoulli": scipy.stats.bernoulli(0.3), "norm": scipy.stats.norm()}
    gains = laws[law].rvs(size=(4000, n_G, 1), random_state=np.random.default_rng(2)).astype(float)
    covered = (reference_bound(gains, 0.04) >= laws[law].mean()).mean()
    assert covered > 0.94
    plain = gains.mean(axis=(1, 2)) + scipy.stats.t.isf(0.04, n_G - 1) * gains[..., 0].std(axis=1, ddof=1) / n_G**0.5
    assert covered > (plain >= laws[law].mean()).mean()


def test_many_sets_at_once_are_what_single_ones_are():
    gains = np.random.default_rng(3).normal(size=(4, 2, 6, 3))
    np.testing.assert_allclose(reference_bound(gains, 0.1)[3, 1], reference_bound(gains[3, 1], 0.1))


def test_the_bound_lies_between_the_mean_and_the_end_of_the_range():
    for seed in range(20):
        upper = split_upper(*drawn(seed, 3, 1, 1, 50), 0.0, 2500.0, alpha=0.5)
        assert max(upper.mean, 0.0) <= upper.bound <= 2500


def test_one_reference_leaves_what_the_range_says():
    candidate, reference, unseen, level = drawn(4, 1, 5)
    found = split_upper(candidate, reference, unseen, level, 0.0, 2500.0)
    assert found.ordinary.bound == 2500 - level


def test_a_level_at_the_least_return_splits_nothing():
    candidate, reference, unseen, _ = drawn(5)
    found = split_upper(candidate, reference, unseen, 0.0, 0.0, 2500.0)
    assert found.rare == dataclasses.replace(found.rare, mean=0.0, bound=0.0)
    assert found.mean == pytest.approx((reference - candidate).mean())


def test_a_candidate_that_stands_for_its_references_loses_nothing():
    """E[C − f(C)] + E[f(C) − C] = 0: the bound is what the domains leave open, and no negative number."""
    candidate, _, unseen, level = drawn(6, 20, 10)
    found = split_upper(candidate, candidate, unseen, level, 0.0, 2500.0)
    assert found.ordinary.mean < 0
    assert 0 <= found.bound < found.rare.bound


def test_a_machine_that_nobody_can_hold_does_not_spread_the_ordinary_loss():
    """Policy and reference fail on one domain: as it is it would lower the mean, and raise the bound manifold."""
    candidate, reference, unseen, level = drawn(8, 10, 10, 1)
    candidate[3, 4], reference[3, 4] = 300.0, 250.0
    floor = level - 100.0
    without, found = (split_upper(candidate, reference, unseen, level, 0.0, 2500.0, floor=d) for d in (0.0, floor))
    assert found.ordinary.mean == pytest.approx(without.ordinary.mean + (floor - 250.0) / 100)
    assert without.ordinary.mean < found.ordinary.mean < found.ordinary.bound < without.ordinary.bound
    assert (found.floor, found.rare) == (floor, without.rare)


def test_the_floor_only_ever_adds_to_the_estimate():
    for seed in range(20):
        candidate, reference, unseen, level = drawn(seed, 10, 5, 2, 100)
        means = [
            split_upper(candidate, reference, unseen, level, 0.0, 2500.0, floor=d).mean
            for d in (-math.inf, level - 50, level)
        ]
        assert means == sorted(means)


def test_references_that_fail_as_rarely_as_the_policy_leave_the_bound_true():
    """Both crash on the same domains, so that the gap is that of the ordinary ones."""
    rng = np.random.default_rng(9)

    def both(shape):
        reference = 2400 - 48 * rng.standard_exponential(shape)
        crash = (rng.random(shape) < CRASH) * rng.uniform(500, 1900, shape)
        reference = np.maximum(reference - crash, 100.0)
        return np.maximum(reference - 12 * rng.standard_exponential(shape), 0.0), reference

    bounds = []
    for _ in range(200):
        pilot = both(1000)[0]
        level, floor = crash_level(pilot), crash_level(pilot, FLOOR)
        bounds.append(split_upper(*both((10, 10, 1)), both(5000)[0], level, 0.0, 2500.0, floor=floor).bound)
    assert np.mean(np.array(bounds) >= 12) > 0.95
    assert np.quantile(bounds, 0.9) < 2 * np.median(bounds)


def test_the_level_is_a_quantile_that_was_seen():
    assert crash_level(np.arange(1000.0)[::-1]) == 49.0
    assert crash_level(np.array([-108.0, -1.9, -1.9, -1.9])) == -108.0


def test_a_challenger_refutes_by_what_it_gains():
    rng = np.random.default_rng(7)
    bounds = []
    for _ in range(100):
        candidate, challenger = returns(rng, 5000)
        bounds.append(gap_at_least(challenger, candidate, 0.0, 2500.0))
    assert np.mean(np.array(bounds) <= TRUTH) > 0.95
    assert np.median(bounds) > 0.7 * TRUTH
    assert gap_at_least(candidate, challenger, 0.0, 2500.0) == 0  # a worse one refutes nothing


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 5.0}, "write alpha=0.05"),
        ({"share": 1.0}, "share=1.0: .* write share=0.8"),
        ({"level": 2600.0}, r"level=2600.0 is not a return between 0.0 and 2500.0; write crash_level\(pilot_returns\)"),
        ({"level": math.nan}, "level=nan is not a return"),
        ({"floor": 2.0}, r"floor=2.0 is above level=1.0; write crash_level\(pilot_returns, 0.01\)"),
        ({"candidate_returns": np.full((2, 3, 1), 2501.0)}, "candidate_returns from 2501.0 .* leave the range"),
        ({"reference_returns": np.full((2, 3, 1), np.nan)}, "reference_returns .* diverged"),
        ({"unseen_returns": np.zeros(0)}, r"unseen_returns has shape \(0,\), no return at all"),
    ],
)
def test_errors_say_what_to_type(arguments, message):
    given = {"candidate_returns": np.ones((2, 3, 1)), "reference_returns": np.ones((2, 3, 1)), "level": 1.0}
    given |= {"unseen_returns": np.ones(4), "min_return": 0.0, "max_return": 2500.0}
    with pytest.raises(ValueError, match=message):
        split_upper(**given | arguments)


@pytest.mark.parametrize(
    ("pilot", "quantile", "message"),
    [
        ([1.0], 1.0, "quantile=1.0: .* write quantile=0.05"),
        ([1.0, math.nan], 0.05, "pilot_returns has 2 values, not all finite"),
        ([], 0.05, "pilot_returns has 0 values, .* about 1000"),
    ],
)
def test_a_level_needs_a_quantile_and_a_pilot(pilot, quantile, message):
    with pytest.raises(ValueError, match=message):
        crash_level(np.array(pilot), quantile)
