"""What `spota train` and `spota assess` share: where a run lives, how it is shown, and what an interruption leaves."""

import contextlib
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tyro

from spota.certify.events import Assessed, BlockFinished, Event, Listener, Solving, to_all
from spota.commands.output import command, progress_console, say, warn
from spota.commands.progress import bar
from spota.runs.config import Table, read_toml
from spota.runs.directory import Run, new_directory
from spota.runs.platforms import refuse_code_inside
from spota.show.live import Live
from spota.show.tensorboard import TensorBoard, writer_class
from spota.sim.env import Env

NO_PAGE = 1
"""How a command ends whose work is complete and whose page could not be written."""
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
        place = shlex.quote(str(resume))
        raise ValueError(f"--resume {place}: there is no run, because it has no config.toml; write --out {place}.")
    refuse_code_inside(resume, read_toml(resume / "config.toml"))
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


def where_the_page_is(directory: Path) -> str:
    """The last line of what a command says, if the page was written."""
    return f"\nThe report is {directory / 'report.html'}: open it in a browser."


def write_page(directory: Path, env: Env, full: bool) -> bool:
    """Write report.html; a page that cannot be written costs nobody the run, but is told. Whether it was written."""
    from spota.show import report  # slow to import

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


def _say_what_is_left(directory: Path, algo: str) -> None:
    names = sorted(p.name for p in directory.iterdir() if not p.name.startswith("."))
    policy = "the policy is the best so far" if "policy.npz" in names else "no policy yet"
    again = command("assess" if algo == "assess" else "train", "--resume", directory)
    say(f"{directory} has {', '.join(names)}: {policy}. To go on:\n  {again}")
