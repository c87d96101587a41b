"""What references would gain by a longer training: on the catapult that gain has a closed form."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from scipy import stats

from halving import Halving
from spota.certify.algorithm import spota
from spota.certify.effort import EXACT, Effort, Longer, longer_returns, train_longer
from spota.certify.events import BlockStarted, Solving
from spota.certify.references import find_references, repeated
from spota.certify.settings import Spota
from spota.certify.verdict import EFFORT_SHARE
from spota.envs import make
from spota.policies import fnn
from spota.polopt import exact
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.polopt.solver import is_optimal, optimal, solves_all, with_effort

ENV = make("catapult")
KEY = jax.random.key(3)
START = exact.extending(1.9, fnn(KEY, ENV, (2,)))
SMALL = Spota(n_c=5, n_r=3, n_G=10, n_J=1, beta=1e-3, max_iterations=1, n_b=50, performance_domains=0, hidden=(2,),
              method="student_t_reference", spend_alpha="none", looks=1)  # fmt: skip


def test_the_margin_is_the_upper_end_of_students_interval():
    values = np.random.default_rng(0).normal(2.0, 1.5, 6)
    want = stats.ttest_1samp(values, 0.0, alternative="less").confidence_interval(0.99).high
    assert Effort(values, 3).margin(0.01) == pytest.approx(want)
    assert Effort(values, 3).gain == pytest.approx(values.mean())


def test_the_margin_is_never_below_the_mean_gain_nor_below_zero():
    assert Effort(np.array([-3.0, -5.0, -4.0]), 3).margin(0.05) == 0.0
    assert Effort(np.full(4, 2.0), 3).margin(0.05) == 2.0
    assert Effort(np.array([1.0, 2.0, 6.0]), 3).margin(0.9) == pytest.approx(3.0)
    assert Effort(np.array([1.0]), 3).margin(0.05) == math.inf
    assert EXACT.margin(0.01) == EXACT.gain == 0.0


def test_the_margin_covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = [Effort(rng.normal(1.0, 2.0, 5), 3).margin(0.05) >= 1.0 for _ in range(4000)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.012)


def test_failures_of_references_count_as_the_floor():
    """A machine that nobody can hold says nothing about effort; one that only the longer training holds does."""
    usual = np.array([[[2400.0, 800.0], [2400.0, 2400.0]], [[600.0, 2400.0], [2400.0, 2390.0]]])
    longer = np.array([[[2404.0, 100.0], [2404.0, 2400.0]], [[2400.0, 2400.0], [2400.0, 2400.0]]])
    assert Longer(longer, usual, 3).above().gains == pytest.approx([0.0, (1800 + 10) / 4])
    assert Longer(longer, usual, 3).above(2000.0).gains == pytest.approx([(4 + 0 + 4) / 4, (400 + 10) / 4])


def test_a_longer_training_that_lost_does_not_widen_the_margin():
    usual = np.zeros((4, 1, 1))
    gained, lost = (np.array([1.0, 2.0, 1.0, last])[:, None, None] for last in (0.0, -16.0))
    found = Longer(lost, usual, 3).above()
    assert found.margin(0.02) == Longer(gained, usual, 3).above().margin(0.02)
    assert Effort(lost[:, 0, 0], 3).margin(0.02) > 4 * found.margin(0.02) > 4 * found.gain


@pytest.mark.parametrize("iterations", [1, 2, 20])
def test_gains_are_the_closed_forms_own(iterations):
    """A weak solver gains what the parabola says, and one that has converged gains nothing."""
    weak, strong = Halving(iterations), Halving(3 * iterations)
    references = find_references(KEY, ENV, weak, START, 3, 10)
    longer = train_longer(KEY, ENV, strong, references, repeated(START, 10), 4)
    planet = np.asarray(references.domains["planet"], np.float64)[:4]
    theta = exact.extension(START)
    want = strong.earned(theta, planet) - weak.earned(theta, planet)
    found = Longer(*longer_returns(KEY, ENV, longer, references, 2), 3).above().gains
    np.testing.assert_allclose(found, want, atol=2e-4)
    assert (found > 1).all() if iterations == 1 else np.abs(found).max() < 20 / iterations


def test_a_weak_optimizer_is_claimed_for_what_it_lacks():
    """The bound covers the gap to references of three times the effort, and says how much of it is margin."""
    heard = []
    found = {
        k: spota(
            KEY, ENV, exact.catapult, SMALL, reference_solver=Halving(k), init=START, listener=heard.append
        ).certificate
        for k in (1, 30)
    }
    weak, done = found[1], found[30]
    assert weak.effort_margin is not None and weak.effort_gain is not None
    assert weak.ucbog == pytest.approx(weak.intervals[weak.method] + weak.effort_margin)
    assert weak.effort_margin >= weak.effort_gain > 0
    assert (weak.effort_references, weak.effort_factor, done.effort_margin) == (4, 3, pytest.approx(0, abs=1e-3))
    assert (weak.alpha, weak.effort_alpha) == (
        pytest.approx(0.05 * (1 - EFFORT_SHARE)), pytest.approx(0.05 * EFFORT_SHARE),
    )  # fmt: skip
    assert done.claims == pytest.approx(done.intervals, abs=1e-3)
    started = [e for e in heard if isinstance(e, BlockStarted)]
    assert [e.block for e in started[:4]] == ["candidate", "references", "effort", "comparison"]
    assert (started[2].n, started[2].problems) == (3, 4)
    assert any(e.block == "effort" for e in heard if isinstance(e, Solving))


def test_the_papers_settings_do_not_measure_it_and_keep_the_whole_alpha():
    settings = dataclasses.replace(SMALL, effort_references=Spota.paper("cart-pole").effort_references)
    c = spota(KEY, ENV, exact.catapult, settings, reference_solver=Halving(1)).certificate
    assert (c.effort_margin, c.effort_gain, c.effort_references, c.alpha) == (None, None, 0, 0.05)
    assert c.ucbog == c.intervals[c.method]
    assert any("was not measured" in warning for warning in c.warnings)


def test_an_exact_solver_has_no_effort_to_raise_and_someones_own_is_not_trusted():
    c = spota(KEY, ENV, exact.catapult, SMALL).certificate
    assert (c.effort_margin, c.effort_references, c.alpha) == (0.0, 0, 0.05)
    assert "exact solver" in c.effort
    assert not any("was not measured" in warning for warning in c.warnings)

    @solves_all
    def mine(*arguments):
        return exact.catapult(*arguments)

    mistrusted = spota(KEY, ENV, exact.catapult, SMALL, reference_solver=mine).certificate
    assert mistrusted.effort_margin is None
    assert any("Whether the references are strong enough was not measured" in w for w in mistrusted.warnings)
    assert spota(KEY, ENV, exact.catapult, SMALL, reference_solver=optimal(mine)).certificate.effort_margin == 0.0


def test_effort_is_iterations():
    assert with_effort(Analytic(iterations=7), 3) == Analytic(iterations=21)
    assert with_effort(PPO(iterations=5), 2) == PPO(iterations=10)
    assert with_effort(exact.catapult, 3) is None
    assert is_optimal(exact.catapult) and not is_optimal(Analytic())


@pytest.mark.parametrize(("n_G", "m"), [(2, 2), (10, 4), (20, 6), (40, 10)])
def test_a_quarter_is_trained_longer_and_at_least_four(n_G, m):
    assert Spota(n_G=n_G).trained_longer(1) == m
    assert Spota(n_G=n_G, effort_references=2).trained_longer(1) == 2
    assert Spota(n_G=n_G, effort_references=0).trained_longer(3) == 0
