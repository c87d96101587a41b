"""The certificate: its numbers, its words, its doubts, and JSON."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.certify.certificate import METHODS, Certificate, Subject
from spota.certify.doubts import doubts
from spota.certify.effort import EXACT, Effort
from spota.certify.verdict import EFFORT_SHARE, Rollouts, certify, measure
from spota.envs import make
from spota.policies import fingerprint, fnn
from spota.stats import bootstrap, bounds
from spota.stats.gap import Gaps
from spota.stats.spending import Trial
from spota.stats.split import split_upper
from spota.text import figure, percent

KEY = jax.random.key(0)
SUBJECT = Subject("cart-pole", 7, {"mass": {"kind": "uniform", "range": (1.0, 2.0)}}, 0.0, 2500.0, "abc", 5, 50)


def gaps_of(raw) -> Gaps:
    """Gaps that only clipping has touched."""
    raw = jnp.asarray(raw, jnp.float32)
    return Gaps(raw, jnp.maximum(raw, 0.0), jnp.zeros(raw.shape, bool), raw < 0)


def certificate(raw, threshold=50.0, method="studentized_reference", effort=EXACT, **others) -> Certificate:
    return certify(KEY, gaps_of(raw), SUBJECT, threshold=threshold, method=method, effort=effort, **others)


@pytest.fixture(scope="module")
def healthy() -> np.ndarray:
    return np.random.default_rng(0).gamma(4.0, 5.0, (20, 2)).astype(np.float32)


def test_it_holds_the_intervals_and_the_shares(healthy):
    raw = healthy.copy()
    raw[0, 0] = -5.0
    c = certificate(raw, method="basic_reference")
    final = np.maximum(raw, 0)
    for name in set(METHODS) - {"split"}:
        interval, unit = name.rsplit("_", 1)
        want = bootstrap.INTERVALS[interval](KEY, jnp.asarray(final), 0.05, 1000, unit)
        assert c.intervals[name] == pytest.approx(float(want))
    assert c.ucbog == c.intervals["basic_reference"]
    assert c.mean_gap == pytest.approx(final.mean(), rel=1e-5)
    assert (c.negative_share, c.clipped_share) == (pytest.approx(1 / 40), pytest.approx(1 / 40))
    assert c.losing_share == 0
    assert c.reference_improvement == pytest.approx(raw.mean(), rel=1e-5)
    assert (c.n_G, c.n_r, c.n_c, c.n_J) == (20, 2, 5, 50)


def test_it_is_certified_up_to_the_threshold_itself(healthy):
    bound = certificate(healthy).ucbog
    assert certificate(healthy, threshold=bound).certified
    assert not certificate(healthy, threshold=math.nextafter(bound, 0)).certified


def rollouts_of(gaps, crash=0.01, n=20_000, seed=1) -> Rollouts:
    """A policy that earns 2300 to 2400, less by the gaps than the references, and 1000 less where it crashes."""
    rng = np.random.default_rng(seed)
    reference = rng.uniform(2300, 2400, (*np.shape(gaps), 2))
    alone = [rng.uniform(2280, 2380, size) - 1000 * (rng.random(size) < crash) for size in (n, 2000)]
    return Rollouts(reference - np.asarray(gaps)[..., None], reference, *alone)


def test_the_split_decides_on_both_parts(healthy):
    rollouts = rollouts_of(healthy)
    c = certificate(healthy, method="split", rollouts=rollouts)
    level, floor = np.quantile(rollouts.pilot, [0.05, 0.01], method="lower")
    want = split_upper(rollouts.candidate, rollouts.best_known, rollouts.unseen, level, 0.0, 2500.0, 0.05, floor=floor)
    assert c.split is not None and c.split == want
    assert c.ucbog == c.intervals["split"] == want.bound
    assert c.mean_gap == pytest.approx(want.mean)
    assert c.split.rare.mean == pytest.approx(0.01 * 950, rel=0.1)
    assert (c.split.ordinary.n, c.split.rare.n) == (40, 20_000)
    assert set(METHODS) < set(c.intervals)
    assert Certificate.from_json(c.to_json()) == c


def test_the_split_is_told_in_its_two_parts(healthy):
    rollouts = rollouts_of(healthy)
    c = certificate(healthy, method="split", rollouts=rollouts)
    assert c.split is not None
    short = rollouts.unseen < c.split.level - 500
    assert c.split.failing == short.mean()
    carried = np.where(short, c.split.level - rollouts.unseen, 0).mean() / c.mean_gap
    assert c.split.carried == pytest.approx(carried)
    text = str(c)
    assert f"Ordinary: {figure(c.split.ordinary.mean)}, at most {figure(c.split.ordinary.bound)} (40 domains" in text
    assert f"(20000 unseen domains); on {percent(short.mean())} of the machines it falls short of 228" in text
    assert f"by more than 500, and these carry {percent(carried)} of the loss." in text
    assert "on none of the machines" in str(certificate(healthy, method="split", rollouts=rollouts_of(healthy, 0.0)))
    assert "Rare failures" not in str(certificate(healthy, rollouts=rollouts))  # another interval decided


def test_a_level_with_little_below_it_is_not_called_a_level_without_failures(healthy):
    rollouts = dataclasses.replace(rollouts_of(healthy), pilot=np.full(2000, 158.0))
    text = str(certificate(healthy, method="split", rollouts=rollouts))
    assert "on 5 % of the machines it earns 158 or less: failures are not rare." in text
    assert "on none of the machines" not in text


def test_rare_crashes_that_the_gaps_do_not_hold_are_in_the_split_alone(healthy):
    c = certificate(healthy, threshold=33.0, rollouts=rollouts_of(healthy, 0.02), method="split")
    assert c.claims["studentized_reference"] < 33 < c.mean_gap < c.ucbog
    assert not c.certified


def test_returns_outside_their_range_leave_no_split_and_no_largest_loss(healthy):
    rollouts = dataclasses.replace(rollouts_of(healthy), pilot=np.full(2000, 2501.0))
    c = certificate(healthy, method="split", rollouts=rollouts)
    assert (c.ucbog, c.split, c.largest_loss) == (math.inf, None, math.inf)
    assert not c.certified
    assert Certificate.from_json(c.to_json()) == c
    assert "split" not in certificate(healthy, rollouts=rollouts).intervals


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_no_bound_is_below_the_mean_gap_or_above_the_range_of_returns(healthy, method, size):
    gaps, gains = np.minimum(size * healthy, 2200).astype(np.float32), Effort(np.array([0.0, 900.0]), 3)
    c = certificate(gaps, method=method, rollouts=rollouts_of(gaps, 0.3), effort=gains, n_b=1)
    assert c.mean_gap <= c.ucbog <= 2500
    assert max(c.claims.values()) <= 2500
    assert c.bounded == (c.ucbog < 2500)


def test_it_speaks(healthy):
    c = certificate(healthy)
    assert str(c) == (
        f"Certified: on an unseen domain it loses on average at most {figure(c.ucbog)} of return (of 2500), "
        "with probability ≈ 95 %; the threshold was 50."
    )
    assert str(certificate(healthy, threshold=1.0)).startswith("Undecided: on an unseen domain it may lose ")
    unknown = dataclasses.replace(c, ucbog=math.inf, verdict="undecided")
    assert str(unknown) == "Undecided: there is no upper bound on what it loses on an unseen domain."


def test_the_effort_margin_is_part_of_what_is_claimed(healthy):
    gains = Effort(np.array([0.5, 1.0, 3.0, 1.5]), 3)
    c = certificate(healthy, effort=gains, method="student_t_reference")
    now, then = 0.05 * (1 - EFFORT_SHARE), 0.05 * EFFORT_SHARE
    interval = bootstrap.student_t(KEY, jnp.asarray(healthy), now, 1000, "reference")
    assert c.ucbog == pytest.approx(float(interval) + gains.margin(then), rel=1e-5)
    assert c.claims[c.method] == c.ucbog
    assert (c.effort_margin, c.effort_gain, c.effort_references) == (gains.margin(then), 1.5, 4)
    assert c.alpha + c.effort_alpha == pytest.approx(0.05)
    assert f"an effort margin of {figure(gains.margin(then))}: 4 references, trained 3 times as long" in str(c)
    assert certificate(healthy, c.ucbog, effort=gains, method=c.method).certified
    assert not certificate(healthy, math.nextafter(c.ucbog, 0), effort=gains, method=c.method).certified


def test_one_longer_reference_holds_no_bound(healthy):
    c = certificate(healthy, effort=Effort(np.array([1.0]), 3))
    assert not c.certified
    assert str(c).startswith("Undecided: there is no upper bound")
    assert Certificate.from_json(c.to_json()) == c
    assert json.loads(c.to_json())["effort_margin"] == "inf"


@pytest.mark.parametrize("bound", [12.5, math.inf])
def test_json_gives_back_the_same_value(healthy, bound):
    performance = measure(np.linspace(0, 2500, 300), 0.9, 0.0, 2500.0)
    effort = Effort(np.array([0.5, 1.0, 3.0, 1.5]), 3)
    c = certificate(healthy, performance=performance, notes=("look out",), effort=effort, starts={"the policy": 20})
    c = dataclasses.replace(c, ucbog=bound, intervals={**c.intervals, c.method: bound})
    assert Certificate.from_json(c.to_json()) == c
    assert json.loads(c.to_json())["ucbog"] == (12.5 if bound == 12.5 else "inf")


def test_a_foreign_document_is_refused(healthy):
    values = certificate(healthy).to_dict()
    with pytest.raises(ValueError, match="ucbog"):
        Certificate.from_dict({name: value for name, value in values.items() if name != "ucbog"})


def test_nothing_to_doubt_gives_no_warning(healthy):
    assert certificate(healthy).warnings == ()


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda x: -x, {}, "every gap was set to zero"),
        (lambda x: -x, {}, "did not improve"),
        (lambda x: np.where(np.arange(20)[:, None] < 3, -x, x), {}, "15 % of the references lost"),
        (lambda x: np.where(np.arange(40).reshape(20, 2) == 3, 5000.0, x), {}, "One domain carries"),
        (lambda x: x, {"method": "basic_pooled"}, "basic bootstrap decided"),
        (lambda x: x, {"improvement": 0.0}, "did not improve"),
        (lambda x: x, {"effort": None}, "strong enough was not measured"),
        (
            lambda x: x,
            {"effort": Effort(np.array([4.0, 6.0, 8.0, 9.0]), 3)},
            "still improving: trained 3 times as long",
        ),
        (lambda x: x, {"performance": measure(np.array([-5.0, 3.0]), 1.0, 0.0, 10.0)}, "outside 0 … 10"),
        (lambda x: x, {"performance": measure(np.full(50, 19.0), 1.0, 0.0, 2500.0)}, "earns almost nothing"),
        (lambda x: x, {"n_b": 19}, "n_b=19: the lowest of 19 resamples"),
        (
            lambda x: x,
            {"method": "split", "rollouts": rollouts_of(np.ones((20, 2)), 0.04), "threshold": 30.0},
            "Rare failures alone may cost",
        ),
        (lambda x: x, {"notes": ("a word from elsewhere",)}, "a word from elsewhere"),
    ],
)
def test_each_doubt_is_said_in_words(healthy, change, options, words):
    c = certificate(change(healthy), **options)
    assert words in " ".join(c.warnings)
    assert all(warning in str(c) for warning in c.warnings)


def test_gains_that_decide_nothing_are_no_reason_to_doubt(healthy):
    little = Effort(np.full(4, 0.9), 3)
    assert not certificate(healthy / 10, effort=little).warnings  # of a threshold of 50
    assert certificate(healthy / 10, effort=little, threshold=10.0).warnings


def test_where_nobody_can_earn_more_weak_references_are_no_reason_to_doubt():
    best, rng = SUBJECT.max_return, np.random.default_rng(3)
    unseen, pilot = (np.where(rng.random(size) < 0.01, 1000.0, best) for size in (20_000, 2000))
    nothing, all_there_is = np.zeros((20, 2)), np.full((20, 2, 3), best)
    perfect = Rollouts(all_there_is, all_there_is, unseen, pilot)
    c = certificate(nothing, method="split", rollouts=perfect, improvement=0.0)
    assert c.split is not None and c.split.ordinary.bound == 0.0
    assert c.ucbog == pytest.approx(15.0, rel=0.3)  # 1 % of the machines lose 1500, whatever a reference does
    assert c.warnings == ()
    merely_good = Rollouts(all_there_is - 100.0, all_there_is - 100.0, unseen - 100.0, pilot - 100.0)
    assert "did not improve" in " ".join(
        certificate(nothing, method="split", rollouts=merely_good, improvement=0.0).warnings
    )


def test_few_references_are_a_reason_to_doubt(healthy):
    few = dataclasses.replace(certificate(healthy), n_G=9)
    assert "Only 9 references" in " ".join(doubts(few))


def test_single_negative_gaps_of_a_good_reference_are_no_reason_to_doubt(healthy):
    raw = np.stack([healthy[:, 0] + 20, -healthy[:, 1] / 10], axis=1)  # best on average, not on each domain
    c = certificate(raw)
    assert c.negative_share == pytest.approx(0.5)
    assert not c.warnings


def test_one_large_gap_is_no_reason_to_doubt_the_split(healthy):
    raw = np.where(np.arange(40).reshape(20, 2) == 3, 2000.0, healthy)
    c = certificate(raw, method="split", rollouts=rollouts_of(raw), threshold=1e3)
    assert c.largest_gap_share > 0.5
    assert c.warnings == ()


def test_a_later_candidate_says_that_others_were_tested_before(healthy):
    def said(**others) -> bool:
        return any("candidate number" in w for w in certificate(healthy, **{"trial": third, **others}).warnings)

    third = Trial(3, 3, spending="none")
    assert certificate(healthy, trial=third).certified
    (warning,) = [w for w in certificate(healthy, trial=third).warnings if "candidate number" in w]
    assert "candidate number 3" in warning
    assert "at most 15 %" in warning
    assert not said(trial=Trial(1, 3, spending="none"))
    assert not said(trial=Trial(3, 3))
    assert not said(threshold=1e-6)


def test_spending_alpha_raises_the_bound_and_is_said(healthy):
    plain, strict = (
        certificate(healthy, trial=Trial(2, 2, spending=s), method="student_t_reference") for s in ("none", "cubes")
    )
    assert strict.ucbog > plain.ucbog
    assert (strict.alpha, strict.spending, strict.confidence) == (Trial(2, 2).alpha(0.05), "cubes", 0.95)


def test_performance_is_the_finite_sample_bounds():
    returns = np.random.default_rng(0).uniform(1000, 2500, 2000)
    p = measure(returns, 0.97, 0.0, 2500.0, 0.05, 0.2)
    assert p.mean_lower == bounds.betting(returns, 0.0, 2500.0, 0.05)
    assert p.worst_lower == bounds.worst_share_mean(returns, 0.0, 2500.0, 0.2, 0.05)
    assert p.worst_mean == pytest.approx(np.sort(returns)[:400].mean())
    assert p.mean_lower < p.mean and p.worst_lower < p.worst_mean < p.mean
    assert f"Earns at least {p.mean_lower:.0f} on average" in str(p)
    assert "worst 20 % (2000 unseen domains, 95 % confidence each)" in str(p)


def test_fingerprints_differ_with_every_parameter():
    policy = fnn(KEY, make("catapult"), (2,))
    moved = dataclasses.replace(policy, biases=(policy.biases[0] + 1e-6, policy.biases[1]))
    assert fingerprint(policy) == fingerprint(fnn(KEY, make("catapult"), (2,)))
    assert fingerprint(policy) != fingerprint(moved)
    assert fingerprint(lambda x: x) is None


def test_unknown_methods_get_a_suggestion(healthy):
    with pytest.raises(ValueError, match="did you mean method='basic_pooled'"):
        certificate(healthy, method="basic_pool")


@pytest.mark.parametrize(("value", "text"), [(2500.0, "2500"), (41.23, "41.2"), (0.0123, "0.0123"), (2.65e-6, "0")])
def test_figures_are_written_as_people_do(value, text):
    assert figure(value) == text


def test_percentages():
    assert [percent(p) for p in (0.95, 0.05, 0.999, 0.5, 1.0)] == ["95 %", "5 %", "99.9 %", "50 %", "100 %"]


def test_one_about_a_fitted_table_names_its_recordings_and_says_whose_machine_it_is(healthy):
    subject = dataclasses.replace(SUBJECT, recordings=("a" * 64, "b" * 64))
    c = certify(KEY, gaps_of(healthy), subject, threshold=50.0, method="studentized_reference", effort=EXACT)
    assert c.recordings == ("a" * 64, "b" * 64)
    assert "It is about one machine, of which there are 2 recordings (aaaaaaaaaaaa, bbbbbbbbbbbb)" in str(c)
    assert Certificate.from_json(c.to_json()) == c
    assert "one machine" not in str(certificate(healthy)) and certificate(healthy).recordings == ()
