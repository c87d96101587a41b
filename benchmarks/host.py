"""Rollouts on a MuJoCo model through the seam, beside a bare loop over `mujoco.batch` with the same policy.

The bare loop steps the same simulations, with a compiled policy on their states, and sums the same rewards. It has no
noise, no delay, no failures and no checks, which the seam has. Both are measured in processor time, of all threads
together: what other programs do at the same time does not count.
"""

import dataclasses
import runpy
import time
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import best_in_turns
from spota.policies import fnn
from spota.sim import rollout

EXAMPLES = Path(__file__).parent.parent / "examples"
MACHINES = (64, 512)
STEPS = 500
"""Of an episode: as many as the shorter one of the examples has."""
REPEATS = 10


def main() -> None:
    table = Table(title="MuJoCo, control steps a second of processor time")
    for column in ("model", "machines", "bare loop", "through the seam", "share"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for file, sizes in (("mujoco_cart_pole.py", MACHINES), ("mujoco_hopper.py", MACHINES[:1])):
        env = runpy.run_path(str(EXAMPLES / file))["env"]
        never = dataclasses.replace(env.functions, failed=None)
        env = dataclasses.replace(env, functions=never, max_steps=STEPS)
        for n in sizes:
            bare, ours = rates(env, n)
            table.add_row(env.name, str(n), f"{bare:,.0f}", f"{ours:,.0f}", f"{100 * ours / bare:.0f} %")
    Console().print(table)


def rates(env, n: int) -> tuple[float, float]:
    """Of the bare loop and of ours."""
    domains, keys = env.domain.sample(jax.random.key(0), n), jax.random.split(jax.random.key(1), (n, 1))
    policy = fnn(jax.random.key(2), env)
    act = jax.jit(lambda seen: policy(seen))
    both = lambda: bare_loop(env, act, domains), lambda: rollout.returns(env, policy, domains, keys).returns
    bare, ours = best_in_turns(both, REPEATS, time.process_time)
    return n * env.max_steps / bare, n * env.max_steps / ours


def bare_loop(env, act, domains) -> np.ndarray:
    """What one writes who has a batch and a policy."""
    columns = {name: np.asarray(column, np.float64) for name, column in domains.items()}
    machines = env.open(columns, np.arange(next(iter(columns.values())).size, dtype=np.uint32))
    sim, told = machines.sim, env.functions
    high = np.array([signal.high for signal in env.actions])[:, None]
    total = np.zeros(sim.nsim)
    for _ in range(env.max_steps):
        command = high * np.asarray(act(np.stack(list(told.observe(sim, columns))).astype(np.float32)))
        total += told.reward(sim, command, columns)
        sim.ctrl[:] = command.T
        sim.step(nstep=env.substeps)
    return total
