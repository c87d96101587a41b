"""How the trainings of an experiment are shown: which of how many, its progress, what an interruption leaves."""

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from spota.certify.algorithm import Result
from spota.certify.events import Event, Listener, to_all
from spota.cluster.engine import Engine
from spota.cluster.jobs import AtWork, Finished, Hear, News
from spota.commands.output import progress_console, say, warn
from spota.commands.progress import bar
from spota.driver import drive, drive_training
from spota.experiments.elsewhere import make_elsewhere
from spota.runs.plan import Plan
from spota.runs.platforms import planned
from spota.runs.training import Trained, Training
from spota.show.live import Live
from spota.sim.env import Platform
from spota.text import duration


def run_all(
    works: Mapping[str, Plan | Training],
    directory: Path,
    hear: Callable[[str, Event], None] | None = None,
    engine: Engine | None = None,
) -> list[Result | Trained]:
    """Every training below the directory, one after the other; finished ones are read.

    `hear` gets the name of a training with everything that it tells. Workers, if there are any, make those of which
    nothing is there yet.
    """
    found = []
    if engine is not None:
        with workers_shown() as show:
            make_elsewhere(engine, works, directory, show)
    for i, (name, work) in enumerate(works.items()):
        say(f"training {i + 1} of {len(works)}: {work.env}, {work.algo}, seed {work.seed}, in {directory / name}")
        found.append(_run(work, directory / name, partial(hear, name) if hear else None))
    return found


@contextlib.contextmanager
def workers_shown() -> Iterator[Hear]:
    """What becomes of tasks, on standard error: a bar, and a line for every end and every loss."""
    with bar("tasks") as show:

        def hear(news: News) -> None:
            if isinstance(news, AtWork):
                show(str(news), news.finished / news.tasks)
            elif isinstance(news, Finished):
                say(f"{news.task}: finished after {duration(news.seconds)} by {news.worker}")
            else:
                say(f"{news.task}: its worker was lost, because {news.why}; another one begins anew")

        yield hear


@contextlib.contextmanager
def resumable(directory: Path) -> Iterator[None]:
    """Ctrl-C says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        again = f"--out {shlex.quote(str(directory))}"
        say(f"{directory} keeps every finished step; the same command with {again} goes on from there.")
        raise


def _run(work: Plan | Training, directory: Path, hear: Listener | None) -> Result | Trained:
    env = planned(work, directory)
    if isinstance(work, Plan):
        return drive(work, env, directory, _shown(directory, env, work.spota.beta, hear), warn=warn).result
    trained = drive_training(work, directory, _shown(directory, env, None, hear), warn=warn)
    for doubt in trained.warnings:
        warn(f"{directory}: {doubt}")
    return trained


@contextlib.contextmanager
def _shown(directory: Path, env: Platform, threshold: float | None, hear: Listener | None) -> Iterator[Listener]:
    with Live(progress_console, directory.name, env.max_return, threshold) as live:
        yield to_all(live, hear)
