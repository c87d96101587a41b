"""Intervals against scipy, closed forms and the coverage figures that are known for the basic bootstrap."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.scipy.special import log_ndtr

from spota.stats import bootstrap
from spota.stats.bootstrap import INTERVALS, UNITS, all_intervals, bca, percentile, student_t, studentized, ucbog

KEY = jax.random.key(7)


def exponential_gaps(seed, n_G=20, n_r=3):
    return jax.random.exponential(jax.random.key(seed), (n_G, n_r))


def unit_values(gaps, unit):
    return np.asarray(gaps).ravel() if unit == "pooled" else np.asarray(gaps).mean(1)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("ours", "method"), [(ucbog, "basic"), (percentile, "percentile"), (bca, "BCa")])
def test_interval_equals_scipy_within_resampling_error(ours, method, unit):
    n_b = 20_000
    for seed in (1, 2):
        x = unit_values(exponential_gaps(seed), unit)
        theirs = scipy.stats.bootstrap(
            (x,), np.mean, confidence_level=0.95, n_resamples=n_b, alternative="less", method=method, rng=seed
        )
        error = 2 * theirs.standard_error * math.sqrt(0.05 * 0.95 / n_b) / scipy.stats.norm.pdf(1.645)
        got = ours(KEY, exponential_gaps(seed), n_b=n_b, unit=unit)
        assert abs(got - theirs.confidence_interval.high) < 4 * error


@pytest.mark.parametrize("unit", UNITS)
def test_bootstrap_t_equals_its_loop(unit):
    x = unit_values(exponential_gaps(3), unit)
    rng, n_b = np.random.default_rng(0), 20_000
    draws = x[rng.integers(x.size, size=(n_b, x.size))]
    t = (draws.mean(1) - x.mean()) / (draws.std(1, ddof=1) / math.sqrt(x.size))
    error = 4 * math.sqrt(2 * 0.05 * 0.95 / n_b)  # of the level at which two sets of resamples are cut
    high, low = x.mean() - np.quantile(t, [0.05 - error, 0.05 + error]) * x.std(ddof=1) / math.sqrt(x.size)
    assert low < studentized(KEY, exponential_gaps(3), n_b=n_b, unit=unit) < high


@pytest.mark.parametrize("unit", UNITS)
def test_student_t_is_scipys(unit):
    x = unit_values(exponential_gaps(4), unit)
    want = scipy.stats.ttest_1samp(x, 0.0, alternative="less").confidence_interval(0.95).high
    np.testing.assert_allclose(student_t(KEY, exponential_gaps(4), unit=unit), want, rtol=1e-5)


def test_two_units_have_three_bootstrap_means():
    """Of two values the mean is the lower one in a quarter of the resamples: Q_0.1 is that value itself."""
    gaps = jnp.array([[1.0], [3.0]])
    assert ucbog(KEY, gaps, alpha=0.1) == pytest.approx(2 * 2 - 1)
    assert percentile(KEY, gaps, alpha=0.1) == pytest.approx(3)


def test_resample_counts_are_multinomial():
    draw = jax.jit(lambda i: bootstrap._counts(jax.random.fold_in(KEY, i), 5))
    counts = np.concatenate([draw(i) for i in range(160)])
    assert (counts.sum(1) == 5).all()
    np.testing.assert_allclose(counts.mean(0), np.ones(5), atol=0.02)
    np.testing.assert_allclose(np.cov(counts.T), np.eye(5) - 0.2, atol=0.03)  # m p (1−p) and −m p²


def test_more_resamples_add_to_the_first_ones():
    y = jnp.linspace(-1, 1, 6)
    some, more = (np.stack(bootstrap._resample(KEY, y, n_b)) for n_b in (50, 600))
    np.testing.assert_allclose(more[:, :50], some, atol=1e-6)
    chunk = bootstrap.CHUNK
    assert not np.array_equal(more[:, :chunk], more[:, chunk : 2 * chunk])


def independent(n_G, n_r):
    return lambda key: jax.random.exponential(key, (n_G, n_r))


def correlated(n_G, n_r, correlation):
    """Exponential gaps by a Gaussian copula: normals of one row correlate by `correlation`."""

    def draw(key):
        k_row, k_cell = jax.random.split(key)
        row = jnp.broadcast_to(jax.random.normal(k_row, (n_G, 1)), (n_G, n_r))
        normal = math.sqrt(correlation) * row
        normal += math.sqrt(1 - correlation) * jax.random.normal(k_cell, (n_G, n_r))
        return -log_ndtr(normal)

    return draw


def coverage(interval, draw, unit, n_sets=4000, n_groups=8):
    """Percentage of nominal 95 % bounds above the true mean 1; a group of data sets shares its resamples."""

    def group(key):
        k_data, k_bootstrap = jax.random.split(key)
        data = jax.vmap(draw)(jax.random.split(k_data, n_sets // n_groups))
        return jax.vmap(lambda gaps: interval(k_bootstrap, gaps, 0.05, 1000, unit))(data) >= 1.0

    keys = jax.random.split(jax.random.key(0), n_groups)
    return 100 * float(jnp.mean(jax.jit(lambda k: jax.lax.map(group, k))(keys)))


@pytest.mark.parametrize(
    ("draw", "unit", "known"),
    [
        (independent(20, 1), "pooled", 86.8),
        (independent(20, 5), "pooled", 91.9),
        (correlated(20, 20, 0.3), "pooled", 71.8),
        (correlated(20, 20, 0.3), "reference", 89.7),
    ],
    ids=["n_r=1", "n_r=5", "correlated, pooled", "correlated, by reference"],
)
def test_known_coverage_of_the_basic_bootstrap(draw, unit, known):
    assert abs(coverage(ucbog, draw, unit) - known) < 2


def test_bootstrap_t_repairs_the_coverage():
    assert coverage(studentized, correlated(20, 20, 0.3), "reference") > 93


@pytest.mark.parametrize("name", INTERVALS)
def test_vmap_and_jit_give_what_single_calls_give(name):
    data = jnp.stack([exponential_gaps(seed, 3, 2) for seed in range(3)])

    def bound(gaps):
        return INTERVALS[name](KEY, gaps, 0.1, 50, "reference")

    np.testing.assert_allclose(jax.jit(jax.vmap(bound))(data), [bound(gaps) for gaps in data], rtol=1e-5)


def test_all_intervals_holds_every_method_and_unit():
    gaps = exponential_gaps(5)
    shown = all_intervals(KEY, gaps, 0.1, 200)
    assert set(shown) == {f"{name}_{unit}" for name in INTERVALS for unit in UNITS}
    assert all(type(value) is float for value in shown.values())
    assert shown["basic_pooled"] == float(ucbog(KEY, gaps, 0.1, 200))
    assert shown["bca_reference"] == float(bca(KEY, gaps, 0.1, 200, "reference"))


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e6])
@pytest.mark.parametrize("shape", [(3, 2), (2, 1)])
def test_equal_gaps_give_their_value(value, shape):
    np.testing.assert_allclose(list(all_intervals(KEY, jnp.full(shape, value), n_b=50).values()), value, rtol=1e-6)


def test_one_unit_has_no_bound():
    assert all(bound == math.inf for bound in all_intervals(KEY, jnp.ones((1, 1)), n_b=50).values())
    one_reference = all_intervals(KEY, exponential_gaps(0, 1, 6), n_b=50)
    assert {name for name, bound in one_reference.items() if bound == math.inf} == {
        f"{name}_reference" for name in INTERVALS
    }


def test_mostly_clipped_gaps_hold_no_bootstrap_t_bound():
    gaps = jnp.zeros((20, 1)).at[0].set(5.0)  # 36 % of the resamples are all zero
    assert studentized(KEY, gaps) == math.inf
    assert ucbog(KEY, gaps) == pytest.approx(0.5)  # 2 · 0.25 − 0


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 2.0, -5.0, 1e4, 1e20]), min_size=6, max_size=6),
    alpha=st.sampled_from([1e-6, 0.05, 0.5, 0.999]),
    n_b=st.sampled_from([1, 50]),
)
def test_never_nan(values, alpha, n_b):
    bounds = all_intervals(KEY, jnp.asarray(values, jnp.float32).reshape(3, 2), alpha, n_b)
    assert not any(math.isnan(bound) or bound == -math.inf for bound in bounds.values()), bounds


def test_scale_and_shift_carry_over():
    gaps = exponential_gaps(6)
    for interval in INTERVALS.values():
        want = 1e12 * interval(KEY, gaps, n_b=200) + 3e12
        np.testing.assert_allclose(interval(KEY, 1e12 * gaps + 3e12, n_b=200), want, rtol=1e-5)


@pytest.mark.parametrize("interval", INTERVALS.values())
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, r"alpha=0.0: .* write alpha=0.05"),
        ({"alpha": 95.0}, r"alpha=95.0: .* write alpha=0.05"),
        ({"alpha": float("nan")}, r"alpha=nan"),
        ({"n_b": 0}, r"n_b=0: .* write n_b=1000"),
        ({"unit": "refrence"}, r"did you mean unit='reference'\?"),
        ({"unit": "xyz"}, r"write unit='pooled'"),
        ({"gaps": jnp.zeros((0, 3))}, r"shape \(0, 3\), no sample"),
        ({"gaps": jnp.array([[1.0, jnp.nan]])}, r"1 NaN or infinite of 2 samples"),
    ],
)
def test_errors_say_what_to_type(interval, arguments, message):
    with pytest.raises(ValueError, match=message):
        interval(KEY, **{"gaps": jnp.ones((2, 2))} | arguments)


@pytest.mark.parametrize("n_b", [1, 2, 5])
def test_no_bound_is_below_the_mean_however_few_the_resamples(n_b):
    for seed in range(20):
        gaps = exponential_gaps(seed, 4, 2)
        bounds = all_intervals(jax.random.key(seed), gaps, 0.05, n_b)
        assert min(bounds.values()) >= float(gaps.mean()) * (1 - 1e-6)


def test_no_bound_is_above_what_returns_can_differ_by():
    gaps = jnp.zeros((20, 1)).at[0].set(5.0)  # the bootstrap-t has no bound here
    free, kept = all_intervals(KEY, gaps), all_intervals(KEY, gaps, largest=0.6)
    assert free["studentized_reference"] == math.inf
    assert kept == {name: min(bound, 0.6) for name, bound in free.items()}
    assert kept["basic_pooled"] == pytest.approx(0.5)


def test_settings_that_cannot_give_the_confidence_are_named():
    assert not list(bootstrap.shortcomings(n_G=2, n_b=20, alpha=0.05))
    assert [text.split(":")[0] for text in bootstrap.shortcomings(1, 19, 0.05)] == ["n_G=1", "n_b=19"]
    (text,) = bootstrap.shortcomings(20, 1000, 0.0001)
    assert "takes 10000 at least; write n_b=200000" in text
