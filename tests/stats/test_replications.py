"""MRP, I2RP and A2RP against scipy, plain numpy and their exact level for normal gaps."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from spota.stats.bootstrap import student_t
from spota.stats.replications import a2rp, i2rp, mrp


def test_mrp_is_students_interval():
    gaps = np.random.default_rng(0).exponential(size=20).astype(np.float32)
    want = scipy.stats.ttest_1samp(gaps, 0.0, alternative="less").confidence_interval(0.9).high
    got = mrp(jnp.asarray(gaps), alpha=0.1)
    np.testing.assert_allclose([got.gap, got.variance, got.upper], [gaps.mean(), gaps.var(ddof=1), want], rtol=1e-5)


def test_mrp_of_reference_means_is_student_t_by_reference():
    gaps = jax.random.exponential(jax.random.key(1), (12, 5))
    np.testing.assert_allclose(mrp(gaps.mean(1)).upper, student_t(jax.random.key(0), gaps, unit="reference"), rtol=1e-5)


def test_two_replication_procedures_by_hand():
    gaps = jnp.array([[1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 4.0, 4.0]])  # means 3 and 2, variances 14/3 and 16/3
    independent, averaged = i2rp(gaps), a2rp(gaps)
    np.testing.assert_allclose([independent.gap, independent.variance], [3, 16 / 3], rtol=1e-6)
    np.testing.assert_allclose(independent.upper, 3 + 2.353363 * math.sqrt(16 / 3 / 4), rtol=1e-6)  # t_{3,5%}
    np.testing.assert_allclose([averaged.gap, averaged.variance], [2.5, 5], rtol=1e-6)
    np.testing.assert_allclose(averaged.upper, 2.5 + 1.943180 * math.sqrt(5 / 8), rtol=1e-6)  # t_{6,5%}


@pytest.mark.parametrize("n", [2, 5, 50])
@pytest.mark.parametrize("procedure", [i2rp, a2rp, lambda gaps: mrp(gaps[0])], ids=["i2rp", "a2rp", "mrp"])
def test_level_is_exact_for_normal_gaps(procedure, n):
    gaps = 1 + jax.random.normal(jax.random.key(n), (20_000, 2, n))
    covered = jax.vmap(procedure)(gaps).upper >= 1
    assert abs(covered.mean() - 0.95) < 4 * math.sqrt(0.05 * 0.95 / 20_000)


def test_a_coincidence_in_one_replication_does_not_close_the_interval():
    gaps = jnp.stack([jnp.zeros(10), jnp.arange(10.0)])  # the first optimum is the candidate itself
    assert i2rp(gaps).upper > 0
    assert a2rp(gaps).upper > 0


@pytest.mark.parametrize("n", [1, 2, 7])
def test_equal_gaps(n):
    want = 0.25 if n > 1 else math.inf  # one sample has no variance
    for result in (mrp(jnp.full(n, 0.25)), i2rp(jnp.full((2, n), 0.25)), a2rp(jnp.full((2, n), 0.25))):
        assert result.gap == 0.25
        assert result.variance == (0 if n > 1 else math.inf)
        assert result.upper == pytest.approx(want)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mrp(jnp.ones(3), alpha=1.0), "alpha=1.0"),
        (lambda: mrp(jnp.ones(0)), "gap_estimates has shape"),
        (lambda: i2rp(jnp.full((2, 3), jnp.nan)), "gaps has 6 NaN"),
        (lambda: a2rp(jnp.ones((2, 0))), "gaps has shape"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
