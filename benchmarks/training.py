"""Training the Cart-Pole with PPO: ours against Stable-Baselines3, in one run.

Both have the same domains, noise and delay, the same 16-16 networks, batch, minibatches and epochs. Stable-Baselines3
runs in `.bench-venv`, with as many torch threads as are fastest here, on a Cart-Pole in NumPy: all rollouts side by
side in one Gymnasium vector environment, or single Gymnasium environments in a DummyVecEnv, as is usual.
"""

import contextlib
import json
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.table import Table

from benchmarks import iteration
from spota.commands.output import console
from spota.envs import make
from spota.policies import FNN, fnn
from spota.polopt.experience import explore
from spota.polopt.ppo import PPO
from spota.polopt.rows import all_rows
from spota.polopt.solve import Progress, solve
from spota.sim.domain import Domains, repeat
from spota.sim.env import Env

PYTHON = Path(".bench-venv/bin/python")
DOMAINS = 5
SETTING = replace(PPO.paper(), iterations=200, minibatches=50, learning_rate=5e-4, initial_std=0.3)
SHARED = ("gamma", "lam", "clip", "clip_norm", "epochs", "minibatches", "initial_std", "learning_rate")
GOAL = 2000.0
SEED = 0


@dataclass(frozen=True)
class Speed:
    """Seconds of an iteration, and environment steps taken in it."""

    name: str
    rollout: float
    updates: float
    whole: float
    steps: float


@dataclass(frozen=True)
class Learning:
    """How long a mean return of GOAL took; `reached` is the last mean return."""

    name: str
    seconds: float
    iterations: int
    reached: float


class _GoalReached(Exception):  # noqa: N818, no error
    """Ends a training."""


def main(limit: float) -> None:
    env = make("cart-pole")
    domains = env.domain.sample(jax.random.key(SEED), DOMAINS)
    cold, _ = _learn(env, domains, "spota, with compilation")
    warm, policy = _learn(env, domains, "spota")
    ours, theirs = _speed(env, domains, policy), _stable_baselines(domains, limit)
    single = _their_speed("Stable-Baselines3, DummyVecEnv", theirs["single"])
    vector = _their_speed("Stable-Baselines3, vector env", theirs["vector"])
    _print_speeds([single, vector, ours])
    _print_learning([Learning(vector.name, **theirs["learning"]), cold, warm], limit)


def _learn(env: Env, domains: Domains, name: str) -> tuple[Learning, FNN]:
    """Train until an evaluation on the training domains reaches the goal; evaluations count as time."""
    reports: list[Progress] = []

    def stop_at_goal(progress: Progress):
        reports.append(progress)
        if progress.returns[0] >= GOAL:
            raise _GoalReached

    start = time.perf_counter()
    with contextlib.suppress(_GoalReached):
        solve(SETTING, jax.random.key(SEED), env, domains, fnn(jax.random.key(SEED), env), stop_at_goal)
    last = reports[-1]
    found = Learning(name, time.perf_counter() - start, last.iteration, float(last.returns[0]))
    return found, jax.tree.map(lambda x: x[0], last.policy)


def _speed(env: Env, domains: Domains, policy: FNN) -> Speed:
    """With a policy that has learned to balance; steps after a failure are computed, but do not count as taken."""
    found = iteration.seconds(SETTING, env, domains, policy)
    rows = all_rows(domains, jax.random.key(SEED), SETTING.rollouts)
    actor = SETTING.begin(jax.random.key(SEED), env, policy).nets.actor
    taken = int(jax.jit(lambda: explore(env, rows, actor).alive.sum())())
    return Speed("spota", found["rollout"], found["advantages"] + found["updates"], found["whole"], taken)


def _stable_baselines(domains: Domains, limit: float) -> dict[str, Any]:
    if not PYTHON.exists():
        raise SystemExit(f"{PYTHON} is missing: Stable-Baselines3 has an environment of its own; write make bench.")
    job = {name: getattr(SETTING, name) for name in SHARED}
    rows = {name: np.asarray(column, float).tolist() for name, column in repeat(domains, SETTING.rollouts).items()}
    job |= {"domains": rows, "hidden": [16, 16], "seed": SEED, "repeats": 3, "goal": GOAL, "limit": limit}
    job["threads"] = len(jax.devices())
    done = subprocess.run(
        [PYTHON, "-m", "benchmarks.stable_baselines"], input=json.dumps(job), text=True, stdout=-1, check=True
    )
    return json.loads(done.stdout)


def _their_speed(name: str, found: dict[str, float]) -> Speed:
    return Speed(name, found["rollout"], found["updates"], found["rollout"] + found["updates"], found["steps"])


def _print_speeds(speeds: list[Speed]) -> None:
    ours = speeds[-1]
    title = f"Cart-Pole, PPO iterations of {DOMAINS * SETTING.rollouts} rollouts with {SETTING.epochs} epochs"
    table = _table(title, "", "rollout s", "updates s", "steps/s", "ours ×")
    for s in speeds:
        rate, ratio = s.steps / s.whole, (ours.steps / ours.whole) / (s.steps / s.whole)
        table.add_row(s.name, f"{s.rollout:.3f}", f"{s.updates:.3f}", f"{rate:,.0f}", f"{ratio:.1f}")
    console.print(table)


def _print_learning(runs: list[Learning], limit: float) -> None:
    ours = runs[-1]
    table = _table(f"Cart-Pole, training to a mean return of {GOAL:.0f}", "", "seconds", "iterations", "ours ×")
    for run in runs:
        took, ratio = f"{run.seconds:.1f}", f"{run.seconds / ours.seconds:.1f}"
        if run.reached < GOAL:
            took, ratio = f"not within {limit:.0f} ({run.reached:.0f})", f"> {ratio}"
        table.add_row(run.name, took, str(run.iterations), ratio)
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table
