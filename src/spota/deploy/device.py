"""A device that speaks frames of version 1: one controller at a time, and no command from a bad frame."""

from collections.abc import Hashable

import numpy as np

from spota.deploy import frames
from spota.deploy.drive import Drive
from spota.deploy.introduction import Introduction

GONE = 1_000_000_000
"""Nanoseconds without a word after which a controller is forgotten."""

Answer = tuple[Hashable, bytes]
"""Where to, and what."""


class Device:
    """What a microcontroller would do: listen, step, measure, send. It knows no socket and no clock."""

    def __init__(self, drive: Drive, introduction: Introduction):
        """Switch it on."""
        self.drive, self.introduction = drive, introduction
        self._hello = frames.signal_frame(frames.CONTRACT, introduction.to_json().encode())
        self._busy = frames.signal_frame(frames.BUSY)
        self._inbox = frames.Inbox(frames.COMMAND, len(introduction.actions))
        self._outbox = frames.Outbox(frames.SENSOR, len(introduction.observations))
        self._low, self._high = np.array([(s.low, s.high) for s in introduction.actions]).T
        self._command = np.zeros(len(introduction.actions))
        self._heard = 0
        self._sent = 0
        self.controller: Hashable | None = None
        self.phase = 0
        """What the controller says that it is doing."""

    def hear(self, now: int, sender: Hashable, data: bytes) -> list[Answer]:
        """Take in a packet; what it is not exactly is not there."""
        signal = frames.read_signal(data)
        if signal is not None:
            return self._greeted(now, sender, signal[0])
        if sender != self.controller or len(data) > frames.LONGEST:
            return []
        self._inbox.buffer[: len(data)] = data
        if self._inbox.take(len(data)) and np.isfinite(self._inbox.values).all():
            np.clip(self._inbox.values, self._low, self._high, out=self._command)
            self.drive.accept(self._command, self._inbox.seq, now)
            self.phase, self._heard = self._inbox.flags, now
        return []

    def tick(self, now: int) -> Answer | None:
        """Let one time step pass; the measurement goes to the controller, if there is one."""
        self.drive.step(now)
        if self.controller is not None and now - self._heard > GONE:
            self._let_go()
        values = self.drive.machine.measure()
        self._sent += 1
        if self.controller is None:
            return None
        flags = frames.WATCHDOG if self.drive.fired else 0
        return self.controller, bytes(self._outbox.write(self._sent, self.drive.acted, now, values, flags))

    def _greeted(self, now: int, sender: Hashable, kind: int) -> list[Answer]:
        if kind == frames.BYE and sender == self.controller:
            self._let_go()
        if kind != frames.HELLO:
            return []
        if self.controller not in (None, sender):
            return [(sender, self._busy)]
        self._let_go()
        self.controller, self._heard = sender, now
        return [(sender, self._hello)]

    def _let_go(self) -> None:
        self.controller, self.phase = None, 0
        self._inbox.forget()
        self.drive.rest()
