"""A simulator that never answers is noticed, also in our own process: who hangs is told, and the call ends.

A thread looks at how long the call has lasted. A simulator in Python is interrupted by a signal, and the call raises.
One that hangs in compiled code hears no signal: then a command ends as a whole, with the same sentence; what it has
finished is in its files. There is no fork, and no thread that runs a simulator.
"""

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from spota.sim.host import MachineError

GRACE = 5.0
"""Seconds that an interrupted simulator has to give up, before a command ends without it."""
SIGNAL = getattr(signal, "SIGALRM", None)
"""None on Windows, where nothing interrupts a call."""


class Watch:
    """What is being waited for: since when, in which step and, where that is known, for which machine."""

    def __init__(self):
        """Nothing."""
        self.since: float | None = None
        self.limit, self.step = math.inf, 0
        self.machine: int | None = None
        self.blame: Callable[[Exception], str] = str
        self.end: Callable[[str], None] | None = None
        """Ends the command that this process is; None in somebody's own program."""
        self._thread: threading.Thread | None = None

    def begins(self, machine: int | None = None) -> None:
        """A call begins, or the turn of one machine within it."""
        self.machine, self.since = machine, None if self.limit == math.inf else time.monotonic()

    def ended(self) -> None:
        """It has answered."""
        self.since = None

    @property
    def error(self) -> MachineError:
        """What to say about the call that lasts too long."""
        when = f"step {self.step}" if self.step else "its start"
        return MachineError(
            self.machine,
            f"it hangs, since {when} takes longer than {self.limit:g} s; if it is only slow, write "
            f"time_limit={10 * self.limit:g}",
        )

    def look(self) -> None:
        """Interrupt a call that lasts too long; end the command if that does not help."""
        since = self.since
        if since is None or time.monotonic() - since < self.limit:
            return
        if SIGNAL is not None:
            signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)
            time.sleep(GRACE)
        if self.since == since and self.end is not None:
            self.end(self.blame(self.error))

    def guard(self) -> None:
        """Let a thread look, which ends with the process."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._look_always, daemon=True, name="spota-watchdog")
            self._thread.start()

    def _look_always(self) -> None:
        while True:
            time.sleep(min(1.0, self.limit / 4))
            self.look()


WATCH = Watch()
"""The one of this process: rollouts on host environments run in one thread, one after the other."""


def turn_of(machine: int) -> None:
    """It is this machine's turn; a function, because what a platform's code names is part of its identity."""
    WATCH.begins(machine)


class Watched:
    """Machines whose every call is timed."""

    def __init__(self, machines: Any):
        """As they are."""
        self._machines = machines

    def observe(self) -> Any:
        """What they observe."""
        return self._machines.observe()

    def step(self, command: Any, active: Any) -> Any:
        """One step, which must end."""
        WATCH.step += 1
        WATCH.begins()
        found = self._machines.step(command, active)
        WATCH.ended()
        return found

    def close(self) -> None:
        """Close them."""
        self._machines.close()

    def __getattr__(self, name: str) -> Any:
        """What else they have, e.g. `diverged`."""
        return getattr(self._machines, name)


@contextlib.contextmanager
def watching(limit: float | None, blame: Callable[[Exception], str]) -> Iterator[None]:
    """Time what is called in here, if there is a limit and this is the main thread, which alone hears signals."""
    if limit is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    WATCH.limit, WATCH.blame, WATCH.step = limit, blame, 0
    WATCH.guard()
    WATCH.begins()
    before = signal.signal(SIGNAL, _interrupt) if SIGNAL is not None else None
    try:
        yield
    finally:
        WATCH.ended()
        WATCH.limit = math.inf  # what others call is nobody's business
        if SIGNAL is not None and callable(before):  # without a handler, a late signal would end the process
            signal.signal(SIGNAL, before)


def end_commands(say: Callable[[str], None], code: int) -> None:
    """Let this process, which is a command, end with a sentence when a simulator hangs that nothing can interrupt."""

    def end(text: str) -> None:
        say(text)
        os._exit(code)

    WATCH.end = end


def _interrupt(*_: Any) -> None:
    if WATCH.since is not None:  # it may have answered in the meantime
        raise WATCH.error
