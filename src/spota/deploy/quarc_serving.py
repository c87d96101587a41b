"""An emulated machine that speaks the authors' bare TCP protocol, on the wall's clock."""

import contextlib
import select
import socket
import time
from collections.abc import Callable

import numpy as np

from spota.deploy.addresses import Address
from spota.deploy.emulator import Emulator
from spota.deploy.faults import SHARES, Faults, Weather
from spota.deploy.hardware import to_raw
from spota.deploy.links import LostError
from spota.deploy.quarc import Collector
from spota.deploy.serving import Hook, bind, refuse_strangers


class QuarcServer:
    """One client at a time: a command in, the next state out, at the machine's pace."""

    def __init__(self, emulator: Emulator, address: Address, anywhere: bool = False):
        """Listen; port 0 takes a free one."""
        refuse_strangers(address, anywhere)
        _refuse_what_tcp_cannot(emulator.faults)
        self._emulator, self._device = emulator, emulator.device
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bind(self._listener, address)
        self._listener.listen(4)
        self._listener.setblocking(False)
        self._client: socket.socket | None = None
        introduction = self._device.introduction
        self._command = np.zeros(len(introduction.actions))
        self._state = np.zeros(len(introduction.observations), ">f8")
        self._low, self._high = np.array([(s.low, s.high) for s in introduction.actions]).T
        self._collector = Collector(self._command.size)
        self._weather = Weather(emulator.faults)
        self._commands = 0

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listener.getsockname()[1]

    def serve(self, stop: Callable[[], bool], hook: Hook | None = None) -> int:
        """Let the machine live until `stop`; how many ticks this process came too late for."""
        start, period, tick, stalls = time.monotonic_ns(), self._emulator.period, 0, 0
        while not stop():
            now = time.monotonic_ns() - start
            if now < tick:
                select.select([self._listener], (), (), (tick - now) / 1e9)
            self._meet()
            now = time.monotonic_ns() - start
            if now < tick:
                continue
            stalls += max(0, (now - tick) // period)
            tick = max(tick, now - period) + period
            self._tick(now)
            if hook is not None:
                hook(self._emulator)
        return stalls

    def close(self) -> None:
        """Stop listening."""
        self._leave()
        self._listener.close()

    def _meet(self) -> None:
        """Take the first client; whoever comes while it is there is turned away."""
        with contextlib.suppress(BlockingIOError):
            client, _ = self._listener.accept()
            if self._client is not None:
                client.close()
                return
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._client, self._collector = client, Collector(self._command.size)

    def _tick(self, now: int) -> None:
        self._weather.acts(now, 0)
        heard = self._client is not None and not self._weather.hangs(now) and self._hear(now)
        self._device.drive.step(now)
        self._state[:] = self._device.drive.machine.measure()
        to_raw(self._device.drive.machine.hardware, self._state)
        self._emulator.ticks += 1
        if heard and self._client is not None and not self._weather.silent(now):
            try:
                self._client.send(self._state.tobytes())
            except OSError:
                self._leave()

    def _hear(self, now: int) -> bool:
        assert self._client is not None
        try:
            sets = self._collector.fill(self._client)
        except LostError:
            self._leave()
            return False
        if not sets:
            return False
        self._collector.take(sets, self._command)
        self._commands += sets
        if np.isfinite(self._command).all():
            np.clip(self._command, self._low, self._high, out=self._command)
            self._device.drive.accept(self._command, self._commands, now)
        return True

    def _leave(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
        self._device.drive.rest()


def _refuse_what_tcp_cannot(faults: Faults) -> None:
    """TCP loses and changes nothing, and the bare protocol tells no phase: a fault that would never act is refused."""
    idle = [f"--{name}" for name in (*SHARES, "jitter", "during") if getattr(faults, name)]
    if idle:
        raise ValueError(
            f"{', '.join(idle)}: quarc:// is TCP, which loses and changes nothing, and it does not tell phases; take "
            "--silence or --hang with --after, or listen to udp:// or serial://."
        )
