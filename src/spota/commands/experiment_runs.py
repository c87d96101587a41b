"""How the trainings of an experiment are shown: which of how many, its progress, what an interruption leaves."""

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from spota.certify.algorithm import Result
from spota.certify.events import Event, Listener
from spota.commands.output import progress_console, say, warn
from spota.envs import make
from spota.experiments.training_runs import run_spota, run_training
from spota.runs.plan import Plan
from spota.runs.training import Trained, Training
from spota.show.live import Live


def run_all(
    works: Mapping[str, Plan | Training], directory: Path, hear: Callable[[str, Event], None] | None = None
) -> list[Result | Trained]:
    """Every training below the directory, one after the other; finished ones are read.

    `hear` gets the name of a training with everything that it tells.
    """
    found = []
    for i, (name, work) in enumerate(works.items()):
        say(f"training {i + 1} of {len(works)}: {work.env}, {work.algo}, seed {work.seed}, in {directory / name}")
        found.append(_run(work, directory / name, partial(hear, name) if hear else None))
    return found


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
    threshold = work.spota.beta if isinstance(work, Plan) else None
    with Live(progress_console, directory.name, make(work.env).max_return, threshold) as live:

        def tell(event: Event) -> None:
            live(event)
            if hear:
                hear(event)

        if isinstance(work, Plan):
            return run_spota(work, directory, tell, warn)
        return run_training(work, directory, tell, warn)
