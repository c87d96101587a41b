"""A bar on standard error for what takes more than a moment."""

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from spota.commands.output import progress_console


@contextlib.contextmanager
def bar(title: str) -> Iterator[Callable[[str, float], None]]:
    """Gives a function that takes what is done right now and the finished share of it."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=progress_console, transient=True) as progress:
        task = progress.add_task(title, total=None)

        def show(what: str, share: float) -> None:
            if progress.tasks[0].description != what:
                progress.reset(task, description=what)
            progress.update(task, total=1.0, completed=share)

        yield show
