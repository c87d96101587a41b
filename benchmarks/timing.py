"""Best of several: the machines are shared, so the fastest run is the least disturbed one."""

import time
from collections.abc import Callable

import jax


def best_seconds(run: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest time of a call, after one call that compiles; `time.process_time` does not count what others do."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = clock()
        jax.block_until_ready(run())
        times.append(clock() - start)
    return min(times)
