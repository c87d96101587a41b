"""The host's end of a line to a device: what all of them do, and the frames of our own over UDP and serial lines."""

import abc
import contextlib
import select
import socket
import time
from typing import Any, Protocol, runtime_checkable

import numpy as np

from spota.deploy import cobs, frames
from spota.deploy.addresses import BAUD, Address
from spota.deploy.introduction import Introduction

PATIENCE = 2.0
"""Seconds to wait for the answer to a hello."""
AGAIN = 0.1
"""Seconds until a hello is repeated."""


class UnreachableError(ValueError):
    """Nobody answers at an address, or somebody else has the device."""


class LostError(Exception):
    """The other side is gone: the connection was closed or refused."""


@runtime_checkable
class Link(Protocol):
    """A line to a device: the newest frame is in `inbox`."""

    inbox: frames.Inbox
    introduction: Introduction
    lock_step: bool
    """Whether every command is answered by one frame, so that none may be sent but as an answer."""

    def now(self) -> int:
        """The host's clock [ns]."""
        ...

    def begin(self) -> None:
        """Ask for frames, now that everything is ready; a device forgets a controller that is silent."""
        ...

    def receive(self, timeout: float) -> bool:
        """Wait at most that long [s] for a frame that is newer than the last one, and take the newest of all."""
        ...

    def send(self, values: np.ndarray, phase: int) -> int:
        """Send a command that answers the newest frame; its number."""
        ...

    def close(self) -> None:
        """Let the device go."""
        ...


class FramedLink(abc.ABC):
    """Frames of version 1 over something that carries bytes."""

    inbox: frames.Inbox
    introduction: Introduction
    lock_step = False

    def __init__(self, where: str) -> None:
        """Nobody is there yet."""
        self._where = where
        self.sent = 0

    def now(self) -> int:
        """The host's clock, which nobody sets [ns]."""
        return time.monotonic_ns()

    def send(self, values: np.ndarray, phase: int) -> int:
        """Send a command that answers the newest frame; its number."""
        self.sent += 1
        self._put(self._outbox.write(self.sent, self.inbox.seq, self.now(), values, phase))
        return self.sent

    def close(self) -> None:
        """Say good-bye, and close."""
        with contextlib.suppress(OSError, LostError):
            self._put(frames.signal_frame(frames.BYE))
        self._close()

    def receive(self, timeout: float) -> bool:
        """Wait at most that long [s] for a frame that is newer than the last one, and take the newest of all."""
        deadline = time.monotonic() + timeout
        while self._wait(max(0.0, deadline - time.monotonic())):
            if self._drain():
                return True
        return False

    def begin(self) -> None:
        """Ask for frames, now that everything is ready; a device forgets a controller that is silent."""
        self._greet()
        self.inbox.forget()

    def _open(self) -> None:
        """Get to know the device."""
        self.introduction = Introduction.from_json(self._greet())
        counts = len(self.introduction.observations), len(self.introduction.actions)
        self.inbox = frames.Inbox(frames.SENSOR, counts[0])
        self._outbox = frames.Outbox(frames.COMMAND, counts[1])

    def _greet(self) -> bytes:
        """Say hello until the device introduces itself; one that has a controller already is left alone."""
        hello, deadline = frames.signal_frame(frames.HELLO), time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self._put(hello)
            answer = self._answer(min(deadline, time.monotonic() + AGAIN))
            if answer is None:
                continue
            kind, text = answer
            if kind == frames.BUSY:
                raise UnreachableError(f"{self._where} has a controller already; stop that one first.")
            return text
        raise UnreachableError(f"{self._where} does not answer; is the device switched on, and is the address right?")

    def _answer(self, deadline: float) -> tuple[int, bytes] | None:
        while self._wait(max(0.0, deadline - time.monotonic())):
            for data in self._packets():
                found = frames.read_signal(data)
                if found is not None and found[0] in (frames.CONTRACT, frames.BUSY):
                    return found
        return None

    @abc.abstractmethod
    def _wait(self, timeout: float) -> bool:
        """Whether something arrives within that time [s]."""

    @abc.abstractmethod
    def _packets(self) -> list[bytes]:
        """What has arrived, for frames outside the loop."""

    @abc.abstractmethod
    def _drain(self) -> bool:
        """Take all that has arrived; whether something newer was among it."""

    @abc.abstractmethod
    def _put(self, data: bytes | bytearray) -> None:
        """Send a frame."""

    @abc.abstractmethod
    def _close(self) -> None:
        """Close the line."""


class UdpLink(FramedLink):
    """A device that answers packets; packets of others than the device do not reach us."""

    def __init__(self, address: Address):
        """Greet the device."""
        super().__init__(str(address))
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._readers = [self._socket]
        try:
            self._socket.connect((address.place, address.port))
            self._open()
        except (OSError, LostError) as error:
            self._socket.close()
            raise UnreachableError(f"{address} cannot be reached: {error}.") from error
        except BaseException:
            self._socket.close()
            raise

    def _wait(self, timeout: float) -> bool:
        return bool(select.select(self._readers, (), (), timeout)[0])

    def _packets(self) -> list[bytes]:
        try:
            return [self._socket.recv(frames.LONGEST + 1)]
        except ConnectionError:  # nobody listens there yet: ask again
            time.sleep(AGAIN / 4)
            return []
        except BlockingIOError:
            return []

    def _drain(self) -> bool:
        found = False
        try:
            while True:
                found |= self.inbox.take(self._socket.recv_into(self.inbox.buffer))
        except BlockingIOError:
            return found
        except ConnectionError as error:
            raise LostError("nobody listens at the device's address any more") from error

    def _put(self, data: bytes | bytearray) -> None:
        # no room: this one is lost, as packets are; nobody there: receiving tells that, too
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self._socket.send(data)

    def _close(self) -> None:
        self._socket.close()


class SerialLink(FramedLink):
    """A device on a serial line."""

    def __init__(self, address: Address):
        """Open the line, and greet the device."""
        super().__init__(str(address))
        self._line = open_serial(address)
        self._unstuffer = cobs.Unstuffer(frames.LONGEST + 16)
        try:
            self._open()
        except BaseException:
            self._line.close()
            raise

    def _wait(self, timeout: float) -> bool:
        return bool(select.select([self._line.fileno()], (), (), timeout)[0])

    def _packets(self) -> list[bytes]:
        try:
            return self._unstuffer.feed(self._line.read(4096))
        except OSError as error:
            raise LostError("the serial line was closed") from error

    def _drain(self) -> bool:
        found = False
        for data in self._packets():
            fits = len(data) <= frames.LONGEST
            self.inbox.buffer[: len(data)] = data if fits else b""
            found |= self.inbox.take(len(data))
        return found

    def _put(self, data: bytes | bytearray) -> None:
        try:
            self._line.write(cobs.encode(data))
        except OSError as error:
            raise LostError("the serial line was closed") from error

    def _close(self) -> None:
        self._line.close()


def open_serial(address: Address) -> Any:
    """The port, which reads what is there and never waits."""
    try:
        import serial
    except ImportError as error:
        raise ValueError("serial:// needs pyserial; install it with: pip install 'spota[serial]'") from error
    place = address.place if address.place.startswith("/") or "COM" in address.place else f"/dev/{address.place}"
    baud = address.options.get("baud", str(BAUD))
    try:
        return serial.Serial(place, int(baud), timeout=0, write_timeout=0.1)
    except (serial.SerialException, ValueError, OSError) as error:
        raise ValueError(f"{address} cannot be opened: {error}.") from error
