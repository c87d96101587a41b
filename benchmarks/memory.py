"""What memory earns: the default training with and without it, on the same 20,000 unseen domains; and what it costs.

Every network is the 32-32 one of the default training with the same seed; its memory does nothing before the first
update. Trained policies are kept in `runs/memory`, one after the other, so that the table can be made in parts.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.gradient import gradients_of, returns_of, rows_of_each
from benchmarks.yardstick import CRASH, UNSEEN, unseen_returns
from spota.envs import make
from spota.files.blocks import from_arrays, to_arrays
from spota.policies import Architecture, Network, new_network
from spota.polopt import MANY_DOMAINS, default_gains, default_solver
from spota.polopt.analytic import Analytic
from spota.polopt.solve import solve
from spota.runs.directory import Run
from spota.sim.env import Env, Platform
from spota.sim.rollout import alone, pure

HIDDEN = (32, 32)
WAYS = {
    "no memory": Architecture(HIDDEN),
    "8 recurrent units": Architecture(HIDDEN, recurrent=8),
    "2 observations": Architecture(HIDDEN, 2),
    "4 observations": Architecture(HIDDEN, 4),
    "8 observations": Architecture(HIDDEN, 8),
    "8 observations, 2 steps apart": Architecture(HIDDEN, 8, 2),
}
SEEDS = (51,)
ROWS, TRIES = 150, 4
DIRECTORY = Path("runs/memory")


def main(platforms: Sequence[str] = (), seeds: Sequence[int] = ()) -> None:
    """Both platforms of the paper, or those named."""
    for name in platforms or ("cart-pole", "ball-balancer"):
        env = make(name)
        for seed in seeds or SEEDS:
            _earnings(env, seed)
        _speed(pure(env))


def _earnings(env: Platform, seed: int) -> None:
    table = Table(title=f"{env.name}, seed {seed}: {UNSEEN} unseen domains, of {env.max_return:g}")
    columns = ("the policy acts on", "mean", "worst 1 %", f"loses > {CRASH:g}", "more than without", "± SE", "CPU s")
    for column in columns:
        table.add_column(column, justify="left" if column.startswith("the") else "right")
    plain = None
    for name, architecture in WAYS.items():
        policy, seconds = trained(env, name, architecture, seed)
        earned = unseen_returns(env, policy)
        plain = earned if plain is None else plain
        more, worst = earned - plain, np.sort(earned)[: UNSEEN // 100].mean()
        row = (
            name, f"{earned.mean():.1f}", f"{worst:.0f}", f"{100 * np.mean(more < -CRASH):.2f} %",
            f"{more.mean():+.1f}", f"{more.std() / UNSEEN**0.5:.1f}", f"{seconds:.0f}",
        )  # fmt: skip
        Console(width=120).print(*row)
        table.add_row(*row)
    Console(width=120).print(table)


def trained(env: Platform, name: str, architecture: Architecture, seed: int) -> tuple[Network, float]:
    """The default training of a network with this memory, and the CPU time that it took; kept."""
    k_domains, k_init, k_solve = jax.random.split(jax.random.key(seed), 3)
    solver = default_solver(env)
    init = new_network(k_init, env, architecture, default_gains(solver))

    def train():
        began = time.process_time()
        found = solve(solver, k_solve, env, env.domain.sample(k_domains, MANY_DOMAINS), init)
        return {**to_arrays(found.policy), "seconds": np.array(time.process_time() - began)}

    settings = {"env": env.name, "way": name, "seed": seed}
    with Run(DIRECTORY / f"{env.name}-{name.replace(',', '').replace(' ', '-')}-{seed}", settings) as run:
        arrays = run.block("policy", train)
    return from_arrays(arrays, init), float(arrays["seconds"])


def _speed(env: Env) -> None:
    """Steps a second of CPU time, the best of some tries."""
    table = Table(title=f"{env.name}: million steps a second of CPU time, {ROWS} rollouts")
    for column in ("the policy acts on", "forward", "and back"):
        table.add_column(column, justify="left" if column.startswith("the") else "right")
    rows = rows_of_each(env, 1, ROWS)
    solver = cast(Analytic, default_solver(env))
    for name, architecture in WAYS.items():
        policy = alone(new_network(jax.random.key(0), env, architecture))
        forward = _cpu_seconds(lambda: returns_of(env, policy, rows))  # noqa: B023
        back = _cpu_seconds(lambda: gradients_of(solver, env, policy, rows))  # noqa: B023
        table.add_row(name, *(f"{ROWS * env.max_steps / seconds / 1e6:.2f}" for seconds in (forward, back)))
    Console(width=120).print(table)


def _cpu_seconds(work) -> float:
    jax.block_until_ready(work())
    found = []
    for _ in range(TRIES):
        began = time.process_time()
        jax.block_until_ready(work())
        found.append(time.process_time() - began)
    return min(found)
