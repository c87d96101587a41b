"""The sensors of an emulated machine: noise, play, encoders, and velocities that are made of positions."""

import math

import numpy as np

from spota.deploy.hardware import TURN, Hardware
from spota.deploy.wear import Wear
from spota.sim.env import Platform


class Sensors:
    """From ideal observations to what is read; every buffer is allocated once."""

    def __init__(self, env: Platform, hardware: Hardware, wear: Wear, offset: np.ndarray, seed: int):
        """`offset` is a constant error of each signal."""
        self._hardware, self._wear, self._offset, self._dt = hardware, wear, offset, env.dt
        self._random = np.random.default_rng(seed)
        d = len(env.observations)
        self.measured, self._noise, self._std, self._before, self._filtered = np.zeros((5, d))
        if wear.noise and env.effects.noise is not None:
            self._std[:] = env.effects.noise.std
        self._played: dict[int, float] = {}
        self._share = 1 - math.exp(-TURN * wear.filter * env.dt)
        self._counts = {q: wear.encoder * count for q, count in hardware.positions.items() if wear.encoder * count}
        self._read = False

    def read(self, ideal: np.ndarray) -> np.ndarray:
        """What the sensors say of it; the next call overwrites it."""
        measured = self.measured
        self._random.standard_normal(out=self._noise)
        np.multiply(self._noise, self._std, out=measured)
        measured += ideal
        measured += self._offset
        if self._wear.backlash:
            self._play(ideal)
        for q, count in self._counts.items():
            measured[q] = count * math.floor(measured[q] / count + 0.5)
        if self._wear.filter:
            self._differentiate()
        return measured

    def forget_zero(self, at: int | None) -> None:
        """Let the encoder there count from the true zero."""
        if at is not None:
            self._offset[at] = 0.0

    def _play(self, ideal: np.ndarray) -> None:
        """The encoder moves only after the driven body has crossed the play."""
        half = self._wear.backlash / 2
        for q in self._hardware.driven:
            shown = min(max(self._played.get(q, ideal[q]), ideal[q] - half), ideal[q] + half)
            self._played[q] = shown
            self.measured[q] += shown - ideal[q]

    def _differentiate(self) -> None:
        """Each velocity follows the differences of its position, through a first-order filter."""
        for v, q in self._hardware.velocities.items():
            if self._read:
                moved = self.measured[q] - self._before[q]
                if q == self._hardware.upright:
                    moved -= TURN * round(moved / TURN)
                self._filtered[v] += self._share * (moved / self._dt - self._filtered[v])
            self._before[q] = self.measured[q]
            self.measured[v] = self._filtered[v]
        self._read = True
