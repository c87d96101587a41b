"""What `spota train` and `spota assess` share: where a run lives, how it is shown, and what an interruption leaves."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.markup import escape

from spota import report
from spota.commands.output import progress_console
from spota.commands.progress import bar
from spota.config import Table, read_toml
from spota.events import Assessed, BlockFinished, Event, Listener, Solving, to_all
from spota.live import Live
from spota.run import Run, new_directory
from spota.tensorboard import TensorBoard, writer_class
from spota.types import Env

BETA = "the paper's 60 or 50, elsewhere 2.5 % of the largest return"


def flag(default: str, metavar: str, name: str | None = None, about: str | None = None) -> Any:
    """A flag that is None when it is not given, because a file may give it; the help names the default."""
    return tyro.conf.arg(name=name, metavar=metavar, help=about, help_behavior_hint=f"(default: {default})")


def choice(default: str, names: Sequence[str]) -> Any:
    """A flag with a few possible values; the settings refuse others."""
    return flag(default, f"{{{','.join(names)}}}")


def positional(metavar: str) -> Any:
    """The first argument, which a file may give instead."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="(--config and --resume know it)")


def settings_file(config: Path | None, out: Path | None, resume: Path | None) -> tuple[Path | None, Path | None]:
    """The file with settings and the run directory, if told; to resume is to take both from one directory."""
    if resume is None:
        return config, out
    if config or out:
        raise ValueError(f"--resume {resume} says where and how; leave out {'--config' if config else '--out'}.")
    if not (resume / "config.toml").is_file():
        raise ValueError(f"--resume {resume}: there is no run, because it has no config.toml; write --out {resume}.")
    return resume / "config.toml", resume


def told_by(file: Path | None) -> Table:
    """What a file with settings says."""
    return read_toml(file) if file else {}


@contextlib.contextmanager
def running(
    directory: Path | None, name: str, table: Table, env: Env, threshold: float | None, tensorboard: bool
) -> Iterator[tuple[Run, Listener]]:
    """A run directory with its display; without one told, a new `runs/NAME-TIME`. Ctrl-C says how to go on."""
    if tensorboard:
        writer_class()
    directory = directory or new_directory(Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")
    computed: list[Event] = []

    def note(event: Event) -> None:
        if isinstance(event, Solving) or (isinstance(event, BlockFinished) and not event.replayed):
            computed.append(event)

    with Run(directory, table, warn=warn) as run:
        finished = (directory / "result.json").exists()
        try:
            with contextlib.ExitStack() as stack:
                board = stack.enter_context(contextlib.closing(TensorBoard(directory))) if tensorboard else None
                live = stack.enter_context(Live(progress_console, env.name, env.max_return, threshold))
                yield run, to_all(note, live, board)
        except KeyboardInterrupt:
            _say_what_is_left(directory, table["algo"])
            raise
    if finished and not computed:
        say(f"{directory} holds this run already, and it is finished; choose another --out for a new one.")


def pages_of(run: Run, env: Env) -> Listener:
    """A listener that writes the page anew after every iteration, without what takes a while."""

    def listen(event: Event) -> None:
        if isinstance(event, Assessed):
            write_page(run.directory, env, full=False)

    return listen


def write_page(directory: Path, env: Env, full: bool) -> bool:
    """Write report.html; a page that cannot be written costs nobody the run, but is told. Whether it was written."""
    try:
        if full:
            with bar("the page") as show:
                report.write(directory, env, tell=show)
        else:
            report.write(directory, env, full=False)
    except (ValueError, OSError) as error:
        told = str(error)
        page = str(directory / "report.html")
        warn(told if told.startswith(page) else f"{page} was not written: {told}")
        return False
    return True


def warn(text: str) -> None:
    """A warning on standard error."""
    progress_console.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=not progress_console.is_terminal)


def say(text: str, where: Console = progress_console) -> None:
    """Sentences for people, on standard error unless told otherwise; only a terminal breaks lines."""
    where.print(text, markup=False, soft_wrap=not where.is_terminal)


def _say_what_is_left(directory: Path, algo: str) -> None:
    names = sorted(p.name for p in directory.iterdir() if not p.name.startswith("."))
    policy = "the policy is the best so far" if "policy.npz" in names else "no policy yet"
    command = "assess" if algo == "assess" else "train"
    say(f"{directory} has {', '.join(names)}: {policy}. To go on:\n  spota {command} --resume {directory}")
