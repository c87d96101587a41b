"""The Cart-Pole as somebody without spota would write it, in NumPy: one at a time, or n side by side.

The equations, noise and delay are those of `spota.envs.cart_pole`, with the tilt from upright instead of α = π + tilt;
`tests/test_benchmarks.py` compares trajectories. `xp` is `math` for numbers, where it is faster, and NumPy for arrays.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

DT = 0.002
MAX_STEPS = 2500
VOLTS = 8.0
MAX_TILT = math.radians(15)
RAIL_MARGIN = 0.05
LONGEST_DELAY = 10
NOISE = np.array([5e-3, math.radians(0.5), 0.05, math.radians(2.0)])
START = np.array([0.02, math.radians(8), 0.02, math.radians(5)])
SCALE = 1 / np.array([0.357, MAX_TILT, 1.0, 2 * math.pi])
"""Brings observations to order one, as spota's networks do."""


class State(NamedTuple):
    """Position, tilt and their velocities: numbers, or arrays [n]."""

    x: Any
    tilt: Any
    x_dot: Any
    tilt_dot: Any


class Coefficients(NamedTuple):
    """What the equations need of a domain, computed once."""

    M_11: Any
    M_22: Any
    ml: Any
    gravity_torque: Any
    drive: Any
    cart_damping: Any
    pole_damping: Any
    rail_end: Any


def coefficients(domain: Mapping[str, Any]) -> Coefficients:
    d = domain
    ml = d["pole_mass"] * d["pole_length"]
    motor = d["gear_ratio"] * d["torque_constant"] / d["pinion_radius"]
    force = d["gear_efficiency"] * motor / d["motor_resistance"]
    rotor = d["gear_efficiency"] * d["gear_ratio"] ** 2 * d["motor_inertia"] / d["pinion_radius"] ** 2
    return Coefficients(
        M_11=d["pole_mass"] + d["cart_mass"] + rotor,
        M_22=4 / 3 * ml * d["pole_length"],
        ml=ml,
        gravity_torque=ml * d["gravity"],
        drive=force * d["motor_efficiency"],
        cart_damping=force * motor + d["cart_damping"],
        pole_damping=d["pole_damping"],
        rail_end=d["rail_length"] / 2 - RAIL_MARGIN,
    )


def moved(xp: Any, s: State, volts: Any, c: Coefficients) -> State:
    """One symplectic Euler step."""
    sin, M_12 = xp.sin(s.tilt), -c.ml * xp.cos(s.tilt)
    b_1 = c.drive * volts - c.cart_damping * s.x_dot - c.ml * sin * s.tilt_dot**2
    b_2 = c.gravity_torque * sin - c.pole_damping * s.tilt_dot
    step = DT / (c.M_11 * c.M_22 - M_12**2)
    x_dot = s.x_dot + step * (c.M_22 * b_1 - M_12 * b_2)
    tilt_dot = s.tilt_dot + step * (c.M_11 * b_2 - M_12 * b_1)
    return State(s.x + DT * x_dot, s.tilt + DT * tilt_dot, x_dot, tilt_dot)


def reward(xp: Any, s: State, volts: Any) -> Any:
    cost = 10.0 * s.x**2 + 1e3 * s.tilt**2 + 5e-2 * s.x_dot**2 + 5e-3 * s.tilt_dot**2 + 1e-4 * volts**2
    return xp.exp(-cost)


class CartPole:
    """One cart-pole, in plain numbers."""

    def __init__(self, domain: Mapping[str, float], seed: int):
        """Always on the same domain."""
        self._c, self._delay = coefficients(domain), int(domain["action_delay"])
        self._random = np.random.default_rng(seed)
        self.start()

    def start(self) -> None:
        """Begin an episode."""
        self.state = State(*(START * self._random.uniform(-1, 1, 4)).tolist())
        self._queue = [0.0] * self._delay
        self._t = 0

    def step(self, action: float) -> tuple[float, bool, bool]:
        """Returns the reward, whether it failed, and whether the time is over."""
        self._queue.append(VOLTS * min(max(action, -1.0), 1.0))
        volts = self._queue.pop(0)
        earned = reward(math, self.state, volts)
        self.state = moved(math, self.state, volts, self._c)
        self._t += 1
        failed = abs(self.state.x) > self._c.rail_end or abs(self.state.tilt) > MAX_TILT
        return earned, failed, self._t == MAX_STEPS

    def observe(self) -> np.ndarray:
        """What the sensors read, scaled."""
        noisy = np.array(self.state) + NOISE * self._random.standard_normal(4)
        return np.clip(SCALE * noisy, -1.0, 1.0).astype(np.float32)


class CartPoles:
    """n cart-poles side by side, in arrays."""

    def __init__(self, domains: Mapping[str, np.ndarray], seed: int):
        """Each always on its own domain."""
        self._c, self._delay = coefficients(domains), domains["action_delay"].astype(int)
        self._random, self.n = np.random.default_rng(seed), self._delay.size
        self._all, self._now = np.arange(self.n), 0
        self._queue, self._t = np.zeros((LONGEST_DELAY + 1, self.n)), np.zeros(self.n, int)
        self.state = State(*np.zeros((4, self.n)))
        self.start(np.ones(self.n, bool))

    def start(self, which: np.ndarray) -> None:
        """Begin an episode in some of them."""
        fresh = START[:, None] * self._random.uniform(-1, 1, (4, int(which.sum())))
        for column, values in zip(self.state, fresh, strict=True):
            column[which] = values
        self._queue[:, which], self._t[which] = 0.0, 0

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the rewards, who failed, and whose time is over."""
        slots = LONGEST_DELAY + 1
        self._queue[self._now] = VOLTS * np.clip(actions, -1.0, 1.0)
        volts = self._queue[(self._now - self._delay) % slots, self._all]
        self._now = (self._now + 1) % slots
        earned = reward(np, self.state, volts)
        self.state = moved(np, self.state, volts, self._c)
        self._t += 1
        failed = (np.abs(self.state.x) > self._c.rail_end) | (np.abs(self.state.tilt) > MAX_TILT)
        return earned, failed, self._t == MAX_STEPS

    def observe(self) -> np.ndarray:
        """What the sensors read, scaled: [n, 4]."""
        noisy = np.stack(self.state, axis=1) + NOISE * self._random.standard_normal((self.n, 4))
        return np.clip(SCALE * noisy, -1.0, 1.0).astype(np.float32)
