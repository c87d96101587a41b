"""Do references improve on the candidate that they start from, by which solver, and what do twenty of them cost?

A candidate is trained on 5 domains; then 20 references on n_r others each, all from the candidate. Every reference is
compared with the candidate on its own domains, with random numbers that neither has seen and that both share.
"""

import time
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import best_seconds
from spota.certify.candidates import find_candidate
from spota.certify.comparison import Comparison, compare
from spota.certify.references import find_references
from spota.envs import make
from spota.polopt import default_solver, reference_solver
from spota.polopt.solve import Optimizer, solve_many
from spota.polopt.solver import Solver, as_solver
from spota.runs.config import solvers
from spota.sim.env import Env

N_G, N_J = 20, 100
PPO_ITERATIONS = 20
EQUAL = 10
"""Updates of the comparison in time."""


def main() -> None:
    for name in ("cart-pole", "ball-balancer"):
        env = make(name)
        key = jax.random.key(0)
        candidate = find_candidate(key, env, as_solver(default_solver(env)), 5).policy
        _improvement(env, candidate)
        _cost(env, candidate)


def _improvement(env: Env, candidate: Any) -> None:
    table = Table(title=f"{N_G} references on {env.name}: gain over the candidate, {N_J} fresh rollouts per domain")
    columns = ("solver", "n_r", "mean gain", "min", "10 %", "median", "90 %", "max", "worse beyond 2 SE", "seconds")
    for column in columns:
        table.add_column(column, justify="left" if column == "solver" else "right")
    for name, solver in _solvers(env).items():
        for n_r in (1, 3):
            began = time.perf_counter()
            references = find_references(jax.random.key(1), env, solver, candidate, n_r, N_G)
            seconds = time.perf_counter() - began
            found = compare(jax.random.key(2), env, candidate, references, N_J)
            table.add_row(name, str(n_r), *_distribution(found), f"{seconds:.0f}")
    Console().print(table)


def _solvers(env: Env) -> dict[str, Solver]:
    """The reference solver, and others that take at least as long."""
    analytic, ppo = reference_solver(env), solvers("ppo", env)[1]
    return {
        "analytic (reference)": as_solver(analytic),
        "PPO": as_solver(replace(ppo, iterations=PPO_ITERATIONS)),
        "PPO, then analytic": _one_after_the_other(
            replace(ppo, iterations=PPO_ITERATIONS // 2), replace(analytic, iterations=analytic.iterations // 2)
        ),
    }


def _one_after_the_other(first: Optimizer, second: Optimizer) -> Solver:
    def solve(keys, env, domains, inits, watch=None, /):
        pairs = jax.vmap(jax.random.split)(keys)
        begun = solve_many(first, pairs[:, 0], env, domains, inits, watch)
        return solve_many(second, pairs[:, 1], env, domains, begun.policy, watch)

    return solve


def _distribution(found: Comparison) -> tuple[str, ...]:
    gains = np.asarray(found.reference_returns - found.candidate_returns, np.float64).mean(axis=1)  # [n_G, n_J]
    mean, error = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(N_J)
    quantiles = np.quantile(mean, [0, 0.1, 0.5, 0.9, 1])
    return f"{mean.mean():.1f}", *(f"{q:.1f}" for q in quantiles), f"{100 * np.mean(mean < -2 * error):.0f} %"


def _cost(env: Env, candidate: Any) -> None:
    """Twenty references have four times the samples of a candidate with five domains."""
    solver = as_solver(replace(reference_solver(env), iterations=EQUAL, evaluate_every=EQUAL))
    one = best_seconds(lambda: find_candidate(jax.random.key(3), env, solver, 5, candidate).policy, 3)
    many = best_seconds(lambda: find_references(jax.random.key(4), env, solver, candidate, 1, N_G).policy, 3)
    Console().print(
        f"{env.name}: {EQUAL} updates of {N_G} references (n_r = 1) take {many:.2f} s, of one candidate (n_c = 5) "
        f"{one:.2f} s: {many / one:.1f} × for 4 × the samples."
    )
