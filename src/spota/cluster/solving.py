"""A solver that maps: the problems of a block are cut into tasks, and every finished task is kept at once.

A problem's result is a function of its key, domains and start, and of who shares its task. So it does not matter which
worker solves it, how many there are, or how often one was lost.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.cluster.engine import Done, Engine
from spota.cluster.following import Following
from spota.cluster.jobs import Hear, TaskError, results
from spota.cluster.tasks import Tasks, cut, problems_of, task_name
from spota.cluster.worker import Say
from spota.files.blocks import SECONDS, Arrays, from_arrays, to_arrays
from spota.polopt.optimizer import Progress, Solution, Watch
from spota.polopt.rows import Score
from spota.polopt.solver import AnySolver, as_solver
from spota.sim import compiled
from spota.sim.env import Platform
from spota.sim.host import HostEnv

EVERY = 0.5
"""Seconds between two words of a worker."""
CPU = "cpu"
"""The kind of CPU that a task was computed on."""


@dataclass(frozen=True)
class Kept:
    """Where finished tasks are kept: nowhere, unless there is a run directory."""

    read: Callable[[str], Arrays | None] = lambda _: None
    write: Callable[[str, Arrays], object] = lambda *_: None


@dataclass(frozen=True)
class Mapped:
    """A solver whose problems workers solve, for one block."""

    solver: AnySolver
    block: str
    engine: Engine
    tasks: Tasks
    kept: Kept = Kept()
    hear: Hear = lambda _: None
    warn: Callable[[str], None] = lambda _: None

    def __call__(
        self,
        keys: Key[Array, "P"],
        env: Platform,
        domains: dict[str, Float[Array, "P n"]],
        inits: Any,
        watch: Watch | None = None,
        /,
    ) -> Solution:
        """Solve all problems, except those that are kept already."""
        pieces = {task_name(self.block, i): piece for i, piece in enumerate(cut(len(keys), self.tasks.problems), 1)}
        found = {name: arrays for name in pieces if (arrays := self.kept.read(name)) is not None}
        given = {"keys": jax.random.key_data(keys), "domains": domains, "inits": inits}
        given = jax.tree.map(np.asarray, given)
        jobs = {name: jax.tree.map(lambda x, p=pieces[name]: x[p], given) for name in pieces if name not in found}
        if jobs:
            try:
                self._solve(jobs, env, found, Following(pieces, dict(found), watch))
            except TaskError as error:
                raise ValueError(f"{error} It was {self._where(pieces[error.task], env, domains)}.") from None
        self._warn_of_several_kinds(found)
        return joined([found[name] for name in pieces], inits)

    def _solve(self, jobs: dict[str, Any], env: Platform, found: dict[str, Arrays], following: Following) -> None:
        """Fill in what the tasks find."""
        shared = self.engine.share(solve_piece, (self.solver, env))
        cores, before = self.tasks.cores, len(found)
        with closing(results(self.engine, shared, jobs, cores, self.hear, following.hear, before)) as arriving:
            for name, done in arriving:
                found[name] = _arrays(done)
                self.kept.write(name, found[name])
                following.end(name, found[name])

    def _where(self, piece: slice, env: Platform, domains: dict[str, Float[Array, "P n"]]) -> str:
        """Which problems, and where they are; a simulator that broke has named its domain already."""
        which = f"{problems_of(piece)} of {self.block}"
        first = ", ".join(f"{name}={float(column[piece.start, 0]):g}" for name, column in domains.items())
        return which if isinstance(env, HostEnv) else f"{which}, whose first domain is ({first})"

    def _warn_of_several_kinds(self, found: dict[str, Arrays]) -> None:
        kinds = sorted({str(arrays[CPU]) for arrays in found.values()})
        if len(kinds) > 1:
            self.warn(
                f"{self.block} was computed on different kinds of CPU ({'; '.join(kinds)}): the last digits depend on "
                "which of them solved what, so another run may differ there."
            )


def solve_piece(common: tuple[AnySolver, Platform], own: dict[str, Any], say: Say) -> Arrays:
    """The problems of one task, in a worker; what one has compiled, the others of its machine load."""
    compiled.keep_programs()
    solver, env = common
    keys, domains, inits = jax.tree.map(jnp.asarray, (own["keys"], own["domains"], own["inits"]))
    found = as_solver(solver)(jax.random.wrap_key_data(keys), env, domains, inits, seldom(say))
    return to_arrays(found)


def seldom(say: Say, every: float = EVERY) -> Watch:
    """A watch that says how it goes, but not after every update."""
    last, steps = 0.0, 0

    def watch(progress: Progress) -> None:
        nonlocal last, steps
        steps += progress.steps
        now = time.monotonic()
        if now - last < every and progress.iteration < progress.iterations:
            return
        figures = {name: np.asarray(getattr(progress, name)) for name in ("returns", "survival", "best")}
        say({"iteration": progress.iteration, "iterations": progress.iterations, "steps": steps, **figures})
        last, steps = now, 0

    return watch


def joined(parts: list[Arrays], inits: Any) -> Solution:
    """The solution of all problems; `evaluated_at` has no axis over them."""
    zero, curve = jnp.zeros(()), jnp.zeros((1, 1))
    score = Score(zero, zero)
    like = Solution(inits, score, score, curve, curve, zero[None], jnp.zeros(1, bool))  # only its structure counts
    found = [from_arrays(arrays, like) for arrays in parts]
    many = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *found)
    return eqx.tree_at(lambda s: s.evaluated_at, many, found[0].evaluated_at)


def _arrays(done: Done) -> Arrays:
    """What a task found, and what it took."""
    return {**done.value, SECONDS: np.array(done.seconds), CPU: np.array(done.cpu)}
