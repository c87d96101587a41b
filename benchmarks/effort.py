"""Are references strong? What they gain over a candidate with a third of their effort, with theirs, and three times it.

A candidate of many domains; twenty references on n_r others each, all from the candidate; the gap on fresh synchronised
rollouts. Effort is enough where three times as much adds less than a tenth, or less than 2 of return.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from spota.certify.candidates import find_candidate
from spota.certify.comparison import compare
from spota.certify.references import find_references
from spota.envs import make
from spota.policies import find
from spota.polopt.analytic import Analytic
from spota.polopt.solver import as_solver
from spota.runs.config import solvers

N_G, CANDIDATE, SEED = 20, 2000, 41
SIZES = {1: 100, 5: 20, 50: 4}
"""n_r, and rollouts per domain in the comparison."""
EFFORTS = (1 / 3, 1, 3)


def main(platforms: Sequence[str] = (), policy: str | None = None) -> None:
    """Both platforms or those named, with a candidate of this benchmark's or another policy."""
    table = Table(title=f"{N_G} references: mean gap on fresh rollouts")
    columns = ("platform", "n_r", "effort", "updates", "mean gap", "± SE", "least", "references that lost", "seconds")
    for column in columns:
        table.add_column(column, justify="left" if column == "platform" else "right")
    for name in platforms or ("ball-balancer", "cart-pole"):
        env = make(name)
        trainer, usual = solvers("default", env)
        assert isinstance(usual, Analytic)
        key = jax.random.key(SEED)
        candidate = find(policy, env) if policy else find_candidate(key, env, as_solver(trainer), CANDIDATE).policy
        for n_r, n_J in SIZES.items():
            for effort in EFFORTS:
                began = time.perf_counter()
                solver = replace(usual, iterations=round(effort * usual.iterations))
                found = find_references(jax.random.key(SEED + n_r), env, as_solver(solver), candidate, n_r, N_G)
                seconds = time.perf_counter() - began
                gaps = np.asarray(compare(jax.random.key(SEED + 1), env, candidate, found, n_J).gaps.raw).mean(axis=1)
                figures = (gaps.mean(), gaps.std(ddof=1) / N_G**0.5, gaps.min())
                row = (f"{effort:.2g} ×", str(solver.iterations), *(f"{f:.1f}" for f in figures))
                table.add_row(name, str(n_r), *row, f"{100 * np.mean(gaps < 0):.0f} %", f"{seconds:.0f}")
                Console().print(name, n_r, *row, f"{seconds:.0f} s")
    Console().print(table)
