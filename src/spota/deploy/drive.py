"""The actuator's side of a device: the newest command, its delay, and the watchdog."""

import numpy as np

from spota.deploy.machine import Machine


class Drive:
    """Steps a machine with the newest command, or with none if none has come for too long."""

    def __init__(self, machine: Machine, safe: tuple[float, ...], watchdog: int | None):
        """`watchdog` is in nanoseconds; without one the last command acts for ever, as on the authors' machine."""
        self.machine, self._watchdog = machine, watchdog
        self._safe = np.array(safe, float)
        self._wanted = self._safe.copy()
        self._number = 0
        self._heard: int | None = None
        delay = machine.env.effects.delay
        self._delay = round(machine.domain.get(delay.parameter, 0.0)) if delay.longest else 0
        self._queue = np.tile(self._safe, (self._delay + 1, 1))
        self._numbers = [0] * (self._delay + 1)
        self._steps = 0
        self.fired = False
        """Whether the watchdog holds the machine."""
        self.acted = 0
        """The number of the command that acted last."""
        self.acting = self._safe.copy()

    def accept(self, values: np.ndarray, number: int, now: int) -> None:
        """A new command, which acts from the next step on."""
        self._wanted[:] = values
        self._number, self._heard = number, now

    def rest(self) -> None:
        """No command, and none on its way."""
        self._wanted[:] = self._safe
        self._queue[:] = self._safe
        self._heard = None

    def step(self, now: int) -> None:
        """Let one time step pass."""
        silent = self._heard is None or now - self._heard > (self._watchdog or 0)
        self.fired = self._watchdog is not None and silent
        if self.fired:
            self._wanted[:] = self._safe
            self._queue[:] = self._safe
            self._number = 0
            self._numbers[:] = [0] * len(self._numbers)
        slot = self._steps % (self._delay + 1)
        self._queue[slot], self._numbers[slot] = self._wanted, self._number
        due = (self._steps - self._delay) % (self._delay + 1)
        self.acting[:], self.acted = self._queue[due], self._numbers[due]
        self._steps += 1
        self.machine.step(self.acting)
