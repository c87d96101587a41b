"""Where the problems of a run are solved: in this process, or by workers, whose finished tasks the run keeps."""

from spota.certify.events import Listener
from spota.certify.procedure import Spread, together
from spota.cluster.engine import Engine
from spota.cluster.jobs import AtWork, Finished, News, WorkerLost
from spota.cluster.solving import Kept, Mapped
from spota.cluster.tasks import Tasks
from spota.polopt.solve import Solution
from spota.polopt.solver import AnySolver, Solver
from spota.runs.directory import Run


def spread_of(tasks: Tasks | None, engine: Engine | None, run: Run | None, listener: Listener | None) -> Spread:
    """How a run solves its problems; one whose problems are cut into tasks needs workers, unless it is finished."""
    if tasks is None:
        return together
    if engine is None:
        return _nobody
    kept = Kept() if run is None else Kept(run.kept, run.keep)
    warn = _ignored if run is None else run.warn

    def spread(solver: AnySolver, block: str) -> Solver:
        return Mapped(solver, block, engine, tasks, kept, lambda news: _note(news, run, listener), warn)

    return spread


def _note(news: News, run: Run | None, listener: Listener | None) -> None:
    """Ends and losses of tasks are lines of metrics.jsonl; how things stand is for whoever watches."""
    if isinstance(news, AtWork):
        if listener is not None:
            listener(news)
    elif run is not None and isinstance(news, Finished):
        seconds = round(news.seconds, 3)
        run.log(block=news.task, finished=True, seconds=seconds, worker=news.worker, losses=news.losses)
    elif run is not None and isinstance(news, WorkerLost):
        run.log(block=news.task, lost=news.why, losses=news.losses)


def _nobody(solver: AnySolver, block: str) -> Solver:
    del solver

    def refuse(*_: object) -> Solution:
        raise ValueError(
            f"{block} is to be solved by workers, because the run was begun so, and another cut gives other last "
            "digits; go on with --on ray, which needs this machine only."
        )

    return refuse


def _ignored(text: str) -> None:
    del text
