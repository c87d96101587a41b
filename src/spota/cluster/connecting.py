"""From what `--on` or `workers=` says to an engine, without Ray where nobody asks for it."""

from contextlib import AbstractContextManager, nullcontext

from spota.cluster.address import parsed
from spota.cluster.engine import Engine
from spota.cluster.tasks import Tasks


def tasks_on(workers: str | None) -> Tasks | None:
    """How problems are cut unless settings say otherwise; not at all without workers. Refuses a wrong address."""
    if workers is None:
        return None
    parsed(workers)
    return Tasks()


def engine_on(workers: str | None, tasks: Tasks | None) -> AbstractContextManager[Engine | None]:
    """The engine while something is computed; None without workers."""
    if workers is None:
        return nullcontext()
    from spota.cluster.on_ray import connected

    return connected(parsed(workers), (tasks or Tasks()).cores)
