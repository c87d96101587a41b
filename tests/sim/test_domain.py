"""Domain distributions: draws, tables, files, and what they refuse."""

import tomllib

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from spota.sim.domain import DomainDistribution, Empirical, Parameter, count, repeat
from spota.sim.marginals import Bernoulli, Constant, Integers, NumPyro, TruncatedNormal, Uniform

NU = DomainDistribution(
    mass=Parameter(TruncatedNormal(1.0, 0.2), "kg", "mass of the arm", "m", sign="positive"),
    friction=Parameter(Uniform(0.0, 0.5), "-", "friction", nominal=0.1, sign="nonnegative"),
    delay=Parameter(Integers(0, 3), "steps"),
    broken=Parameter(Bernoulli(0.3)),
    gear=Parameter(Constant(3.0)),
    load=Parameter(NumPyro(dist.Gamma(2.0, 4.0)), "kg"),
)
KEY = jax.random.key(0)


def test_draws_have_the_moments_and_bounds_of_their_laws():
    drawn = {name: np.asarray(column, np.float64) for name, column in NU.sample(KEY, 20_000).items()}
    expected = {"mass": 1.0, "friction": 0.25, "delay": 1.5, "broken": 0.3, "gear": 3.0, "load": 0.5}
    for name, mean in expected.items():
        assert abs(drawn[name].mean() - mean) <= 4 * drawn[name].std() / np.sqrt(20_000) + 1e-6
    assert set(drawn["delay"]) == {0, 1, 2, 3}
    assert set(drawn["broken"]) == {0, 1}
    assert 0.4 <= drawn["mass"].min() < drawn["mass"].max() <= 1.6


def test_truncation_does_not_pile_up_at_the_bounds():
    values = np.asarray(DomainDistribution(m=Parameter(TruncatedNormal(0.0, 1.0, cut=0.5))).sample(KEY, 5000)["m"])
    assert len(np.unique(values)) > 4900


def test_first_domains_do_not_depend_on_how_many_are_drawn():
    few, many = NU.sample(KEY, 3), NU.sample(KEY, 10)
    for name in NU:
        np.testing.assert_array_equal(few[name], many[name][:3], err_msg=name)


def test_adding_a_parameter_moves_no_other():
    wider = DomainDistribution({**NU, "extra": Parameter(Uniform(0.0, 1.0))})
    np.testing.assert_array_equal(wider.sample(KEY, 5)["mass"], NU.sample(KEY, 5)["mass"])


def test_parameters_are_independent():
    drawn = NU.sample(KEY, 20_000)
    assert abs(np.corrcoef(drawn["mass"], drawn["friction"])[0, 1]) < 4 / np.sqrt(20_000)


def test_nominal_takes_the_given_value_or_the_mean():
    nominal = NU.nominal()
    assert nominal["friction"][0] == np.float32(0.1)
    assert nominal["mass"][0] == 1


def test_grid_varies_one_parameter_only():
    grid = NU.grid("mass", [0.5, 1.5])
    np.testing.assert_allclose(grid["mass"], [0.5, 1.5])
    np.testing.assert_allclose(grid["friction"], [0.1, 0.1])


def test_json_gives_back_the_same_draws():
    again = DomainDistribution.from_json(NU.to_json())
    for name, column in NU.sample(KEY, 5).items():
        np.testing.assert_array_equal(again.sample(KEY, 5)[name], column)
    assert str(again) == str(NU)


def test_toml_gives_back_the_same_draws():
    again = DomainDistribution.from_dict(tomllib.loads(tomli_w.dumps(NU.to_dict())))
    for name, column in NU.sample(KEY, 5).items():
        np.testing.assert_array_equal(again.sample(KEY, 5)[name], column)


def test_empirical_draws_whole_rows_and_survives_json():
    rows = {"a": [1.0, 2.0, 3.0], "b": [10.0, 20.0, 30.0]}
    posterior = Empirical(rows, {"a": Parameter(Constant(0.0), "kg")})
    for source in (posterior, DomainDistribution.from_json(posterior.to_json())):
        drawn = source.sample(KEY, 200)
        np.testing.assert_allclose(10 * drawn["a"], drawn["b"])
        assert set(np.asarray(drawn["a"])) == {1, 2, 3}
        assert source["a"].unit == "kg"
    assert posterior.nominal()["b"][0] == 20


def test_table_shows_names_laws_units_and_meaning():
    text = str(NU)
    for part in ("mass", "N(1, 0.2) ±3σ", "kg", "mass of the arm", "U(0, 0.5)", "{0, …, 3}"):
        assert part in text


def test_repeat_keeps_each_domain_together():
    domains = repeat({"m": jax.numpy.array([1.0, 2.0])}, 3)
    np.testing.assert_array_equal(domains["m"], [1, 1, 1, 2, 2, 2])
    assert count(domains) == 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(1.0, 0.6), "write Uniform\\(0.6, 1.0\\)"),
        (lambda: Uniform(1.0, 1.0), "write Constant\\(1.0\\)"),
        (lambda: TruncatedNormal(1.0, -0.1), "must be positive"),
        (lambda: TruncatedNormal(1.0, 0.0), "write Constant\\(1.0\\)"),
        (lambda: TruncatedNormal(float("nan"), 1.0), "finite"),
        (lambda: Integers(3, 1), "write Integers\\(1, 3\\)"),
        (lambda: Bernoulli(1.2), "between 0 and 1"),
        (lambda: NumPyro(dist.Normal(np.zeros(2), 1.0)), "one number"),
        (lambda: Parameter(TruncatedNormal(1.0, 0.5), "kg", "mass", sign="positive"), "mass is positive"),
        (lambda: NU.replace(mass=Uniform(-1.0, 1.0)), "can draw -1 kg"),
        (lambda: DomainDistribution(), "at least one parameter"),
        (lambda: NU.sample(KEY, 0), "at least 1"),
        (lambda: NU.grid("mass", [-0.5]), "must be positive"),
        (lambda: NU.grid("mass", []), "finite values"),
        (lambda: Empirical({"a": [1.0], "b": [1.0, 2.0]}), "same length"),
        (lambda: Empirical({"a": [float("nan")]}), "not finite"),
        (lambda: DomainDistribution.from_dict({"m": {"family": "Unifrom", "low": 0, "high": 1}}), "mean 'Uniform'"),
        (lambda: DomainDistribution.from_dict({"m": {"family": "Uniform", "low": 0}}), "takes low, high"),
        (lambda: DomainDistribution.from_dict({"m": {"family": "numpyro.os"}}), "no distribution 'os'"),
        (lambda: NU.check({**NU.nominal(), "mass": jax.numpy.full(1, np.nan)}), "must be positive"),
        (lambda: NU.check({k: v for k, v in NU.nominal().items() if k != "mass"}), "no value for 'mass'"),
    ],
)  # fmt: skip
def test_bad_input_says_why_and_what_to_type(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_unknown_names_are_met_with_a_suggestion():
    with pytest.raises(KeyError, match="did you mean 'friction'"):
        NU.grid("frictoin", [0.1])


@given(st.floats(-100, 100), st.floats(0.01, 10), st.floats(0.5, 5))
def test_support_is_symmetric_about_the_centre(center, std, cut):
    low, high = TruncatedNormal(center, std, cut).support
    assert low < center < high
    np.testing.assert_allclose(center - low, high - center, atol=1e-9)
