"""Best of several: the machines are shared, so the fastest run is the least disturbed one."""

import time
from collections.abc import Callable

import jax


def best_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The shortest time of a call, after one call that compiles."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return min(times)
