"""Finite-sample bounds: measured coverage on hard distributions, closed forms, and how tight they are."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from spota.stats.bounds import betting, worst_share_mean

DISTRIBUTIONS = {
    "beta": scipy.stats.beta(2.0, 5.0),
    "beta at both ends": scipy.stats.beta(0.2, 0.2),
    "rare success": scipy.stats.bernoulli(0.03),
    "rare failure": scipy.stats.bernoulli(0.9),
    "near-constant": scipy.stats.uniform(0.7, 1e-3),
}


def draw(law, seed, size):
    return np.asarray(law.rvs(size=size, random_state=np.random.default_rng(seed)), dtype=np.float64)


def covered_share(bound, law, truth, n, n_sets=400):
    """Share of data sets, scaled to [-2, 3], whose bound is not above the truth."""
    data = 5 * draw(law, n, (n_sets, n)) - 2
    return np.mean([bound(x, -2.0, 3.0) <= 5 * truth - 2 + 1e-12 for x in data])


@pytest.mark.parametrize("law", DISTRIBUTIONS)
def test_coverage_of_the_mean_is_at_least_nominal(law):
    for n in (5, 40):
        share = covered_share(betting, DISTRIBUTIONS[law], DISTRIBUTIONS[law].mean(), n)
        assert share >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


def worst_mean(law, epsilon):
    return scipy.integrate.quad(law.ppf, 0, epsilon, limit=500)[0] / epsilon


@pytest.mark.parametrize("law", DISTRIBUTIONS)
@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0])
def test_coverage_of_the_worst_share_is_at_least_nominal(law, epsilon):
    law = DISTRIBUTIONS[law]

    def bound(x, low, high):
        return worst_share_mean(x, low, high, epsilon)

    for n in (10, 100):
        share = covered_share(bound, law, worst_mean(law, epsilon), n)
        assert share >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)


def test_worst_share_is_the_lower_tail_approached_from_below():
    law = DISTRIBUTIONS["beta"]
    got = worst_share_mean(draw(law, 0, 100_000), 0.0, 1.0, epsilon=0.25)
    truth = worst_mean(law, 0.25)
    assert truth - 0.01 < got < truth < law.mean() - 0.1


def test_worst_share_equals_the_integral_of_the_shifted_quantile_function():
    x, epsilon, alpha = draw(DISTRIBUTIONS["beta"], 1, 37), 0.6, 0.1
    delta = math.sqrt(math.log(1 / alpha) / (2 * 37))
    u = (np.arange(600_000) + 0.5) / 600_000 * epsilon
    rank = np.ceil(37 * (u - delta)).astype(int)
    quantile = np.where(rank >= 1, np.sort(x)[np.clip(rank - 1, 0, 36)], 0.0)
    assert worst_share_mean(x, 0.0, 1.0, epsilon, alpha) == pytest.approx(quantile.mean(), abs=1e-5)


def test_worst_share_of_too_few_samples_is_the_lowest_value():
    x = np.full(10, 0.9)  # δ = 0.39
    assert worst_share_mean(x, -1.0, 1.0, epsilon=0.3) == -1
    assert worst_share_mean(x, -1.0, 1.0, epsilon=0.5) > -1


def capital_by_loop(m, x, alpha):
    """The gambler sample by sample; returns the largest capital on the way."""
    capital, most, seen, squares = 1.0, 0.0, 0.5, 0.25
    for t, value in enumerate(x, start=1):
        stake = min(math.sqrt(2 * math.log(1 / alpha) / (len(x) * squares / t)), 0.75 / m)
        capital *= 1 + stake * (value - m)
        most = max(most, capital)
        seen += value
        squares += (value - seen / (t + 1)) ** 2
    return most


@pytest.mark.parametrize("law", DISTRIBUTIONS)
def test_betting_stops_where_the_gambler_reaches_his_aim(law):
    x = draw(DISTRIBUTIONS[law], 4, 30)
    bound = betting(x, 0.0, 1.0, 0.05)
    if bound > 0:
        assert capital_by_loop(bound, x, 0.05) == pytest.approx(20, rel=1e-6)
    assert all(capital_by_loop(m, x, 0.05) < 20 for m in np.linspace(bound + 1e-6, 1, 50))


def test_capital_falls_with_the_mean_that_is_bet_against():
    x = draw(DISTRIBUTIONS["beta at both ends"], 5, 30)
    capital = [capital_by_loop(m, x, 0.05) for m in np.linspace(0.01, 0.99, 99)]
    assert (np.diff(capital) <= 1e-12).all()


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_betting_is_tighter_than_hoeffding_for_small_variance(n):
    x = draw(DISTRIBUTIONS["near-constant"], 6, n)
    hoeffding = x.mean() - math.sqrt(math.log(20) / (2 * n))
    assert hoeffding < betting(x, 0.0, 1.0) < 0.7005


def test_extremes():
    assert betting(np.zeros(10), 0.0, 1.0) == 0
    assert betting(np.array([0.5]), 0.0, 1.0) <= 0.5
    assert 0.9 < betting(np.ones(10_000), 0.0, 1.0) <= 1
    assert betting(jnp.full(10_000, 250.0), 0.0, 2500.0) == pytest.approx(250, rel=0.2)  # a JAX array, other units


@pytest.mark.parametrize(
    ("x", "low", "high", "alpha", "message"),
    [
        ([0.5, 1.5], 0.0, 1.0, 0.05, "samples from 0.5 to 1.5 leave the promised range"),
        ([0.5, math.nan], 0.0, 1.0, 0.05, "leave the promised range"),
        ([0.5], 1.0, 0.0, 0.05, "low=1.0, high=0.0 is no range"),
        ([0.5], 0.0, math.inf, 0.05, "is no range"),
        ([], 0.0, 1.0, 0.05, "samples is empty"),
        ([0.5], 0.0, 1.0, 5.0, "alpha=5.0: .* write alpha=0.05"),
    ],
)
def test_errors_say_what_to_type(x, low, high, alpha, message):
    with pytest.raises(ValueError, match=message):
        betting(np.array(x), low, high, alpha)


@pytest.mark.parametrize("epsilon", [0.0, 1.5])
def test_worst_share_must_be_a_share(epsilon):
    with pytest.raises(ValueError, match=r"epsilon=.*write epsilon=0.1"):
        worst_share_mean(np.ones(3), 0.0, 1.0, epsilon)
