"""What stays the same over a run of SPOTA: its key, solvers and settings, and how a block is computed and remembered.

Every block's result goes through a `memo` as named arrays, and everything after it is computed from what the memo gave
back: a run that stores them continues where it was stopped, with the same numbers to the last bit.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from spota.certify.events import BlockFinished, BlockStarted, Event, Listener, Solving
from spota.certify.settings import NonDecrSeq, Spota
from spota.files.blocks import SECONDS, Arrays, content_sha256
from spota.polopt.solve import Watch
from spota.polopt.solver import AnySolver, Solver, as_solver
from spota.sim.env import Platform

Memo = Callable[[str, Callable[[], Arrays]], Arrays]
"""(name of a block, how to compute it) → its arrays, stored or computed."""


def compute(name: str, block: Callable[[], Arrays]) -> Arrays:
    """The memo that remembers nothing."""
    del name
    return block()


Spread = Callable[[AnySolver, str], Solver]
"""(a solver, the block that it works for) → how it solves all problems of that block."""


def together(solver: AnySolver, block: str) -> Solver:
    """All problems in this process, as one call."""
    del block
    return as_solver(solver)


class Keys(NamedTuple):
    """The keys of a look at a candidate; what they are for never shares one."""

    candidate: Key[Array, ""]
    references: Key[Array, ""]
    comparison: Key[Array, ""]
    bootstrap: Key[Array, ""]
    performance: Key[Array, ""]
    effort: Key[Array, ""]
    imitation: Key[Array, ""]
    starts: Key[Array, ""]
    pilot: Key[Array, ""]
    challenger: Key[Array, ""]


@dataclass(frozen=True)
class Procedure:
    """What stays the same over the iterations, and how a block is computed."""

    key: Key[Array, ""]
    env: Platform
    candidate_solver: AnySolver
    reference_solver: AnySolver
    settings: Spota
    sequence: NonDecrSeq
    memo: Memo
    listener: Listener | None = None
    spread: Spread = together
    """Where problems are solved."""
    seconds: list[float] = field(default_factory=list)
    """What each block so far has cost, in this process or in an earlier one."""
    contents: dict[str, str] = field(default_factory=dict)
    """What each block so far holds, as `content_sha256` has it, by its name."""

    def keys(self, iteration: int, look: int = 1) -> Keys:
        """The keys of an iteration; of its later looks, those for what joins."""
        key = jax.random.fold_in(self.key, iteration)
        return Keys(*jax.random.split(key if look == 1 else jax.random.fold_in(key, look), len(Keys._fields)))

    def sizes(self, iteration: int) -> tuple[int, int]:
        """n_c and n_r of an iteration."""
        now, before = (
            tuple(int(self.sequence(n, max(i, 1))) for n in (self.settings.n_c, self.settings.n_r))
            for i in (iteration, iteration - 1)
        )
        if min(now) < 1 or any(n < old for n, old in zip(now, before, strict=True)):
            raise ValueError(
                f"The sequence gives n_c, n_r = {before} and then {now}: sizes are at least 1 and never fall; "
                "write e.g. sequence=lambda n_0, k: n_0 * k."
            )
        return now[0], now[1]

    def contents_of(self, iteration: int) -> dict[str, str]:
        """What the blocks of an iteration hold that are finished."""
        return {n: digest for n, digest in self.contents.items() if n.startswith(f"{block_directory(iteration)}/")}

    def solver(self, solver: AnySolver, iteration: int, block: str) -> Solver:
        """How a solver solves the problems of a block."""
        return self.spread(solver, f"{block_directory(iteration)}/{block}")

    def tell(self, event: Event) -> None:
        """Say it, if anyone listens."""
        if self.listener is not None:
            self.listener(event)

    def block(self, iteration: int, name: str, n: int, make: Callable[[Watch], Arrays], problems: int = 1) -> Arrays:
        """Let the memo give the arrays of a block, and tell its beginning and end."""
        self.tell(BlockStarted(iteration, name, n, problems))
        computed = []

        def now() -> Arrays:
            begun = time.monotonic()
            arrays = make(lambda progress: self.tell(Solving(iteration, name, progress)))
            computed.append(name)
            # What an interrupted run has spent is spent: the time is a result like any other.
            return {**arrays, SECONDS: np.array(time.monotonic() - begun)}

        whole_name = f"{block_directory(iteration)}/{name}"
        arrays = self.memo(whole_name, now)
        self.contents[whole_name] = content_sha256(arrays)
        self.seconds.append(float(arrays[SECONDS]))
        self.tell(BlockFinished(iteration, name, self.seconds[-1], not computed, arrays))
        return arrays


def block_name(block: str, look: int) -> str:
    """What a block is called in its iteration."""
    return block if look == 1 else f"look-{look}/{block}"


def block_directory(iteration: int) -> str:
    """Where the blocks of an iteration are."""
    return f"iteration-{iteration:02d}"
