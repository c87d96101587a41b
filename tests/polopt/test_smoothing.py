"""The kernel around training domains: a share of their spread, inside the support, whole where the law is whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.domain import DomainDistribution, Empirical, Parameter
from spota.envs import make
from spota.marginals import Bernoulli, Constant, Integers, NumPyro, TruncatedNormal, Uniform
from spota.polopt.analytic import Analytic
from spota.polopt.rows import all_rows
from spota.polopt.smoothing import smoothed

TABLE = make("cart-pole").domain
KEY = jax.random.key(0)


def moved(table: DomainDistribution, n: int, width: float, rollouts: int = 4000):
    domains = table.sample(jax.random.key(1), n)
    rows = all_rows(domains, jax.random.key(2), rollouts)
    return domains, rows, smoothed(KEY, table, domains, rows, width)


def test_mean_and_spread_of_the_domains_stay_and_the_kernel_has_its_share():
    table = DomainDistribution(mass=Parameter(TruncatedNormal(1.0, 0.1, cut=10.0)))
    domains, _, near = moved(table, 5, 0.5)
    mean, std = float(domains["mass"].mean()), float(domains["mass"].std())
    assert float(near.domains["mass"].mean()) == pytest.approx(mean, abs=0.02 * std)
    assert float(near.domains["mass"].std()) == pytest.approx(std, rel=0.02)
    around_first = np.asarray(near.domains["mass"])[:4000]
    assert around_first.std() == pytest.approx(0.5 * std, rel=0.03)
    assert around_first.mean() == pytest.approx(mean + 0.75**0.5 * (float(domains["mass"][0]) - mean), abs=0.03 * std)


def test_nothing_piles_up_at_the_ends_of_the_support():
    _, _, near = moved(DomainDistribution(delay=Parameter(Uniform(0.0, 1.0))), 50, 0.9)
    values = np.asarray(near.domains["delay"])
    assert np.mean((values == 0) | (values == 1)) < 1e-3


def test_one_domain_alone_and_a_width_of_zero_move_nothing():
    for n, width in ((1, 1.0), (5, 0.0)):
        _, rows, near = moved(TABLE, n, width, rollouts=10)
        for name in rows.domains:
            np.testing.assert_array_equal(near.domains[name], rows.domains[name])


def test_every_smoothed_domain_of_a_platform_is_a_domain_of_it():
    for name in ("cart-pole", "ball-balancer", "qube"):
        table = make(name).domain
        _, _, near = moved(table, 10, 1.0, rollouts=100)
        table.check(near.domains)
        for parameter, column in near.domains.items():
            low, high = table[parameter].marginal.support
            assert float(column.min()) >= np.float32(low) and float(column.max()) <= np.float32(high)


def test_the_delay_moves_by_whole_steps():
    _, rows, near = moved(TABLE, 10, 0.5, rollouts=100)
    delay = np.asarray(near.domains["action_delay"])
    np.testing.assert_array_equal(delay, np.round(delay))
    assert (delay != np.asarray(rows.domains["action_delay"])).any()


def test_constants_and_coins_stay_and_whole_laws_stay_whole():
    from numpyro.distributions import Poisson

    table = DomainDistribution(
        fixed=Parameter(Constant(3.0)), coin=Parameter(Bernoulli(0.5)), count=Parameter(NumPyro(Poisson(20.0))),
        steps=Parameter(Integers(0, 9)),
    )  # fmt: skip
    _, rows, near = moved(table, 8, 1.0, rollouts=50)
    for name in ("fixed", "coin"):
        np.testing.assert_array_equal(near.domains[name], rows.domains[name])
    for name in ("count", "steps"):
        np.testing.assert_array_equal(near.domains[name], jnp.round(near.domains[name]))


def test_observed_whole_numbers_stay_whole():
    table = Empirical({"delay": [0.0, 3.0, 9.0, 4.0], "mass": [0.1, 0.25, 0.2, 0.3]})
    _, rows, near = moved(table, 6, 0.7, rollouts=50)
    np.testing.assert_array_equal(near.domains["delay"], jnp.round(near.domains["delay"]))
    assert not np.array_equal(near.domains["mass"], rows.domains["mass"])


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_zero_and_one_is_refused(share):
    with pytest.raises(ValueError, match=f"smoothing = {share}"):
        Analytic(smoothing=share)
