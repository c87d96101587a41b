"""When a run on a machine is stopped, and how gently it begins: all of it settings."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """The limits of our own; the defaults are those of the docs' checklist."""

    in_a_row: int = 5
    """Late frames in a row that stop the run."""
    of_last_500: int = 25
    """Late frames of the last 500 that stop it."""
    oldest: float = 0.010
    """Age of the data that stops it [s]."""
    jump: int = 10
    """Frames missing at once that stop it."""
    beyond: float = 1.5
    """How far a value may leave its range, as a factor."""
    danger: float = 0.95
    """How close to a failure, of which 1 is one."""
    confirm: int = 5
    """Frames in a row that must show danger, because the noise of one may; 5 are 10 ms."""
    rate: float = 0.05
    """Share by which the measured time step may differ from the promised one."""
    tolerance: float = 0.5
    """A frame is late after (1 + tolerance) time steps."""
    hold: int = 2
    """Late frames for which the last command is held; then the safe one is sent."""
    ramp: float = 0.5
    """Seconds in which the command's limit grows from zero, from the first motion on."""
    limit: float = 1.0
    """Our own limit of the command, as a share of the device's range."""
    repeats: int = 10
    """How often the safe command is sent at the end."""

    def __post_init__(self):
        """Refuse what stops nothing, or cannot begin."""
        for name in ("in_a_row", "of_last_500", "jump", "confirm", "repeats"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: give at least 1.")
        for name in ("oldest", "beyond", "danger", "rate", "tolerance"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} = {getattr(self, name)}: give a positive number.")
        if not 0 < self.limit <= 1:
            raise ValueError(
                f"limit = {self.limit}: our own limit is a share of the device's range, above 0, at most 1."
            )
        if self.hold < 0 or not self.ramp >= 0:
            raise ValueError(f"hold = {self.hold}, ramp = {self.ramp}: give zero or more.")
