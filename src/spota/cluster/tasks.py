"""How problems are cut into tasks, and what they find put together again."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tasks:
    """How problems are cut into tasks for workers; the last digits of a result depend on it, so a run records it."""

    problems: int = 1
    """Problems in a task: a worker solves them together, as one program."""
    cores: int = 1
    """Cores of a worker, which it shares with nobody."""

    def __post_init__(self):
        """Refuse what is no task."""
        for name in ("problems", "cores"):
            if getattr(self, name) < 1:
                raise ValueError(f"tasks.{name}={getattr(self, name)}: must be at least 1; write tasks.{name}=1.")


def cut(problems: int, size: int) -> list[slice]:
    """Neighbouring problems, `size` in each task; the last may have fewer."""
    return [slice(first, min(first + size, problems)) for first in range(0, problems, size)]


def task_name(block: str, number: int) -> str:
    """What a task is called, and the block that keeps what it found; they count from 1."""
    return f"{block}/task-{number:03d}"


def problems_of(piece: slice, noun: str = "problem") -> str:
    """Which problems a task has, in words; they count from 1."""
    numbers: Sequence[int] = range(piece.start + 1, piece.stop + 1)
    return f"{noun} {numbers[0]}" if len(numbers) == 1 else f"{noun}s {numbers[0]} to {numbers[-1]}"
