"""The kernel around training domains: its width, inside the support, whole where the law is whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.envs import make
from spota.polopt.analytic import Analytic
from spota.polopt.polished import Polished
from spota.polopt.ppo import PPO
from spota.polopt.rows import all_rows
from spota.polopt.smoothing import smoothed
from spota.polopt.surrogate import Surrogate
from spota.sim.domain import DomainDistribution, Empirical, Parameter
from spota.sim.marginals import Bernoulli, Constant, Integers, NumPyro, TruncatedNormal, Uniform

TABLE = make("cart-pole").domain
KEY = jax.random.key(0)


def moved(table: DomainDistribution, n: int, width: float, rollouts: int = 4000):
    rows = all_rows(table.sample(jax.random.key(1), n), jax.random.key(2), rollouts)
    return rows, smoothed(KEY, table, rows, width)


def test_the_kernel_has_its_width_in_standard_deviations_of_the_law():
    table = DomainDistribution(mass=Parameter(TruncatedNormal(1.0, 0.1, cut=10.0)))
    rows, near = moved(table, 5, 0.5)
    by = np.asarray(near.domains["mass"] - rows.domains["mass"])
    assert by.std() == pytest.approx(0.05, rel=0.03)
    assert by.mean() == pytest.approx(0.0, abs=0.002)


def test_nothing_piles_up_at_the_ends_of_the_support():
    _, near = moved(DomainDistribution(delay=Parameter(Uniform(0.0, 1.0))), 50, 0.9)
    values = np.asarray(near.domains["delay"])
    assert np.mean((values == 0) | (values == 1)) < 1e-3


def test_a_width_of_zero_moves_nothing():
    rows, near = moved(TABLE, 5, 0.0, rollouts=10)
    for name in rows.domains:
        np.testing.assert_array_equal(near.domains[name], rows.domains[name])


@pytest.mark.parametrize(("n", "moves"), [(99, True), (100, False)])
def test_a_hundred_domains_need_no_kernel(n, moves):
    domains = TABLE.sample(KEY, n)
    tried, _ = PPO(smoothing=1.0).tried(make("cart-pole"), domains, KEY, 1)
    assert np.array_equal(tried.domains["pole_mass"], domains["pole_mass"]) != moves
    for kind in (Analytic, PPO, Surrogate, Polished):
        assert kind(smoothing=0.5).width(n) == (0.5 if moves else 0.0)


def test_every_smoothed_domain_of_a_platform_is_a_domain_of_it():
    for name in ("cart-pole", "ball-balancer", "qube"):
        table = make(name).domain
        _, near = moved(table, 10, 1.0, rollouts=100)
        table.check(near.domains)
        for parameter, column in near.domains.items():
            low, high = table[parameter].marginal.support
            assert float(column.min()) >= np.float32(low) and float(column.max()) <= np.float32(high)


def test_the_delay_moves_by_whole_steps():
    rows, near = moved(TABLE, 10, 0.5, rollouts=100)
    delay = np.asarray(near.domains["action_delay"])
    np.testing.assert_array_equal(delay, np.round(delay))
    assert (delay != np.asarray(rows.domains["action_delay"])).any()


def test_constants_and_coins_stay_and_whole_laws_stay_whole():
    from numpyro.distributions import Poisson

    table = DomainDistribution(
        fixed=Parameter(Constant(3.0)), coin=Parameter(Bernoulli(0.5)), count=Parameter(NumPyro(Poisson(20.0))),
        steps=Parameter(Integers(0, 9)),
    )  # fmt: skip
    rows, near = moved(table, 8, 1.0, rollouts=50)
    for name in ("fixed", "coin"):
        np.testing.assert_array_equal(near.domains[name], rows.domains[name])
    for name in ("count", "steps"):
        np.testing.assert_array_equal(near.domains[name], jnp.round(near.domains[name]))


def test_observed_whole_numbers_stay_whole():
    table = Empirical({"delay": [0.0, 3.0, 9.0, 4.0], "mass": [0.1, 0.25, 0.2, 0.3]})
    rows, near = moved(table, 6, 0.7, rollouts=50)
    np.testing.assert_array_equal(near.domains["delay"], jnp.round(near.domains["delay"]))
    assert not np.array_equal(near.domains["mass"], rows.domains["mass"])


def test_a_negative_width_is_refused():
    with pytest.raises(ValueError, match="smoothing = -0.1"):
        Analytic(smoothing=-0.1)
