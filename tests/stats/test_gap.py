"""Gap samples and outlier rejection against plain loops; the bias against exact values of the catapult."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spota.stats.gap import best_known_returns, gap_samples, lost, reject_outliers, stand_ins


def rejected_by_loops(gaps, cross, rule):
    """Outlier rejection word by word: (final, replaced, clipped) of every k and i."""
    final, replaced, clipped = gaps.copy(), np.zeros(gaps.shape, bool), np.zeros(gaps.shape, bool)
    n_G, n_r = gaps.shape
    for k in range(n_G):
        for i in range(n_r):
            if gaps[k, i] >= 0:
                continue
            offers = [cross[other, k, i] for other in range(n_G) if other != k]
            offers = [offer for offer in offers if offer > gaps[k, i]]
            if offers:
                final[k, i] = offers[0] if rule == "first" else max(offers)
                replaced[k, i] = True
            if final[k, i] < 0:
                final[k, i], clipped[k, i] = 0.0, True
    return final, replaced, clipped


@settings(max_examples=25, deadline=None)
@given(
    n_G=st.sampled_from([1, 4]),
    shift=st.floats(-2, 2),
    seed=st.integers(0, 9999),
    rule=st.sampled_from(["first", "best"]),
)
def test_rejection_equals_the_loops_of_the_text(n_G, shift, seed, rule):
    rng = np.random.default_rng(seed)
    cross = (rng.normal(size=(n_G, n_G, 3)) + shift).round(1).astype(np.float32)  # rounded: with ties
    gaps = cross[np.arange(n_G), np.arange(n_G)]
    result = reject_outliers(jnp.asarray(gaps), jnp.asarray(cross), rule)
    final, replaced, clipped = rejected_by_loops(gaps, cross, rule)
    np.testing.assert_array_equal(result.final, final)
    np.testing.assert_array_equal(result.replaced, replaced)
    np.testing.assert_array_equal(result.clipped, clipped)
    np.testing.assert_array_equal(result.raw, gaps)
    np.testing.assert_allclose(result.negative_share, np.mean(gaps < 0), atol=1e-6)
    np.testing.assert_allclose(result.clipped_share, np.mean(clipped), atol=1e-6)


def three_references(own, second, third):
    """Reference 0 has the gap `own` on its one domain, where the others reach `second` and `third`."""
    gaps = jnp.array([[own], [1.0], [1.0]])
    return gaps, jnp.full((3, 3, 1), 9.0).at[:, 0, 0].set(jnp.array([own, second, third]))


@pytest.mark.parametrize(
    ("others", "first", "best"),
    [
        ((2.0, 5.0), 2.0, 5.0),  # both better: the first one, or the best one
        ((-4.0, 5.0), 5.0, 5.0),  # the first is worse than the current gap: passed over
        ((-1.0, 5.0), 0.0, 5.0),  # the first is better but negative: the break stops there, zero is left
        ((-4.0, -5.0), 0.0, 0.0),  # all worse than the candidate
    ],
)
def test_first_means_above_the_current_gap_not_above_zero(others, first, best):
    gaps, cross = three_references(-3.0, *others)
    assert reject_outliers(gaps, cross, "first").final[0, 0] == first
    assert reject_outliers(gaps, cross, "best").final[0, 0] == best


def judged_by_loops(gaps, cross):
    """The third rule word by word: who stands for each reference, and the gaps of that policy."""
    n_G = len(gaps)
    chosen, final = list(range(n_G)), gaps.copy()
    for k in range(n_G):
        if gaps[k].mean() >= 0:
            continue
        means = {other: cross[other, k].mean() for other in range(n_G) if other != k}
        best = max(means, key=lambda other: means[other], default=n_G)
        won = means.get(best, 0.0) > 0
        chosen[k], final[k] = (best, cross[best, k]) if won else (n_G, 0.0)
    return chosen, final


@settings(max_examples=25, deadline=None)
@given(n_G=st.sampled_from([1, 4]), shift=st.floats(-1, 1), seed=st.integers(0, 9999))
def test_a_reference_is_judged_by_its_mean_as_the_loops_do(n_G, shift, seed):
    cross = (np.random.default_rng(seed).normal(size=(n_G, n_G, 3)) + shift).astype(np.float32)
    gaps = cross[np.arange(n_G), np.arange(n_G)]
    chosen, final = judged_by_loops(gaps, cross)
    own, read = np.eye(n_G, dtype=bool)[:, :, None], (gaps.mean(axis=1) < 0)[None, :, None]
    arrays = jnp.asarray(gaps), jnp.asarray(np.where(read & ~own, cross, np.nan))
    result = reject_outliers(*arrays, "reference")
    np.testing.assert_array_equal(stand_ins(*arrays), chosen)
    np.testing.assert_array_equal(lost(arrays[0]), gaps.mean(axis=1) < 0)
    np.testing.assert_array_equal(result.final, final)
    candidate = np.array(chosen)[:, None] == np.full((1, 3), n_G)
    np.testing.assert_array_equal(result.clipped, candidate)
    np.testing.assert_array_equal(result.replaced, ~candidate & (chosen != np.arange(n_G))[:, None])


def test_a_reference_that_won_on_average_keeps_its_lost_domains():
    gaps, cross = (
        jnp.array([[9.0, -1.0], [1.0, -2.0]]),
        jnp.full((2, 2, 2), jnp.nan).at[0, 1].set(jnp.array([3.0, -2.0])),
    )
    result = reject_outliers(gaps, cross, "reference")
    np.testing.assert_array_equal(result.final, [[9.0, -1.0], [3.0, -2.0]])
    np.testing.assert_array_equal(result.replaced, [[False, False], [True, True]])


def test_an_unknown_that_is_read_is_not_hidden():
    gaps, cross = jnp.array([[-1.0], [1.0]]), jnp.full((2, 2, 1), jnp.nan)
    assert np.isnan(reject_outliers(gaps, cross, "reference").final[0, 0])


def test_returns_of_the_best_known_policy_have_the_gaps_of_the_rule():
    rng = np.random.default_rng(8)
    candidate, cross = rng.normal(size=(5, 3, 2)), rng.normal(-0.4, 1, size=(5, 5, 3, 2))
    reference = cross[np.arange(5), np.arange(5)]
    best = best_known_returns(*(jnp.asarray(x, jnp.float32) for x in (candidate, reference, cross)))
    own_gaps, cross_gaps = (jnp.asarray((x - candidate).mean(-1)) for x in (reference, cross))
    gaps = reject_outliers(own_gaps, cross_gaps, "reference")
    kinds = np.asarray(gaps.replaced[:, 0]), np.asarray(gaps.clipped[:, 0])
    assert kinds[0].any() and kinds[1].any() and not (kinds[0] | kinds[1]).all()
    np.testing.assert_allclose((np.asarray(best) - candidate).mean(-1), gaps.final, atol=1e-6)


@pytest.mark.parametrize("rule", ["first", "best"])
def test_what_is_not_needed_is_not_read(rule):
    gaps, cross = three_references(-3.0, 2.0, 1.0)
    unread = jnp.full((3, 3, 1), jnp.nan).at[1:, 0].set(cross[1:, 0])
    result = reject_outliers(gaps, unread, rule)
    np.testing.assert_array_equal(result.final, [[2.0], [1.0], [1.0]])


def test_nothing_beats_the_candidate():
    result = reject_outliers(-jnp.ones((4, 2)), -jnp.ones((4, 4, 2)))
    assert result.negative_share == result.clipped_share == 1
    assert not result.replaced.any()
    np.testing.assert_array_equal(result.final, jnp.zeros((4, 2)))


def test_rejection_under_jit_and_vmap():
    gaps = jax.random.normal(jax.random.key(0), (6, 4, 3))
    cross = jax.random.normal(jax.random.key(1), (6, 4, 4, 3))
    together = jax.jit(jax.vmap(reject_outliers))(gaps, cross).final
    for one, g, c in zip(together, gaps, cross, strict=True):
        np.testing.assert_array_equal(one, reject_outliers(g, c).final)


def test_unknown_rule_is_answered_with_a_proposal():
    with pytest.raises(ValueError, match=r"rule='frist' is not one of .* did you mean rule='first'\?"):
        reject_outliers(jnp.zeros((1, 1)), jnp.zeros((1, 1, 1)), "frist")


def test_gap_is_the_mean_difference_over_synchronised_rollouts():
    rng = np.random.default_rng(0)
    candidate = rng.normal(2000, 300, size=(4, 3, 5))
    reference = candidate + rng.normal(0.01, 0.001, size=(4, 3, 5))
    got = gap_samples(jnp.asarray(reference, jnp.float32), jnp.asarray(candidate, jnp.float32))
    np.testing.assert_allclose(got, (reference - candidate).mean(-1), atol=2e-4)  # float32 returns of 2000


# The catapult of the illustrative example: Mars and Venus, drawn with probability 0.3 and 0.7.
STIFFNESS, GRAVITY, OFFSET = np.array([1000.0, 3000.0]), np.array([3.71, 8.87]), np.array([0.5, 1.5])


def catapult_return(theta, planet):
    return -STIFFNESS[planet] * (theta - OFFSET[planet]) ** 2 / (2 * GRAVITY[planet])


def catapult_optimum(planets):
    """eq_ill_exmpl_polparamopt for every row of planets."""
    weight = (STIFFNESS / GRAVITY)[planets]
    return (weight * OFFSET[planets]).sum(-1, keepdims=True) / weight.sum(-1, keepdims=True)


def test_estimated_gap_exceeds_the_true_one_by_the_bias():
    rng = np.random.default_rng(3)
    planets = rng.binomial(1, 0.7, size=(100_000, 30))
    candidate = 1.2454075775 + 0.15 * rng.normal(size=(100_000, 1))  # independent of the sampled domains
    optimum_returns = catapult_return(catapult_optimum(planets), planets)
    candidate_returns = catapult_return(candidate, planets)
    estimate = gap_samples(*(jnp.asarray(x[None], jnp.float32) for x in (optimum_returns, candidate_returns)))[0]
    assert (estimate >= -1e-3).all()
    assert abs(estimate.mean() - 4.484523) < 4 * estimate.std() / np.sqrt(100_000)  # 3.573176 + 0.911347
