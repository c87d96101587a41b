"""What `spota train` and `spota assess` share: where a run lives, how it is shown, and what an interruption leaves."""

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from spota.certify.events import BlockFinished, Event, Listener, Solving, to_all
from spota.commands.output import command, progress_console, say
from spota.runs.config import Table, read_toml
from spota.runs.directory import new_directory
from spota.runs.platforms import refuse_code_inside
from spota.show.live import Live
from spota.show.tensorboard import TensorBoard, writer_class
from spota.sim.env import Platform

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


SeedFlag = Annotated[int | None, flag("0", "N", about="The same seed gives the same result.")]
OnFlag = Annotated[
    str | None,
    flag(
        "in this process", "ray|ray:N|ray://HOST:PORT",
        about="Let workers of a Ray cluster work: on this machine's cores, on N of them, or on a cluster that runs.",
    ),
]  # fmt: skip
ResumeFlag = Annotated[
    Path | None, flag("none", "DIR", about="A run directory to go on with; nothing else needs to be said.")
]


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


def run_directory(given: Path | None, name: str, tensorboard: bool) -> Path:
    """The directory that was told, or a new `runs/NAME-TIME`; none if TensorBoard is wanted and not installed."""
    if tensorboard:
        writer_class()
    return given or new_directory(Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")


@contextlib.contextmanager
def shown(directory: Path, algo: str, env: Platform, threshold: float | None, tensorboard: bool) -> Iterator[Listener]:
    """The display of a run; Ctrl-C says how to go on, and a run that was finished before is told as such."""
    computed: list[Event] = []

    def note(event: Event) -> None:
        if isinstance(event, Solving) or (isinstance(event, BlockFinished) and not event.replayed):
            computed.append(event)

    finished = (directory / "result.json").exists()
    try:
        with contextlib.ExitStack() as stack:
            board = stack.enter_context(contextlib.closing(TensorBoard(directory))) if tensorboard else None
            live = stack.enter_context(Live(progress_console, env.name, env.max_return, threshold))
            yield to_all(note, live, board)
    except KeyboardInterrupt:
        _say_what_is_left(directory, algo)
        raise
    if finished and not computed:
        say(f"{directory} holds this run already, and it is finished; choose another --out for a new one.")


def going_on(directory: Path) -> tuple[str | Path, ...]:
    """The flags that continue a run; one whose problems are tasks needs workers again."""
    file = directory / "config.toml"
    with_workers = file.is_file() and "tasks" in read_toml(file)
    return ("--resume", directory, *(("--on", "ray") if with_workers else ()))


def told_of_page(page: Path | None) -> str:
    """The last line of what a command says, if the page was written."""
    return f"\nThe report is {page}: open it in a browser." if page else ""


def end(page: Path | None, wanted: bool) -> None:
    """End the command: a page that was wanted and could not be written is no success."""
    if wanted and page is None:
        sys.exit(NO_PAGE)


def _say_what_is_left(directory: Path, algo: str) -> None:
    names = sorted(p.name for p in directory.iterdir() if not p.name.startswith("."))
    policy = "the policy is the best so far" if "policy.npz" in names else "no policy yet"
    again = command("assess" if algo == "assess" else "train", *going_on(directory))
    say(f"{directory} has {', '.join(names)}: {policy}. To go on:\n  {again}")
