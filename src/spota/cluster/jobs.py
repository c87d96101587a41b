"""Tasks until all are done: what arrives is given on at once, and what is lost with a worker is asked for again."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from spota.cluster.engine import HANGS, Done, Engine, Failed, Lost

LOOK = 0.5
"""Seconds after which it is told how things stand, even if nothing has ended."""
MOST_LOSSES = 10
"""Workers that may be lost over one task, before it is the task that kills them."""


@dataclass(frozen=True)
class Finished:
    """A task ended."""

    task: str
    worker: str
    seconds: float
    losses: int
    """Workers that were lost over it before."""


@dataclass(frozen=True)
class WorkerLost:
    """A worker was lost over a task, which is given to another one."""

    task: str
    why: str
    losses: int


@dataclass(frozen=True)
class AtWork:
    """How things stand: tasks that are finished, of how many, and who works right now."""

    finished: int
    tasks: int
    workers: tuple[str, ...]
    lost: int

    def __str__(self) -> str:
        """In words."""
        machines = Counter(worker.rpartition("/")[0] for worker in self.workers)
        busy = ", ".join(f"{n} on {host}" for host, n in sorted(machines.items())) or "none yet"
        lost = f"; {self.lost} lost" if self.lost else ""
        return f"{self.finished} of {self.tasks} tasks finished; workers: {busy}{lost}"


class TaskError(ValueError):
    """A task raised; what it says is for the user."""

    def __init__(self, task: str, text: str):
        """Which task, and what it says."""
        super().__init__(text)
        self.task = task


News = Finished | WorkerLost | AtWork
Hear = Callable[[News], None]
Follow = Callable[[str, dict[str, Any]], None]
"""(name of a task, what its worker says about it)."""


def results(
    engine: Engine,
    shared: Any,
    jobs: Mapping[str, Any],
    cores: int,
    hear: Hear,
    follow: Follow = lambda *_: None,
    before: int = 0,
) -> Generator[tuple[str, Done], None, None]:
    """What each task gives, in the order in which they end; `before` of them were finished already.

    A task that raises ends everything with its own words; what was finished before was given on.
    """
    losses: Counter[str] = Counter()
    said: dict[str, dict[str, Any]] = {}
    running = {engine.submit(name, shared, own, cores): name for name, own in jobs.items()}
    try:
        while running:
            ended = engine.wait(list(running), LOOK)
            for name, words in engine.heard():
                if name in running.values():  # what comes late is about a task that has ended
                    said[name] = {**said.get(name, {}), **words}
                    follow(name, words)
            for handle, outcome in ended:
                name = running.pop(handle)
                last = said.pop(name, {})
                if isinstance(outcome, Done):
                    yield name, outcome
                    hear(Finished(name, outcome.worker, outcome.seconds, losses[name]))
                    continue
                losses[name] += 1
                _refuse_hopeless(name, outcome, last, losses[name])
                hear(WorkerLost(name, _why(outcome), losses[name]))
                running[engine.submit(name, shared, jobs[name], cores)] = name
            busy = tuple(said[name]["worker"] for name in running.values() if "worker" in said.get(name, {}))
            hear(AtWork(before + len(jobs) - len(running), before + len(jobs), busy, losses.total()))
    finally:
        engine.cancel(list(running))


def _refuse_hopeless(name: str, outcome: Failed | Lost, last: Mapping[str, Any], losses: int) -> None:
    """What would fail again: a task that raised, that hung until its worker gave up, or that kills every worker."""
    if isinstance(outcome, Failed):
        raise TaskError(name, outcome.text)
    if HANGS in last:
        raise TaskError(name, last[HANGS])
    if losses >= MOST_LOSSES:
        raise ValueError(
            f"{name} was lost with {losses} workers, the last time because {outcome.why}; if a worker needs more "
            "memory than it gets, use fewer of them on a machine, e.g. --set tasks.cores=2."
        )


def _why(outcome: Failed | Lost) -> str:
    return outcome.why if isinstance(outcome, Lost) else outcome.text
