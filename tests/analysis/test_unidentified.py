"""What still costs return and is not identified."""

import dataclasses

import jax
import numpy as np
import pytest

from point_mass import PointMass
from spota.analysis.unidentified import Unknown, in_words, unknown
from spota.sim.domain import Empirical


class Nothing:
    """A policy that lets the mass go."""

    def __call__(self, observation):
        return 0.0 * observation[:1]


class Push:
    """A policy that pushes always alike: light masses are gone sooner."""

    def __call__(self, observation):
        return 0.0 * observation[:1] + 0.3


def with_rows(low: float, high: float) -> PointMass:
    rows = np.random.default_rng(0).uniform(low, high, 300)
    table = Empirical({"mass": rows.tolist()}, PointMass().domain).learned_from(("1",))
    return dataclasses.replace(PointMass(), domain=table)


def test_a_parameter_that_decides_the_return_is_found_and_one_that_does_not_is_not():
    (felt,) = unknown(jax.random.key(0), with_rows(0.5, 1.5), Push(), 400)
    (unfelt,) = unknown(jax.random.key(0), with_rows(0.5, 1.5), Nothing(), 400)
    assert felt.share > 3 * max(unfelt.share, 0.02) and unfelt.share < 0.08
    assert felt.spread == pytest.approx(1.0, abs=0.1) and felt.worth_measuring


def test_what_is_identified_needs_no_measuring():
    (known,) = unknown(jax.random.key(0), with_rows(0.95, 1.05), Push(), 400)
    assert known.spread == pytest.approx(0.1, abs=0.02) and not known.worth_measuring


def test_the_words_name_what_costs_and_is_open():
    rows = (Unknown("a", 0.6, 0.1), Unknown("b", 0.3, 0.9), Unknown("c", 0.001, 1.0))
    assert in_words(rows).startswith("Measure next: b (30 % of the return's variance goes with it, and 90 %")
    assert "Nothing" in in_words(rows[:1])
