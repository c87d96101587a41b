"""A device in this process, on a clock that advances only when the host waits: minutes of trials in seconds.

The bytes, the device, the line and its faults are those of `spota emulate`; only time is not the wall's.
"""

import numpy as np

from spota.deploy import frames
from spota.deploy.emulator import Emulator
from spota.deploy.introduction import Introduction
from spota.deploy.links import AGAIN, PATIENCE, UnreachableError

HOST = "host"
ANSWERS_AFTER = 200_000
"""Nanoseconds that the host takes for a command."""


class VirtualLink:
    """The host's end of a line to an emulator; a second one would be a second controller."""

    lock_step = False

    def __init__(self, emulator: Emulator, name: str = HOST):
        """Greet the device."""
        self._emulator, self._name = emulator, name
        self._now = emulator.next_tick - emulator.period
        self.sent = 0
        self._arrived: list[bytes] = []
        self.introduction = self._introduced()
        self.inbox = frames.Inbox(frames.SENSOR, len(self.introduction.observations))
        self._outbox = frames.Outbox(frames.COMMAND, len(self.introduction.actions))

    def _introduced(self) -> Introduction:
        deadline, again = self._now + round(1e9 * PATIENCE), self._now
        while self._now < deadline:
            if self._now >= again:
                self._emulator.arrived(self._now, self._name, frames.signal_frame(frames.HELLO))
                again += round(1e9 * AGAIN)
            self._pass(self._emulator.next_packet)
            for data in self._take_arrived():
                kind, text = frames.read_signal(data) or (0, b"")
                if kind == frames.BUSY:
                    raise UnreachableError("The emulator has a controller already; stop that one first.")
                if kind == frames.CONTRACT:
                    return Introduction.from_json(text)
        raise UnreachableError("The emulator does not answer; is it silent, or does it hang?")

    def begin(self) -> None:
        """Nothing has happened since the greeting: time stands still while the host prepares."""

    def now(self) -> int:
        """The virtual clock [ns]."""
        return self._now

    def receive(self, timeout: float) -> bool:
        """Let time pass until a newer frame is there, at most so long [s]."""
        deadline = self._now + round(1e9 * timeout)
        while True:
            found = False
            for data in self._take_arrived():
                size = min(len(data), frames.LONGEST + 1)
                self.inbox.buffer[:size] = data[:size]
                found |= self.inbox.take(size)
            if found or self._now >= deadline:
                return found
            self._pass(min(deadline, max(self._emulator.next_packet, self._now)))

    def send(self, values: np.ndarray, phase: int) -> int:
        """Send a command that answers the newest frame; its number."""
        self.sent += 1
        self._pass(self._now + ANSWERS_AFTER)
        frame = self._outbox.write(self.sent, self.inbox.seq, self._now, values, phase)
        self._emulator.arrived(self._now, self._name, bytes(frame))
        return self.sent

    def sleep(self, seconds: float) -> None:
        """Be held up, as a busy host is: time passes, nothing is read."""
        self._pass(self._now + round(1e9 * seconds))

    def close(self) -> None:
        """Let the device go."""
        self._emulator.arrived(self._now, self._name, frames.signal_frame(frames.BYE))
        self._emulator.advance(self._now)

    def _pass(self, until: int) -> None:
        self._now = max(self._now, until)
        self._arrived += [data for where, data in self._emulator.advance(self._now) if where == self._name]

    def _take_arrived(self) -> list[bytes]:
        arrived, self._arrived = self._arrived, []
        return arrived
