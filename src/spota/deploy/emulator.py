"""A device, its line and its clock, in nanoseconds that someone else counts: a wall clock, or a virtual one."""

from collections.abc import Hashable, Mapping

import jax
import numpy as np

from spota.deploy.device import Answer, Device
from spota.deploy.drive import Drive
from spota.deploy.faults import Channel, Faults, Weather
from spota.deploy.introduction import WATCHDOG_STEPS, Introduction
from spota.deploy.machine import Machine
from spota.deploy.wear import Wear
from spota.sim.env import Platform


class Emulator:
    """Tell it the time and what arrived; it says what to send."""

    def __init__(self, device: Device, faults: Faults | None = None, seed: int = 0):
        """Switched on at time 0."""
        self.device, self.faults = device, faults or Faults()
        self.period = round(1e9 * device.introduction.dt)
        self._weather, self._fair = Weather(self.faults), not self.faults.any
        self._to_device, self._to_host = (Channel(self.faults, 2 * seed + i, self.period) for i in range(2))
        self.next_tick = self.period
        self.ticks = 0

    def arrived(self, now: int, sender: Hashable, data: bytes) -> None:
        """A packet has come to the device's end of the line."""
        if not self._weather.hangs(now):
            self._to_device.put(now, sender, data, self._bad(now))

    def advance(self, now: int) -> list[Answer]:
        """Do everything that is due by now, in order; what leaves the line on the host's side."""
        while (at := self.next_event) <= now:
            for sender, data in self._to_device.due(at):
                for where, answer in self.device.hear(at, sender, data):
                    self._to_host.put(at, where, answer, self._bad(at))
            if at >= self.next_tick:
                self._tick(at)
        return list(self._to_host.due(now))

    @property
    def next_event(self) -> int:
        """When something happens next inside the device [ns]."""
        waiting = self._to_device.next
        return self.next_tick if waiting is None else min(self.next_tick, waiting)

    @property
    def next_packet(self) -> int:
        """When the next packet can leave the line [ns]."""
        waiting = self._to_host.next
        return self.next_event if waiting is None else min(self.next_event, waiting)

    def stall(self, now: int) -> None:
        """The process was held up: missed ticks are skipped, never made up for."""
        self.next_tick = now

    def _tick(self, at: int) -> None:
        sent = self.device.tick(at)
        self.ticks += 1
        self.next_tick += self.period
        bad = self._bad(at)
        if sent is not None and not self._weather.silent(at):
            self._to_host.put(at, *sent, bad)

    def _bad(self, now: int) -> bool:
        return not self._fair and self._weather.acts(now, self.device.phase)


def emulator(
    env: Platform,
    domain: Mapping[str, float],
    wear: Wear | None = None,
    faults: Faults | None = None,
    *,
    seed: int = 0,
    watchdog: bool = True,
) -> Emulator:
    """A device made of software, of a platform on one domain."""
    machine = Machine(env, domain, wear, seed)
    known = {name: float(domain[name]) for name in machine.hardware.known}
    seconds = WATCHDOG_STEPS * env.dt if watchdog else None
    introduction = Introduction.of(env, seconds, known)
    drive = Drive(machine, introduction.safe, round(1e9 * seconds) if seconds else None)
    return Emulator(Device(drive, introduction), faults, seed)


def drawn_domain(env: Platform, seed: int, nominal: bool = False) -> dict[str, float]:
    """One machine of the table: by number, or the nominal one."""
    domains = env.domain.nominal() if nominal else env.domain.sample(jax.random.key(seed), 1)
    return {name: float(np.asarray(column)[0]) for name, column in domains.items()}
