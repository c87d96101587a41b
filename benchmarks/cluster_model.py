"""How the time of a look falls with the number of workers: a model of four measured costs, and virtual workers.

    T(W) = start + first + max(⌈n / W⌉ (d + task), n · driver + d + task)

Every worker imports and compiles once (`first`), tasks come in rounds, and the driver handles one result after the
other. The virtual workers are threads that sleep; everything else is the loop that real tasks go through.
"""

import math
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spota.cluster.engine import Done, Outcome, Said
from spota.cluster.jobs import results

REFERENCES = 200
DURATIONS = {"10 s": 10.0, "10 min": 600.0, "2 h": 7200.0}
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Costs:
    """Seconds: to begin, of a worker's first task, of any task beside its work, and of the driver for a result."""

    start: float
    first: float
    task: float
    driver: float


def predicted(n: int, workers: int, duration: float, costs: Costs) -> float:
    """Seconds until n references are there."""
    rounds = math.ceil(n / workers) * (duration + costs.task)
    handled = n * costs.driver + duration + costs.task
    return costs.start + costs.first + max(rounds, handled)


class Sleepers:
    """An engine of threads that sleep."""

    def __init__(self, workers: int, costs: Costs):
        """Begin them all."""
        self.workers, self._costs = workers, costs
        self._asked: queue.Queue[tuple[int, float]] = queue.Queue()
        self._ended: queue.Queue[int] = queue.Queue()
        self._number = 0
        for _ in range(workers):
            threading.Thread(target=self._sleep, daemon=True).start()

    def share(self, function: Any, common: Any) -> Any:
        """Nothing."""
        return function, common

    def submit(self, name: str, shared: Any, own: float, cores: int) -> int:
        """The seconds to sleep."""
        del name, shared, cores
        self._number += 1
        self._asked.put((self._number, own))
        return self._number

    def wait(self, handles: Sequence[int], seconds: float) -> list[tuple[int, Outcome]]:
        """Whoever woke up; to handle it takes as long as with Ray."""
        del handles
        try:
            number = self._ended.get(timeout=seconds)
        except queue.Empty:
            return []
        time.sleep(self._costs.driver)
        return [(number, Done(None, "thread/1", "none", 0.0))]

    def heard(self) -> list[Said]:
        """Nobody speaks."""
        return []

    def cancel(self, handles: Sequence[int]) -> None:
        """They are daemons."""

    def _sleep(self) -> None:
        time.sleep(self._costs.first)
        while True:
            number, seconds = self._asked.get()
            time.sleep(seconds + self._costs.task)
            self._ended.put(number)


def simulated(n: int, workers: int, duration: float, costs: Costs) -> float:
    """The same with threads that sleep; what it takes to begin is added."""
    engine, begun = Sleepers(workers, costs), time.monotonic()
    jobs = {f"task-{i:03d}": duration for i in range(n)}
    list(results(engine, None, jobs, 1, lambda _: None))
    return costs.start + time.monotonic() - begun


def figure(costs: Costs, checked: dict[int, float]) -> Any:
    """Time over workers for three kinds of references; points are virtual workers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name, duration in DURATIONS.items():
        times = [predicted(REFERENCES, workers, duration, costs) for workers in WORKERS]
        (line,) = axes.loglog(WORKERS, times, label=f"references of {name}")
        ideal = [REFERENCES * duration / min(workers, REFERENCES) for workers in WORKERS]
        axes.loglog(WORKERS, ideal, ":", color=line.get_color(), alpha=0.6)
    axes.loglog(list(checked), list(checked.values()), "o", color="black", label="virtual workers, 10 s")
    ticks = {1: "1 s", 60: "1 min", 3600: "1 h", 86400: "1 day", 7 * 86400: "1 week"}
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_xticks(WORKERS, [str(w) for w in WORKERS])
    axes.minorticks_off()
    axes.set(xlabel="workers", ylabel=f"time of {REFERENCES} references", ylim=(5, None))
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    return picture
