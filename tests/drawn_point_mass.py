"""The point mass of `host_point_mass.py` with a renderer: a red square where the mass is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from host_point_mass import HostPointMass, Masses
from spota.sim.host import HostDomains

WIDE, HIGH, HALF = 200, 80, 10  # [px]


def painted(masses: Masses) -> np.ndarray:
    """White, and a red square at x, from −1 at the left to 1 at the right; green below it."""
    image = np.full((HIGH, WIDE, 3), 255, np.uint8)
    middle = round((1 + float(masses.x[0])) / 2 * (WIDE - 1))
    image[10:40, max(0, middle - HALF) : middle + HALF + 1] = (255, 0, 0)
    image[60:] = (0, 128, 0)
    return image


class DrawnMasses(Masses):
    def picture(self) -> Any:
        return self.env.paint(self)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class DrawnPointMass(HostPointMass):
    """Can be drawn, in whatever way."""

    paint: Callable[[Masses], Any] = painted

    def open(self, domains: HostDomains, seeds: np.ndarray) -> DrawnMasses:
        return DrawnMasses(self, domains, seeds)


def red_at(image: np.ndarray) -> float:
    """The middle of what is red, as a share of the width."""
    red = (image[..., 0] > 180) & (image[..., 1] < 110)
    return float((np.nonzero(red.any(axis=0))[0].mean() + 0.5) / image.shape[1])
