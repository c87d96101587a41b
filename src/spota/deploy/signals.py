"""Ctrl-C and SIGTERM as events of the loop, so that they end in a safe stop and not in the middle of a tick."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from spota.deploy.supervisor import Event

EVENTS = {signal.SIGINT: Event.INTERRUPTED, signal.SIGTERM: Event.TERMINATED}


class Pending:
    """The first signal that came."""

    event: Event | None = None


@contextlib.contextmanager
def noticed() -> Iterator[Pending]:
    """While inside, signals only leave a note; outside of the main thread there are none."""
    pending = Pending()
    if threading.current_thread() is not threading.main_thread():
        yield pending
        return

    def note(number: int, _frame: object) -> None:
        pending.event = pending.event or EVENTS[signal.Signals(number)]

    before = {number: signal.signal(number, note) for number in EVENTS}
    try:
        yield pending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
