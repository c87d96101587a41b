"""Emulated devices that live in a thread or a process of their own, for as long as a test needs them."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

from spota.deploy.addresses import Address, parse
from spota.deploy.emulator import Emulator
from spota.deploy.quarc_serving import QuarcServer
from spota.deploy.serving import SerialWire, UdpWire, serve

Served = Callable[[Emulator, str], Address]


@pytest.fixture
def served() -> Iterator[Served]:
    """`served(emulator, "udp")` → the address at which it can be reached from now on."""
    with contextlib.ExitStack() as stack:
        yield lambda emulator, scheme: _serve(stack, emulator, scheme)


def _serve(stack: contextlib.ExitStack, emulator: Emulator, scheme: str) -> Address:
    if scheme == "serial":
        pytest.importorskip("serial")
    over = threading.Event()
    if scheme == "quarc":
        server = QuarcServer(emulator, parse("quarc://127.0.0.1:0"))
        run, address = lambda: server.serve(over.is_set), Address("quarc", "127.0.0.1", server.port)
        stack.callback(server.close)
    else:
        wire = UdpWire(parse("udp://127.0.0.1:0")) if scheme == "udp" else SerialWire(parse("serial://pty"))
        run = lambda: serve(emulator, wire, over.is_set)  # noqa: E731
        address = Address("udp", "127.0.0.1", int(wire.port)) if scheme == "udp" else Address("serial", str(wire.port))
        stack.callback(wire.close)
    thread = threading.Thread(target=run)
    thread.start()
    stack.callback(thread.join)
    stack.callback(over.set)
    return address
