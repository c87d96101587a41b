"""What happens in a worker: it takes its cores, finds the code that it needs, and answers.

Whatever a task raises is answered, too, as one sentence: an engine would wrap it into a stack of its own.
"""

import hashlib
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spota.cluster import cores, luggage
from spota.cluster.engine import HANGS, Done, Failed, Outcome
from spota.cluster.luggage import Luggage
from spota.cluster.machine import differences, refusal, this_machine

Say = Callable[[dict[str, Any]], None]
REMEMBERED = 4
"""How much common knowledge a worker keeps: with the same objects, nothing is compiled again."""

LAST_WORDS = 2.0
"""Seconds until what a worker says has arrived."""

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
    return _answer(shared, own, say)


def _answer(shared: Shared, own: bytes, say: Say) -> Outcome:
    """What the function returns for this task, or what it raised."""
    begun = time.monotonic()
    try:
        function, common = _common(shared)
        _watch_over(say)
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


def _watch_over(say: Say) -> None:
    """A simulator that hangs where nothing can interrupt it ends this worker, which says why before."""

    def last_words(text: str) -> None:
        say({HANGS: text})
        time.sleep(LAST_WORDS)

    watchdog = sys.modules.get("spota.sim.watchdog")
    if watchdog is not None:  # else nobody simulates
        watchdog.end_commands(last_words, 1)


def _in_words(error: BaseException) -> str:
    """What went wrong, as we say it ourselves or, if someone else's code raised, with their line."""
    from spota.sim.checks import users_line

    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    line = "" if type(error) is ValueError else users_line(error)
    return f"{kind}{error}".rstrip(".") + f"{line}."
