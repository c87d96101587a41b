"""Emulated devices on the wall's clock: packets over UDP, a serial line, or the authors' TCP protocol."""

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Hashable
from typing import Protocol, runtime_checkable

from spota.deploy import cobs, frames
from spota.deploy.addresses import Address, is_loopback
from spota.deploy.emulator import Emulator
from spota.deploy.links import LostError, open_serial

Hook = Callable[[Emulator], None]
"""Sees the emulator after each tick."""


@runtime_checkable
class Wire(Protocol):
    """The device's end of a line."""

    def wait(self, seconds: float) -> bool:
        """Whether something arrives within that time."""
        ...

    def read(self) -> list[tuple[Hashable, bytes]]:
        """What has arrived, and from whom."""
        ...

    def write(self, where: Hashable, data: bytes) -> None:
        """Send a packet."""
        ...


def serve(emulator: Emulator, wire: Wire, stop: Callable[[], bool], hook: Hook | None = None) -> int:
    """Let the device live until `stop`; how many ticks this process came too late for."""
    start, stalls, ticks = time.monotonic_ns(), 0, emulator.ticks
    while not stop():
        wire.wait(max(0, emulator.next_packet - (time.monotonic_ns() - start)) / 1e9)
        now = time.monotonic_ns() - start
        for sender, data in wire.read():
            emulator.arrived(now, sender, data)
        late = (now - emulator.next_tick) // emulator.period
        if late > 0:
            stalls += late
            emulator.stall(now)
        for where, data in emulator.advance(now):
            wire.write(where, data)
        if hook is not None and emulator.ticks > ticks:
            ticks = emulator.ticks
            hook(emulator)
    return stalls


class UdpWire:
    """A socket that listens; to loopback only, unless told otherwise."""

    def __init__(self, address: Address, anywhere: bool = False):
        """Bind it; port 0 takes a free one."""
        refuse_strangers(address, anywhere)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        bind(self._socket, address)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._socket.getsockname()[1]

    def wait(self, seconds: float) -> bool:
        """Whether something arrives within that time."""
        return bool(select.select([self._socket], (), (), seconds)[0])

    def read(self) -> list[tuple[Hashable, bytes]]:
        """What has arrived, and from whom."""
        found: list[tuple[Hashable, bytes]] = []
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while len(found) < 100:
                data, sender = self._socket.recvfrom(frames.LONGEST + 1)
                found.append((sender, data))
        return found

    def write(self, where: Hashable, data: bytes) -> None:
        """Send a packet; one that finds no room is lost."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self._socket.sendto(data, where)  # type: ignore[arg-type]  # what recvfrom gave

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class SerialWire:
    """A serial port, or a new pseudo-terminal if the port is called `pty`."""

    def __init__(self, address: Address):
        """Open it."""
        self._unstuffer = cobs.Unstuffer(frames.LONGEST + 16)
        self._line = self._other = None
        if address.place == "pty":
            import tty

            self._descriptor, self._other = os.openpty()
            tty.setraw(self._other)
            os.set_blocking(self._descriptor, False)
            self.port = os.ttyname(self._other)
        else:
            self._line = open_serial(address)
            self._descriptor, self.port = self._line.fileno(), address.place

    def wait(self, seconds: float) -> bool:
        """Whether something arrives within that time."""
        return bool(select.select([self._descriptor], (), (), seconds)[0])

    def read(self) -> list[tuple[Hashable, bytes]]:
        """Whole frames; there is only one place where they can come from."""
        try:
            return [("line", data) for data in self._unstuffer.feed(os.read(self._descriptor, 4096))]
        except BlockingIOError:
            return []
        except OSError as error:
            raise LostError("the serial line was closed") from error

    def write(self, where: Hashable, data: bytes) -> None:
        """Send a frame; one that finds no room is lost."""
        del where
        with contextlib.suppress(BlockingIOError):
            os.write(self._descriptor, cobs.encode(data))

    def close(self) -> None:
        """Close the line."""
        if self._line is not None:
            self._line.close()
            return
        os.close(self._descriptor)
        assert self._other is not None
        os.close(self._other)


def refuse_strangers(address: Address, anywhere: bool) -> None:
    """A device obeys whoever reaches it: so nobody outside this machine may, unless that is wanted."""
    if not anywhere and not is_loopback(address.place):
        raise ValueError(
            f"{address} can be reached from other machines, and a device obeys whoever comes first; "
            "listen to 127.0.0.1, or add --anywhere if that is what you want."
        )


def bind(listener: socket.socket, address: Address) -> None:
    """Take the address, or say why not."""
    try:
        listener.bind((address.place, address.port))
    except OSError as error:
        listener.close()
        raise ValueError(f"{address} cannot be listened to: {error.strerror or error}.") from error
