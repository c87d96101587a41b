"""A solver that is a function of one problem: never worse than its start, and told what is wrong with it."""
# ruff: noqa: ARG001, ARG002, ARG005, a solver has these arguments

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from point_mass import PointMass, regulator
from spota.envs.catapult import GRAVITY, PRE_EXTENSION, STIFFNESS, Catapult, height, sample_optimum
from spota.policies import fnn
from spota.polopt import exact
from spota.polopt.analytic import Analytic
from spota.polopt.exact import extending, extension
from spota.polopt.solve import Optimizer, solve
from spota.polopt.solver import as_solver, check_solver, solves_all, with_effort

ENV = Catapult()
POINT = PointMass()
START = fnn(jax.random.key(0), ENV, (2,))
STARTS = jax.tree.map(lambda x: jnp.stack([x, x, x]), START)
KEYS = jax.random.split(jax.random.key(1), 3)
PLANETS = {"planet": jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])}


def closed_form(key, env, domains, start):
    """The best extension for one problem; NumPy's numbers are as good as jax's."""
    venus = float(domains["planet"].sum())
    return jax.tree.map(np.asarray, extending(sample_optimum(domains["planet"].size - venus, venus), start))


def far_too_much(key, env, domains, start):
    return extending(1.99, start)


def test_a_function_of_one_problem_solves_several():
    told = []
    found = as_solver(closed_form)(KEYS, ENV, PLANETS, STARTS, told.append)
    wanted = exact.catapult(KEYS, ENV, PLANETS, STARTS)
    np.testing.assert_allclose(extension(found.policy), extension(wanted.policy), rtol=1e-5)
    np.testing.assert_allclose(found.score.returns, wanted.score.returns, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.start.returns, wanted.start.returns, rtol=1e-4)
    assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, wanted)
    assert {leaf.dtype for leaf in jax.tree.leaves(found.policy)} == {jnp.dtype("float32")}
    assert [(p.iteration, p.iterations, p.best.size) for p in told] == [(1, 3, 1), (2, 3, 2), (3, 3, 3)]


def test_a_solution_is_never_worse_than_its_start():
    best = exact.catapult(KEYS, ENV, PLANETS, STARTS).policy
    found = as_solver(far_too_much)(KEYS, ENV, PLANETS, best)
    np.testing.assert_array_equal(found.score.returns, found.start.returns)
    np.testing.assert_allclose(extension(found.policy), extension(best))
    assert (np.asarray(found.curve)[:, 1] < np.asarray(found.curve)[:, 0]).all()  # what it did find is told


def test_start_and_result_meet_the_same_random_numbers():
    """A policy that is no other than its start earns exactly the same, although starts of rollouts are random."""
    starts = jax.tree.map(lambda x: x[None], regulator(POINT))
    domains = {"mass": jnp.array([[0.7, 1.2]])}
    found = as_solver(lambda key, env, domains, start: start)(KEYS[:1], POINT, domains, starts)
    assert float(found.curve[0, 0]) == float(found.curve[0, 1])
    other = as_solver(lambda key, env, domains, start: start)(KEYS[1:2], POINT, domains, starts)
    assert float(other.curve[0, 0]) != float(found.curve[0, 0])


def broken(where, value):
    return lambda key, env, domains, start: eqx.tree_at(where, start, value)


def a_list(key, env, domains, start):
    return [1.0, 2.0]


def nothing(key, env, domains, start):
    """Forgets to return."""


@pytest.mark.parametrize(
    ("solve_one", "message"),
    [
        (a_list, "a_list returned a list of 2, but the policy that it was given is a FNN; return one of the same kind"),
        (nothing, "nothing returned nothing, but the policy that it was given is a FNN"),
        (broken(lambda p: p.weights[0], jnp.zeros((3, 1))), r"whose weights\.0 has shape \(3, 1\), but .* \(2, 1\)"),
        (broken(lambda p: p.biases[-1], jnp.array([jnp.nan])), r"whose biases\.1 is not finite"),
        (lambda *four: exact.catapult(KEYS, ENV, PLANETS, STARTS), "returned a Solution, .* mark it with @solves_all"),
    ],
)
def test_what_is_no_such_policy_is_refused_in_the_authors_names(solve_one, message):
    with pytest.raises(ValueError, match=message):
        as_solver(solve_one)(KEYS, ENV, PLANETS, STARTS)


def too_few(key, env):
    return env


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (too_few, r"too_few\(key, env\) cannot be called with \(key, env, domains, start\): too many positional"),
        (lambda key, env, domains, start, more: start, "missing a required argument: 'more'"),
        (Analytic, r"Analytic is a class; give an object of it: Analytic\(\)"),
        (3, r"3 is no solver; give a function solve\(key, env, domains, start\) that returns a policy"),
    ],
)
def test_what_is_no_solver_is_refused_before_any_work(solver, message):
    with pytest.raises(ValueError, match=message):
        check_solver(solver, ENV)


def test_optimizers_pass():
    for solver in (closed_form, exact.catapult, Analytic(), solves_all(lambda *five: None)):
        check_solver(solver, ENV)


@dataclass(frozen=True)
class Climb(Optimizer):
    """No more than what is needed: a step along the gradient of a reward of one step."""

    iterations: int = 30
    rate: float = 1e-3
    broken: bool = False

    def begin(self, key, env, policy) -> Any:
        return policy

    def update(self, env, domains, key, state) -> Any:
        def cost(policy):
            theta, venus = policy(jnp.zeros((1, 1)))[0, 0] + 1.0, domains["planet"] > 0.5
            return height(theta, *(jnp.where(venus, v, m) for m, v in (GRAVITY, STIFFNESS, PRE_EXTENSION))).mean()

        gradient = jax.grad(cost)(state)
        rate = jnp.nan if self.broken else self.rate
        return jax.tree.map(lambda x, g: x - rate * g, state, gradient), {}

    def policy(self, state) -> Any:
        return state


def test_an_optimizer_inside_the_loop_needs_four_things():
    domains = {"planet": jnp.array([1.0, 0.0])}
    found = solve(Climb(), KEYS[0], ENV, domains, START)
    assert float(extension(found.policy)) == pytest.approx(sample_optimum(1, 1), abs=0.05)
    assert not bool(found.diverged)
    longer = with_effort(Climb(), 3)
    assert isinstance(longer, Climb) and longer.iterations == 90


def test_a_divergence_is_noticed_without_being_told():
    found = solve(Climb(iterations=2, broken=True), KEYS[0], ENV, {"planet": jnp.ones(2)}, START)
    assert bool(found.diverged)
    assert float(found.score.returns) == float(found.start.returns)


class Bare(Climb):
    def update(self, env, domains, key, state):
        return state


class Grown(Climb):
    def update(self, env, domains, key, state):
        return (state, state), {}


class Other(Climb):
    def policy(self, state):
        return state.weights


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (Bare(), "update of Bare returned a FNN; return the new state and a dictionary"),
        (Grown(), "update of Grown returned a tuple of 2, but the state that it was given is a FNN"),
        (Other(iterations=1), "policy of Other returned a tuple of 2, but the policy that it was given is a FNN"),
    ],
)
def test_what_the_loop_cannot_use_is_named(solver, message):
    with pytest.raises(ValueError, match=message):
        solve(solver, KEYS[0], ENV, {"planet": jnp.ones(2)}, START)
