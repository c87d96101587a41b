"""Best of several: the machines are shared, so the fastest run is the least disturbed one."""

import time
from collections.abc import Callable

import jax

Clock = Callable[[], float]


def best_seconds(run: Callable[[], object], repeats: int = 5, clock: Clock = time.perf_counter) -> float:
    """The shortest time of a call, after one call that compiles; `time.process_time` does not count what others do."""
    return best_in_turns((run,), repeats, clock)[0]


def best_in_turns(runs: tuple[Callable[[], object], ...], repeats: int, clock: Clock) -> list[float]:
    """The same of each of several calls, which take turns: so caches that others empty slow all of them down alike."""
    for run in runs:
        jax.block_until_ready(run())
    rounds = [[_seconds(run, clock) for run in runs] for _ in range(repeats)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _seconds(run: Callable[[], object], clock: Clock) -> float:
    start = clock()
    jax.block_until_ready(run())
    return clock() - start
