"""Are references strong? What they gain over a candidate with a third of their effort, with theirs, and three times it.

A candidate as the presets train one; twenty references on n_r others each, all from the candidate; the gap on fresh
synchronised rollouts. Effort is enough where three times as much adds less than a tenth, or less than 2 of return. All
efforts have the same domains and the same random numbers, so that what one adds to the one before is paired.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from spota.certify.candidates import find_candidate
from spota.certify.comparison import compare
from spota.certify.references import find_references
from spota.envs import make
from spota.policies import Architecture, first_policy
from spota.polopt import (
    MANY_DOMAINS,
    default_gains,
    default_hidden,
    default_solver,
    default_start,
    reference_solver,
)
from spota.polopt.analytic import Analytic
from spota.polopt.solver import as_solver
from spota.sim.env import Platform

N_G, SEED, TRAININGS = 20, 41, 2
SIZES = {50: 4, 5: 20, 1: 100}
"""n_r, and rollouts per domain in the comparison."""
EFFORTS = (1 / 3, 1, 3)
COLUMNS = (
    "platform", "n_r", "effort", "updates", "mean gap", "± SE", "least", "more than before", "± SE", "CPU seconds",
)  # fmt: skip


def main(platforms: Sequence[str] = ()) -> None:
    """Both platforms of the paper, or those named."""
    table = Table(title=f"{N_G} references: mean gap on fresh rollouts")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "platform" else "right")
    for name in platforms or ("ball-balancer", "cart-pole"):
        env = make(name)
        candidate = candidate_of(env)
        for n_r, n_J in SIZES.items():
            before = None
            for effort in EFFORTS:
                gaps, *words = trained(env, candidate, n_r, n_J, effort)
                figures = *mean_and_error(gaps), f"{gaps.min():.1f}", *_added(gaps, before)
                row = (name, str(n_r), *words[:2], *figures, words[2])
                table.add_row(*row)
                Console().print(*row)
                before = gaps
    Console().print(table)


def candidate_of(env: Platform) -> Any:
    """The better of two trainings on many domains, as in the presets."""
    solver, key = default_solver(env), jax.random.key(SEED)
    sizes = {"architecture": Architecture(default_hidden(solver)), "gains": default_gains(solver)}
    start = default_start(env)
    init = None if start == "new" else first_policy(key, env, start, sizes["architecture"])
    return find_candidate(key, env, as_solver(solver), MANY_DOMAINS, init, trainings=TRAININGS, **sizes).policy


def trained(env: Platform, candidate: Any, n_r: int, n_J: int, effort: float) -> tuple[np.ndarray, str, str, str]:
    """The gap of each reference, and in words: effort, updates and CPU seconds."""
    usual = reference_solver(env)
    assert isinstance(usual, Analytic)
    solver = replace(usual, iterations=round(effort * usual.iterations))
    began = time.process_time()
    found = find_references(jax.random.key(SEED + n_r), env, as_solver(solver), candidate, n_r, N_G)
    jax.block_until_ready(found.policy)
    seconds = time.process_time() - began
    gaps = np.asarray(compare(jax.random.key(SEED + 1), env, candidate, found, n_J).gaps.raw).mean(axis=1)
    return gaps, f"{effort:.2g} ×", str(solver.iterations), f"{seconds:.0f}"


def mean_and_error(values: np.ndarray) -> tuple[str, str]:
    """In words."""
    return f"{values.mean():.1f}", f"{values.std(ddof=1) / values.size**0.5:.1f}"


def _added(gaps: np.ndarray, before: np.ndarray | None) -> tuple[str, str]:
    return ("", "") if before is None else mean_and_error(gaps - before)
