"""What simulators leave out of a machine."""

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Wear:
    """Everything is off by default, so that the emulated machine is the certified one."""

    noise: bool = True
    """The sensor noise of the platform."""
    encoder: float = 0.0
    """Positions in counts of the maker's encoders, so many times as coarse."""
    filter: float = 0.0
    """Velocities by differences of positions, through a first-order filter with this cut-off [Hz]."""
    backlash: float = 0.0
    """Play between the motor, where the encoder sits, and what it drives [rad or m]."""
    coulomb: float = 0.0
    """Dry friction of the drive, as the voltage that it takes [V]."""

    def __post_init__(self):
        """Refuse what cannot be."""
        for name in (field.name for field in fields(self) if field.name != "noise"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} = {getattr(self, name)}: give zero or a positive number.")
