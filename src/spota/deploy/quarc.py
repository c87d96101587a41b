"""The bare TCP protocol of the authors' machines: float64 in network order, u to the device, x back, in lock-step.

There is no number, no clock, no checksum and no time-out in it, and `recv` may return half a state. So bytes are
collected here until a state is whole, waiting ends, and a device that speaks it is never believed to have a watchdog.
"""

import select
import socket
import time

import numpy as np

from spota.deploy import frames
from spota.deploy.addresses import Address
from spota.deploy.hardware import Hardware, from_raw
from spota.deploy.introduction import Introduction
from spota.deploy.links import PATIENCE, LostError, UnreachableError


class Collector:
    """Puts numbers together from the pieces in which TCP delivers them; the newest whole set counts."""

    def __init__(self, count: int):
        """For sets of that many numbers."""
        self.size = 8 * count
        self._buffer = bytearray(64 * self.size)
        self._view = memoryview(self._buffer)
        self._filled = 0

    def fill(self, connection: socket.socket) -> int:
        """Read what is there; how many sets are whole."""
        try:
            got = connection.recv_into(self._view[self._filled :])
        except BlockingIOError:
            return 0
        except OSError as error:
            raise LostError("the connection broke") from error
        if got == 0:
            raise LostError("the device closed the connection")
        self._filled += got
        return self._filled // self.size

    def take(self, sets: int, values: np.ndarray) -> None:
        """The newest of so many whole sets; what is incomplete behind them stays."""
        end = sets * self.size
        values[:] = np.frombuffer(self._buffer, ">f8", values.size, end - self.size)
        self._buffer[: self._filled - end] = self._buffer[end : self._filled]
        self._filled -= end


class QuarcLink:
    """A machine behind a Simulink stream server; what it is must be known from elsewhere."""

    lock_step = True

    def __init__(self, address: Address, introduction: Introduction, hardware: Hardware):
        """Connect."""
        self._hardware = hardware
        self.introduction = introduction
        self.inbox = frames.Inbox(frames.SENSOR, len(introduction.observations))
        self.inbox.values = np.zeros(len(introduction.observations))
        self._out = np.zeros(len(introduction.actions), ">f8")
        self._collector = Collector(len(introduction.observations))
        try:
            self._socket = socket.create_connection((address.place, address.port), PATIENCE)
        except OSError as error:
            raise UnreachableError(f"{address} cannot be reached: {error}.") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self.sent = 0
        try:
            self.send(np.asarray(introduction.safe), 0)  # a state comes back for a command only
        except LostError as error:
            self._socket.close()
            raise UnreachableError(f"{address} has closed the connection at once; has it a client already?") from error

    def now(self) -> int:
        """The host's clock, which nobody sets [ns]."""
        return time.monotonic_ns()

    def begin(self) -> None:
        """A connection needs no words."""

    def receive(self, timeout: float) -> bool:
        """Wait at most that long [s] for a whole state; of several, the newest."""
        deadline = time.monotonic() + timeout
        while select.select([self._socket], (), (), max(0.0, deadline - time.monotonic()))[0]:
            sets = self._collector.fill(self._socket)
            if sets:
                inbox = self.inbox
                self._collector.take(sets, inbox.values)
                from_raw(self._hardware, inbox.values)
                inbox.seq += sets
                inbox.taken += 1
                inbox.echo, inbox.time = inbox.seq, self.now()
                return True
        return False

    def send(self, values: np.ndarray, phase: int) -> int:
        """Send a command; the phase has no place in this protocol."""
        del phase
        self.sent += 1
        self._out[:] = values
        try:
            self._socket.send(self._out.tobytes())
        except BlockingIOError as error:
            raise LostError("the device does not read its commands") from error
        except OSError as error:
            raise LostError("the connection broke") from error
        return self.sent

    def close(self) -> None:
        """Close."""
        self._socket.close()
