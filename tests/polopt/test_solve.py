"""The loop around every optimizer: alone or together, on one device or two, never worse than its start."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from point_mass import PointMass, regulator
from spota.policies import FNN, fnn
from spota.polopt import compiled_steps
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.polopt.solve import Optimizer, solve, solve_many


@dataclass(frozen=True, eq=False)
class Nameless(PointMass):
    """A platform whose reward is not a number."""

    def reward(self, state, action, xi):
        return super().reward(state, action, xi) * jnp.nan


ENV = PointMass()
ANALYTIC = Analytic(iterations=3, rollouts=4, evaluate_every=2)
SMALL_PPO = PPO(iterations=3, rollouts=4, minibatches=5, epochs=2, evaluation_rollouts=4)
PROBLEMS = 5
KEYS = jax.random.split(jax.random.key(0), PROBLEMS)
DOMAINS = {name: column.reshape(PROBLEMS, 2) for name, column in ENV.domain.sample(jax.random.key(1), 10).items()}


def networks(n: int = PROBLEMS) -> FNN:
    """n new networks, stacked."""
    return jax.tree.map(lambda *xs: jnp.stack(xs), *(fnn(jax.random.key(i), ENV, (8,)) for i in range(n)))


def picked(tree, index: int):
    return jax.tree.map(lambda x: x[index], tree)


def parameters(solution) -> np.ndarray:
    return np.asarray(ravel_pytree(solution.policy)[0])


@pytest.mark.parametrize(
    "optimizer", [ANALYTIC, pytest.param(SMALL_PPO, marks=pytest.mark.slow)], ids=["analytic", "ppo"]
)
def test_a_problem_has_the_same_result_alone_together_and_on_one_device(optimizer: Optimizer, monkeypatch):
    together = solve_many(optimizer, KEYS, ENV, DOMAINS, networks())
    last = PROBLEMS - 1
    alone = solve(optimizer, KEYS[last], ENV, picked(DOMAINS, last), picked(networks(), last))
    np.testing.assert_allclose(parameters(alone), parameters(picked_policy(together, last)), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(alone.curve, together.curve[last], rtol=1e-3)
    even = [jax.tree.map(lambda x: x[1:], tree) for tree in (KEYS, DOMAINS, networks())]
    grouped = solve_many(optimizer, even[0], ENV, *even[1:])  # half of the problems on each device
    np.testing.assert_allclose(parameters(alone), parameters(picked_policy(grouped, -1)), rtol=1e-3, atol=1e-4)
    one = jax.devices()[:1]
    monkeypatch.setattr(jax, "devices", lambda: one)
    single = solve(optimizer, KEYS[last], ENV, picked(DOMAINS, last), picked(networks(), last))
    np.testing.assert_allclose(parameters(alone), parameters(single), rtol=1e-3, atol=1e-4)


def picked_policy(solution, index: int):
    return eqx.tree_at(lambda s: s.policy, solution, picked(solution.policy, index))


def test_same_seed_same_result_another_seed_another():
    start = picked(networks(), 0)
    results = [parameters(solve(ANALYTIC, jax.random.key(s), ENV, picked(DOMAINS, 0), start)) for s in (0, 0, 1)]
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()


def test_curve_and_progress_tell_the_same_story():
    told = []
    solution = solve(ANALYTIC, KEYS[0], ENV, picked(DOMAINS, 0), picked(networks(), 0), told.append)
    assert [p.iteration for p in told] == [1, 2, 3]
    np.testing.assert_array_equal(solution.evaluated_at, [0, 2, 3])
    assert float(solution.curve[0]) == float(solution.start.returns)
    assert float(solution.curve.max()) == float(solution.score.returns) == float(told[-1].best[0])
    assert told[0].steps == 2 * 4 * ENV.max_steps


@pytest.mark.parametrize(
    "optimizer",
    [replace(ANALYTIC, learning_rate=1e3, evaluate_every=1), replace(SMALL_PPO, learning_rate=1e3)],
    ids=["analytic", "ppo"],
)
@pytest.mark.slow
def test_a_diverging_run_is_no_worse_than_its_good_start_and_stays_finite(optimizer):
    start = regulator(ENV)
    solution = solve(optimizer, KEYS[0], ENV, picked(DOMAINS, 0), start)
    assert float(solution.start.survival) == 1.0
    assert float(solution.score.returns) >= float(solution.start.returns)
    assert np.isfinite(parameters(solution)).all()
    assert np.asarray(solution.curve)[1:].min() < float(solution.start.returns)  # it did go wrong


def test_nan_rewards_are_named():
    with pytest.raises(ValueError, match=r"return of nan on point-mass; look for NaN .* rewards"):
        solve(ANALYTIC, KEYS[0], Nameless(), picked(DOMAINS, 0), picked(networks(), 0))


def test_nan_parameters_are_named():
    broken = eqx.tree_at(lambda p: p.biases[-1], networks(), jnp.zeros((PROBLEMS, 1)).at[3].set(jnp.nan))
    with pytest.raises(ValueError, match="problem 3"):
        solve_many(ANALYTIC, KEYS, ENV, DOMAINS, broken)


def test_impossible_domains_are_refused_before_anything_is_compiled():
    with pytest.raises(ValueError, match="mass = -1"):
        solve(ANALYTIC, KEYS[0], ENV, {**picked(DOMAINS, 0), "mass": -jnp.ones(2)}, regulator(ENV))


@pytest.mark.parametrize(("smoothing", "n", "spread"), [(0.0, 5, 0), (1.0, 5, 20), (1.0, 200, 0)])
def test_evaluations_are_smoothed_as_training_is(smoothing, n, spread):
    domains = ENV.domain.sample(jax.random.key(3), n)
    solver = replace(ANALYTIC, smoothing=smoothing)
    rows = compiled_steps.evaluation_rows(solver, ENV, domains, jax.random.key(4))
    moved = np.asarray(rows.domains["mass"]) != np.repeat(domains["mass"], rows.keys.size // n)
    assert moved.sum() == spread
