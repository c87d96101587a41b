"""The same function for many arguments, each a task."""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Any

from spota.cluster.engine import Engine
from spota.cluster.jobs import Hear, results
from spota.cluster.worker import Say
from spota.sim import compiled


def called(
    engine: Engine, function: Callable[..., Any], arguments: Mapping[str, tuple[Any, ...]], hear: Hear, cores: int = 1
) -> Generator[tuple[str, Any], None, None]:
    """function(*arguments) under the names of the arguments, in the order in which they end."""
    shared = engine.share(_call, function)
    with closing(results(engine, shared, arguments, cores, hear)) as arriving:
        for name, done in arriving:
            yield name, done.value


def _call(function: Callable[..., Any], own: tuple[Any, ...], say: Say) -> Any:
    del say
    compiled.keep_programs()
    return function(*own)
