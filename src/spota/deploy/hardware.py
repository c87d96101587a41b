"""What is known of the machines behind the platforms, and no simulator says: encoders, ends, and where angles begin."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spota.envs.cart_pole import RAIL_MARGIN
from spota.envs.qube import MAX_ARM_SWING_UP
from spota.sim.env import Platform

TURN = 2 * math.pi


@dataclass(frozen=True)
class Hardware:
    """The parts of a machine, by the position of each signal in the observation."""

    positions: Mapping[int, float]
    """Measured positions, with the smallest difference that their encoder or camera sees [rad or m]."""
    velocities: Mapping[int, int]
    """Velocities, and the positions that they are made of."""
    driven: tuple[int, ...]
    """The position that each command moves."""
    known: tuple[str, ...] = ()
    """Domain parameters that a ruler measures."""
    upright: int | None = None
    """The angle that the machine measures from hanging down, and we from upright."""
    zeroed: int | None = None
    """The position whose encoder reads zero where the machine was switched on."""
    hangs: bool = False
    """Whether it is switched on with a pole that hangs down, at rest."""


_ENCODER = TURN / 4096
_CART_POLE = Hardware(
    positions={0: 2.275e-5, 1: _ENCODER}, velocities={2: 0, 3: 1}, driven=(0,), upright=1, zeroed=0, hangs=True
)
_QUBE = Hardware(
    positions={0: TURN / 2048, 1: TURN / 2048}, velocities={2: 0, 3: 1}, driven=(0,), upright=1, hangs=True
)
_BALL_BALANCER = Hardware(
    positions={0: _ENCODER, 1: _ENCODER, 2: 5.7e-4, 3: 5.7e-4},
    velocities={4: 0, 5: 1, 6: 2, 7: 3},
    driven=(0, 1),
    known=("plate_length",),
)
_MACHINES = {
    "cart-pole": _CART_POLE,
    "cart-pole-swing-up": _CART_POLE,
    "qube": _QUBE,
    "qube-swing-up": _QUBE,
    "ball-balancer": _BALL_BALANCER,
}


def hardware_of(env: Platform) -> Hardware:
    """The machine of a platform; of one's own platform nothing is known but names: x_dot is the velocity of x."""
    return _MACHINES.get(env.name) or _by_names(env)


def _by_names(env: Platform) -> Hardware:
    names = [signal.name for signal in env.observations]
    velocities = {
        i: names.index(name[:-4]) for i, name in enumerate(names) if name[-4:] == "_dot" and name[:-4] in names
    }
    positions = dict.fromkeys(sorted(velocities.values()), 0.0)
    return Hardware(positions, velocities, ())


def ends(platform: str, xi: Any) -> dict[int, float]:
    """How far each coordinate of the state can go before the machine itself stops it, by its place in the state."""
    if platform.startswith("cart-pole"):
        return {0: xi.l_r / 2 - RAIL_MARGIN}
    if platform.startswith("qube"):
        return {0: MAX_ARM_SWING_UP}
    if platform == "ball-balancer":
        return {0: math.pi / 3, 1: math.pi / 3, 2: xi.l_p / 2, 3: xi.l_p / 2}
    return {}


def wrapped(angle: float) -> float:
    """The same angle in (−π, π]."""
    return math.pi - (math.pi - angle) % TURN


def to_raw(hardware: Hardware, values: np.ndarray) -> None:
    """An observation → angles as the machine counts them, which is the state of our platforms, too; in place."""
    if hardware.upright is not None:
        values[hardware.upright] += math.pi


def from_raw(hardware: Hardware, values: np.ndarray) -> None:
    """Angles as the machine counts them → our observation, in place."""
    if hardware.upright is not None:
        values[hardware.upright] = wrapped(float(values[hardware.upright]) - math.pi)
