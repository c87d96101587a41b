"""What goes wrong on a line: packets that are late, lost, doubled, out of order or damaged; silence; a hang."""

import heapq
import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, fields

import numpy as np

from spota.deploy.phases import phase_named

SHARES = ("loss", "duplicates", "reordering", "corruption")
SECONDS = ("jitter", "silence", "hang")


@dataclass(frozen=True)
class Faults:
    """How bad the line is; everything is off by default."""

    jitter: float = 0.0
    """Packets take up to so much longer [s]."""
    loss: float = 0.0
    """Share of packets that never arrive."""
    duplicates: float = 0.0
    """Share of packets that arrive twice."""
    reordering: float = 0.0
    """Share of packets that arrive after later ones."""
    corruption: float = 0.0
    """Share of packets with a few wrong bits."""
    silence: float = 0.0
    """The device sends nothing for so long, but hears [s]."""
    hang: float = 0.0
    """The device neither sends nor hears for so long; its watchdog works [s]."""
    during: str | None = None
    """Packets suffer, and silence and hang begin, only in this phase of the controller; always if None."""
    after: float = 0.0
    """From so long after that began [s]."""

    def __post_init__(self):
        """Refuse what cannot be."""
        if self.during is not None:
            phase_named(self.during)
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} = {getattr(self, name)}: a share of packets is between 0 and 1.")
        for name in (*SECONDS, "after"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} = {getattr(self, name)}: give zero or more seconds.")

    @property
    def phase(self) -> int | None:
        """The number of the phase."""
        return None if self.during is None else phase_named(self.during)

    @property
    def any(self) -> bool:
        """Whether something can go wrong."""
        return any(getattr(self, field.name) for field in fields(self) if field.name in (*SHARES, *SECONDS))


class Weather:
    """Whether faults act now, and since when: a silence or a hang begins once and ends."""

    def __init__(self, faults: Faults):
        """Fair so far."""
        self.faults, self._phase = faults, faults.phase
        self._began: int | None = None

    def acts(self, now: int, phase: int) -> bool:
        """Whether packets suffer."""
        wanted = self._phase
        if self._began is None and wanted in (None, phase):
            self._began = now
        old_enough = self._began is not None and now - self._began >= 1e9 * self.faults.after
        return old_enough and wanted in (None, phase)

    def silent(self, now: int) -> bool:
        """Whether the device sends nothing."""
        return self._within(now, max(self.faults.silence, self.faults.hang))

    def hangs(self, now: int) -> bool:
        """Whether the device hears nothing."""
        return self._within(now, self.faults.hang)

    def _within(self, now: int, seconds: float) -> bool:
        if self._began is None:
            return False
        since = now - self._began - 1e9 * self.faults.after
        return 0 <= since < 1e9 * seconds


class Channel:
    """One direction of the line."""

    def __init__(self, faults: Faults, seed: int, period: int):
        """`period` is the time between two packets [ns]; one that is out of order comes two of them later."""
        self._faults, self._period = faults, period
        self._random = np.random.default_rng(seed)
        self._waiting: list[tuple[int, int, Hashable, bytes]] = []
        self._order = itertools.count()

    def put(self, now: int, where: Hashable, data: bytes, bad: bool) -> None:
        """Send a packet; it suffers if the weather is bad."""
        faults, chance = self._faults, self._random.random
        if not bad:
            heapq.heappush(self._waiting, (now, next(self._order), where, data))
            return
        if chance() < faults.loss:
            return
        copies = 2 if chance() < faults.duplicates else 1
        for _ in range(copies):
            late = round(1e9 * faults.jitter * chance()) + (2 * self._period if chance() < faults.reordering else 0)
            sent = self._damaged(data) if chance() < faults.corruption else data
            heapq.heappush(self._waiting, (now + late, next(self._order), where, sent))

    def due(self, now: int) -> Iterator[tuple[Hashable, bytes]]:
        """What arrives by now."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, where, data = heapq.heappop(self._waiting)
            yield where, data

    @property
    def next(self) -> int | None:
        """When the next packet arrives [ns]."""
        return self._waiting[0][0] if self._waiting else None

    def _damaged(self, data: bytes) -> bytes:
        wrong = bytearray(data)
        for bit in self._random.integers(0, 8 * len(wrong), 1 + int(self._random.integers(0, 4))):
            wrong[bit // 8] ^= 1 << (bit % 8)
        return bytes(wrong)
