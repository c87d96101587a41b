"""The parts of a study, one after the other in this process, or side by side on workers."""

from collections.abc import Callable, Sequence
from typing import Any

from spota.cluster.calls import called
from spota.cluster.engine import Engine
from spota.commands.output import progress_console

Part = tuple[str, tuple[Any, ...]]
"""A name for people, and the arguments of a function."""
Compute = Callable[[Callable[..., Any], Sequence[Part]], list[Any]]
"""(function, parts) → what it returns for each of them, in their order."""


def in_turn(function: Callable[..., Any], parts: Sequence[Part]) -> list[Any]:
    """One part after the other, and a line for each."""
    found = []
    for name, arguments in parts:
        progress_console.print(f"{name} …", style="dim")
        found.append(function(*arguments))
    return found


def on_workers(engine: Engine) -> Compute:
    """All parts at once, as tasks."""

    def compute(function: Callable[..., Any], parts: Sequence[Part]) -> list[Any]:
        from spota.commands.experiment_runs import workers_shown  # slow to import

        numbered = {f"{i}. {name}": arguments for i, (name, arguments) in enumerate(parts, 1)}
        with workers_shown() as show:
            found = dict(called(engine, function, numbered, show))
        return [found[name] for name in numbered]

    return compute
