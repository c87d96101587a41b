"""What happens in a worker: it takes its cores, finds the code that it needs, and answers.

Whatever a task raises is answered, too, as one sentence: an engine would wrap it into a stack of its own.
"""

import hashlib
import os
import pickle
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spota.cluster import cores, luggage
from spota.cluster.engine import Done, Failed, Outcome
from spota.cluster.luggage import Luggage
from spota.cluster.machine import differences, refusal, this_machine

Say = Callable[[dict[str, Any]], None]
REMEMBERED = 4
"""How much common knowledge a worker keeps: with the same objects, nothing is compiled again."""

_known: dict[str, tuple[Callable[..., Any], Any]] = {}


@dataclass(frozen=True)
class Shared:
    """What all tasks of a block have in common: a function and its first argument, pickled, and how to read them."""

    content: bytes
    luggage: Luggage
    versions: Mapping[str, str]


def worker_name() -> str:
    """Which machine, which process."""
    return f"{socket.gethostname()}/{os.getpid()}"


def work(shared: Shared, own: bytes, wanted: int, say: Say) -> Outcome:
    """Take cores before anything imports jax, then answer."""
    cores.take_cores(wanted)
    different = differences(shared.versions, this_machine().versions)
    if different:
        return Failed(refusal(this_machine().host, different), worker_name())
    say({"worker": worker_name()})
    return answer(shared, own, say)


def answer(shared: Shared, own: bytes, say: Say) -> Outcome:
    """What the function returns for this task, or what it raised."""
    begun = time.monotonic()
    try:
        function, common = _common(shared)
        value = function(common, pickle.loads(own), say)
    except (Exception, SystemExit) as error:
        return Failed(_in_words(error), worker_name())
    return Done(value, worker_name(), this_machine().cpu, time.monotonic() - begun)


def _common(shared: Shared) -> tuple[Callable[..., Any], Any]:
    """The function and what it knows: the same objects for every task of this process."""
    digest = hashlib.sha256(shared.content).hexdigest()
    if digest not in _known:
        luggage.unpack(shared.luggage)
        while len(_known) >= REMEMBERED:
            _known.pop(next(iter(_known)))
        _known[digest] = pickle.loads(shared.content)
    return _known[digest]


def _in_words(error: BaseException) -> str:
    """What went wrong, as we say it ourselves or, if someone else's code raised, with their line."""
    from spota.sim.checks import users_line

    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    line = "" if type(error) is ValueError else users_line(error)
    return f"{kind}{error}".rstrip(".") + f"{line}."
