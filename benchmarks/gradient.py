"""The gradient through the simulator, and what a reference gains by it: this version beside the first, in one run.

The first one is kept here: Adam with a cosine, and a way back that simulates every segment of fifty steps again. Both
solve the same problems: references on 50 domains each, from a candidate that Adam trained on 400 domains, which leaves
much to gain; what they gain is measured on random numbers that no training has seen.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console
from rich.table import Table

from benchmarks.timing import best_seconds
from spota.certify.candidates import find_candidate
from spota.certify.comparison import compare
from spota.certify.references import find_references
from spota.envs import make
from spota.policies import Architecture, new_network
from spota.polopt import default_gains, default_hidden, reference_solver
from spota.polopt.analytic import Analytic
from spota.polopt.barrier import Barrier
from spota.polopt.rows import Rows
from spota.polopt.solver import as_solver
from spota.sim import randomness, rollout
from spota.sim.acting import acting_with
from spota.sim.env import Env, Policy

SIZES = ((1, 50), (1, 500), (10, 20), (10, 64))
"""Problems side by side, and rows of each."""
CANDIDATE, N_R, N_J, SEED = 400, 50, 8, 7
PROBLEMS = (1, 10, 20)
MOST_OF_FIRST = 10
"""Problems together that the first version solves; it takes minutes for them."""
BARRIER = 60.0


@dataclass(frozen=True)
class WithAdam(Analytic):
    """Adam, whose step size falls with a cosine."""

    def optimizer(self) -> optax.GradientTransformation:
        """What turns gradients into steps."""
        schedule = optax.cosine_decay_schedule(self.learning_rate, self.iterations)
        return optax.chain(optax.clip_by_global_norm(self.clip_norm), optax.adam(schedule))


@dataclass(frozen=True)
class FirstVersion(WithAdam):
    """States are stored every 50 steps: what is between them is computed twice more."""

    def loss(self, policy: Policy, env: Env, rows: Rows, barrier: Barrier | None = None) -> Any:
        """Minus the mean return with barrier, a step."""
        barrier = self.barrier_at(0.0) if barrier is None else barrier
        words, act = randomness.words(rows.keys), acting_with(policy)
        begin = rollout.begin(env, act, rows.domains, rows.keys)
        free = barrier.free(rollout.danger(env, begin.state, rows.domains))

        @jax.checkpoint
        def step(carry, t):
            world, total = carry
            world, now = rollout.advance(env, act, rows.domains, words, t, world)
            cost = barrier.cost(rollout.danger(env, world.state, rows.domains), free)
            return (world, total + now.reward - jnp.where(now.alive, cost, 0.0)), None

        segment = jax.checkpoint(lambda carry, times: jax.lax.scan(step, carry, times))
        times = jnp.arange(env.max_steps).reshape(-1, 50)
        (_, total), _ = jax.lax.scan(segment, (begin, jnp.zeros(rows.keys.shape)), times)
        return -total.mean() / env.max_steps


def main() -> None:
    """Speed on both platforms of the paper, and gains on the Ball-Balancer."""
    for name in ("ball-balancer", "cart-pole"):
        _speed(make(name))
    _gain(make("ball-balancer"))


def _speed(env: Env) -> None:
    table = Table(title=f"{env.name}: million steps per second of CPU time")
    for column in ("problems", "rows of each", "forward", "and back", "ratio", "first version", "ratio", "faster by"):
        table.add_column(column, justify="right")
    today = reference_solver(env)
    assert isinstance(today, Analytic)
    for problems, n in SIZES:
        given = _policies(env, today, problems), rows_of_each(env, problems, n)
        forward = _cpu(lambda: returns_of(env, *given))  # noqa: B023
        now, first = (_cpu(lambda: gradients_of(s, env, *given)) for s in (today, FirstVersion()))  # noqa: B023
        rates = [problems * n * env.max_steps / seconds / 1e6 for seconds in (forward, now, first)]
        table.add_row(
            str(problems), str(n), f"{rates[0]:.1f}", f"{rates[1]:.2f}", f"{now / forward:.1f}", f"{rates[2]:.2f}",
            f"{first / forward:.1f}", f"{first / now:.2f} ×",
        )  # fmt: skip
    Console().print(table)


def _policies(env: Env, solver: Analytic, problems: int) -> Policy:
    """New networks of a reference's size, with a leading axis."""
    sizes = Architecture(default_hidden(solver)), default_gains(solver)
    networks = [new_network(key, env, *sizes) for key in jax.random.split(jax.random.key(SEED), problems)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)


def rows_of_each(env: Env, problems: int, n: int) -> Rows:
    """Domains of their own for each problem, and keys."""
    drawn = env.domain.sample(jax.random.key(1), problems * n)
    domains = {name: column.reshape(problems, n) for name, column in drawn.items()}
    return Rows(domains, jax.random.split(jax.random.key(2), (problems, n)))


def _cpu(run: Callable[[], object]) -> float:
    return best_seconds(run, clock=time.process_time)


def _gain(env: Env) -> None:
    candidate = _candidate(env)
    today = reference_solver(env)
    assert isinstance(today, Analytic)
    first = FirstVersion(iterations=540, learning_rate=3e-2, rows=N_R, barrier=BARRIER)
    solvers = {
        "first version, 540 × 3e-2": first,
        "60 updates": replace(today, iterations=60),
        "references today": today,
    }
    table = Table(title=f"{env.name}: gain on {N_R} own domains and fresh noise, with compilation")
    columns = ("solver", "problems", "mean gain", "least", "largest", "seconds", "CPU seconds", "gain a CPU minute")
    for column in columns:
        table.add_column(column, justify="left" if column == "solver" else "right")
    for problems in PROBLEMS:
        for name, solver in solvers.items():
            if solver is first and problems > MOST_OF_FIRST:
                continue
            row = (name, str(problems), *_reached(env, solver, candidate, problems))
            Console().print(*row)
            table.add_row(*row)
    Console().print(table)


def _candidate(env: Env) -> Policy:
    """What the first version trained: a narrow network that does little at first, on 400 domains, by Adam."""
    solver = WithAdam(iterations=400, learning_rate=3e-2, rows=CANDIDATE, barrier=BARRIER)
    key = jax.random.key(SEED)
    return find_candidate(key, env, as_solver(solver), CANDIDATE, architecture=Architecture((16, 16))).policy


def _reached(env: Env, solver: Analytic, candidate: Policy, problems: int) -> tuple[str, ...]:
    began, cpu = time.perf_counter(), time.process_time()
    references = find_references(jax.random.key(SEED + 1), env, as_solver(solver), candidate, N_R, problems)
    jax.block_until_ready(references.policy)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    found = compare(jax.random.key(SEED + 2), env, candidate, references, N_J)
    gains = np.asarray(found.gaps.raw).mean(axis=1)
    figures = (gains.mean(), gains.min(), gains.max())
    return *(f"{gain:.1f}" for gain in figures), f"{seconds:.0f}", f"{cpu:.0f}", f"{60 * gains.sum() / cpu:.0f}"


@eqx.filter_jit
def returns_of(env: Env, policies: Policy, rows: Rows) -> Any:
    """Forward alone, of problems side by side."""
    return jax.vmap(lambda one, own: rollout.summed(env, acting_with(one), own.domains, own.keys)[0])(policies, rows)


@eqx.filter_jit
def gradients_of(solver: Analytic, env: Env, policies: Policy, rows: Rows) -> Any:
    """Forward and back, of problems side by side."""
    return jax.vmap(lambda one, own: jax.value_and_grad(solver.loss)(one, env, own))(policies, rows)
