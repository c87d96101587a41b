"""How many rollouts should an update have? Candidates and references with few rows and many updates, or the reverse.

Two trainings of a candidate on the same 10,000 domains, from different networks, and what both earn on shared unseen
domains; ten references of 50 domains each from the better one, and what they gain on fresh rollouts there. CPU time
counts, because other work disturbs it less.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from benchmarks.yardstick import unseen_returns
from spota.certify.comparison import compare
from spota.certify.references import find_references
from spota.envs import make
from spota.policies import Gains, fnn
from spota.polopt import default_gains, default_hidden, default_solver, reference_solver
from spota.polopt.analytic import Analytic
from spota.polopt.solve import solve_many
from spota.polopt.solver import as_solver
from spota.sim.env import Platform

CANDIDATES = {
    "cart-pole": ((48, 800), (48, 400), (24, 800)),
    "ball-balancer": ((250, 300), (64, 600), (64, 300), (32, 600)),
}
"""Rows of an update, and updates."""
REFERENCES = ((20, 180), (48, 180), (64, 180), (64, 360))
DOMAINS, TRAININGS, SEED = 10_000, 2, 4711
N_G, N_R, N_J = 10, 50, 4


def main(platforms: Sequence[str] = ()) -> None:
    """Both platforms or those named."""
    for name in platforms or tuple(CANDIDATES):
        env = make(name)
        usual = default_solver(env)
        assert isinstance(usual, Analytic)
        ways = [replace(usual, rows=rows, iterations=updates) for rows, updates in CANDIDATES[name]]
        policies = [policy for way in ways for policy in candidates(env, way, default_gains(way))]
        best = max(policies, key=lambda one: one[1])[0]
        for way in REFERENCES:
            _references(env, best, *way)


def candidates(env: Platform, solver: Any, gains: Gains) -> list[tuple[Any, float]]:
    """Policies, and what each earns."""
    key = jax.random.key(SEED)
    drawn = env.domain.sample(jax.random.fold_in(key, 1), DOMAINS)
    domains = {name: jnp.stack([column] * TRAININGS) for name, column in drawn.items()}
    networks = [fnn(jax.random.key(900 + i), env, default_hidden(solver), gains) for i in range(TRAININGS)]
    starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)
    found, cpu = _timed(lambda: solve_many(solver, jax.random.split(key, TRAININGS), env, domains, starts))
    policies = [jax.tree.map(lambda x, i=i: x[i], found.policy) for i in range(TRAININGS)]
    earned = [unseen_returns(env, policy) for policy in policies]
    words = "; ".join(f"{r.mean():.1f}, worst 1 % {np.sort(r)[: r.size // 100].mean():.0f}" for r in earned)
    how = f"{solver.rows} rows × {solver.iterations}, first layer × {gains.first:g}"
    Console().print(f"{env.name}: {TRAININGS} candidates, {how}: {words}; {cpu:.0f} s of CPU time")
    return [(policy, float(r.mean())) for policy, r in zip(policies, earned, strict=True)]


def _references(env: Platform, candidate: Any, rows: int, updates: int) -> None:
    usual = reference_solver(env)
    assert isinstance(usual, Analytic)
    solver = as_solver(replace(usual, rows=rows, iterations=updates))
    found, cpu = _timed(lambda: find_references(jax.random.key(SEED + 1), env, solver, candidate, N_R, N_G))
    gains = np.asarray(compare(jax.random.key(SEED + 2), env, candidate, found, N_J, "reference").gaps.raw).mean(axis=1)
    words = f"gain {gains.mean():.1f} ± {gains.std(ddof=1) / N_G**0.5:.1f}, least {gains.min():.1f}"
    Console().print(f"{env.name}: {N_G} references, {rows} rows × {updates}: {words}; {cpu:.0f} s of CPU time")


def _timed(make_it: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    found = jax.block_until_ready(make_it())
    return found, time.process_time() - began
