"""Every worker uses its own cores and no others: it takes them before jax starts, and gives them back when it ends.

Ray counts cores but does not say which, and jax takes all that it sees. So a worker locks the first free place of its
machine. The system lets the lock go when the process ends, however it ends.
"""

import contextlib
import itertools
import os
import tempfile
from pathlib import Path
from typing import IO

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
"""How many threads libraries start; XLA reads the last."""
DEVICES = "JAX_NUM_CPU_DEVICES"

_held: list[IO[str]] = []
"""The lock of this process, as long as it lives."""


def take_cores(cores: int) -> None:
    """Let this process, and whatever it starts, run on so many cores that no other worker has; once in its life."""
    if _held:
        return
    for name in THREADS:
        os.environ[name] = str(cores)
    os.environ[DEVICES] = str(cores)
    with contextlib.suppress(OSError, ImportError, AttributeError):  # no locks or no affinity on this system
        place, lock = _first_free(Path(tempfile.gettempdir()) / f"spota-cores-{os.getuid()}")
        _held.append(lock)
        os.sched_setaffinity(0, own_cores(place, cores, sorted(os.sched_getaffinity(0))))


def own_cores(place: int, cores: int, there: list[int]) -> set[int]:
    """The cores of a place; where there are more workers than cores, they begin again with the first."""
    return {there[(place * cores + i) % len(there)] for i in range(min(cores, len(there)))}


def _first_free(directory: Path) -> tuple[int, IO[str]]:
    import fcntl

    directory.mkdir(mode=0o700, exist_ok=True)
    for place in itertools.count():
        file = (directory / f"place-{place}").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return place, file
    raise AssertionError("unreachable")
