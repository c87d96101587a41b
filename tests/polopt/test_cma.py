"""sep-CMA-ES on a problem whose optimum is known, on a host environment, and where its package is missing."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from host_point_mass import HostPointMass
from spota.envs.catapult import Catapult
from spota.policies import fnn
from spota.polopt import exact
from spota.polopt.cma_es import SepCMAES
from spota.polopt.solver import as_solver, with_effort
from spota.runs import config
from spota.runs.plan import Plan, complete

pytest.importorskip("cma")

ENV = Catapult()
KEYS = jax.random.split(jax.random.key(1), 2)
PLANETS = {"planet": jnp.array([[0.0, 0.0], [1.0, 0.0]])}
STARTS = jax.tree.map(lambda x: jnp.stack([x, x]), fnn(jax.random.key(0), ENV, (2,)))


def test_it_finds_what_a_closed_form_finds_and_leaves_everybodys_random_numbers_alone():
    np.random.seed(3)
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    found = as_solver(SepCMAES(iterations=25, population=8, step=0.5))(KEYS, ENV, PLANETS, STARTS)
    best = exact.catapult(KEYS, ENV, PLANETS, STARTS)
    np.testing.assert_allclose(found.score.returns, best.score.returns, rtol=0.02, atol=0.1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index]


def test_it_learns_on_a_host_environment_and_is_the_same_again():
    env = HostPointMass(spread=0.3)
    domains = {name: column[None] for name, column in env.domain.sample(jax.random.key(2), 2).items()}
    start = jax.tree.map(lambda x: x[None], fnn(jax.random.key(0), env, (2,)))
    few = as_solver(SepCMAES(iterations=20, population=8, step=0.5))
    first, again = (few(KEYS[:1], env, domains, start) for _ in range(2))
    assert float(first.score.returns[0]) > float(first.start.returns[0])
    np.testing.assert_array_equal(first.score.returns, again.score.returns)


def test_it_is_a_solver_by_name_with_settings():
    plan = complete(Plan("catapult", solver="cma"), ENV, [("here", {"reference": {"iterations": 7}})])
    assert (plan.reference.iterations, plan.candidate.step, plan.solver_sha256) == (7, 0.5, None)
    assert with_effort(plan.reference, 3) == SepCMAES(iterations=21)
    with pytest.raises(ValueError, match="population = 2: a generation has at least 4"):
        SepCMAES(population=2)


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(ValueError, match=r"pip install 'spota\[cma\]'"):
        config.solvers("cma", ENV)
