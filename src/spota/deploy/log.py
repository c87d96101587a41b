"""Everything that happened, tick by tick, in arrays that are allocated before the first one."""

from dataclasses import dataclass

import numpy as np

from spota.deploy.phases import RUN
from spota.policies.contract import Contract

COLUMNS = {
    "host_time": np.int64,
    "device_time": np.int64,
    "seq": np.int64,
    "echo": np.int64,
    "number": np.int64,
    "phase": np.int8,
    "arrived": np.bool_,
    "missed": np.int32,
    "watchdog": np.bool_,
    "age": np.float32,
    "danger": np.float32,
    "work": np.float32,
}
"""What is kept of a tick beside observation and commands; times in ns, ages and work in s."""


class Log:
    """A row for each tick; if there are more ticks than rows, the last ones are not kept, and `lost` says so."""

    def __init__(self, contract: Contract, rows: int):
        """Allocate, and touch every page."""
        self.contract, self.rows, self.lost = contract, 0, 0
        self.capacity = rows
        self.columns = {name: np.zeros(rows, kind) for name, kind in COLUMNS.items()}
        self.observation = np.zeros((rows, len(contract.observations)))
        self.wanted, self.sent = (np.zeros((rows, len(contract.actions))) for _ in range(2))
        for array in (*self.columns.values(), self.observation, self.wanted, self.sent):
            array.fill(0)

    def next(self) -> int:
        """The row of a new tick; the last one again if there is no room."""
        if self.rows == self.capacity:
            self.lost += 1
            return self.capacity - 1
        self.rows += 1
        return self.rows - 1

    def cut(self) -> "Ticks":
        """What was written."""
        n = self.rows
        columns = {name: column[:n].copy() for name, column in self.columns.items()}
        arrays = self.observation[:n].copy(), self.wanted[:n].copy(), self.sent[:n].copy()
        return Ticks(self.contract, *arrays, columns, self.lost)


@dataclass(frozen=True)
class Ticks:
    """A finished log."""

    contract: Contract
    observation: np.ndarray
    wanted: np.ndarray
    """What the policy or a procedure asked for."""
    sent: np.ndarray
    """What was sent, within the limits."""
    columns: dict[str, np.ndarray]
    lost: int = 0
    """Ticks for which there was no room."""

    def __getitem__(self, name: str) -> np.ndarray:
        """A column of `COLUMNS`."""
        return self.columns[name]

    @property
    def answered(self) -> np.ndarray:
        """The rows of the run itself in which a frame came and the policy answered."""
        return np.flatnonzero((self["phase"] == RUN) & self["arrived"])

    def delays(self) -> np.ndarray:
        """Steps until each command of the run acted, as the device's echoes tell it."""
        by_number = dict(zip(self["number"].tolist(), self["seq"].tolist(), strict=True))
        found, seen = [], set()
        for row in self.answered:
            number = int(self["echo"][row])
            if number in by_number and number not in seen:
                seen.add(number)
                found.append(int(self["seq"][row]) - by_number[number] - 1)
        return np.array(found, np.int64)
