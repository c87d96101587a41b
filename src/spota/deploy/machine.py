"""An emulated machine: a body on one domain, with an actuator and sensors that are not ideal."""

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from spota.deploy.hardware import hardware_of
from spota.deploy.physics import PureBody, body_of, stands_at
from spota.deploy.sensors import Sensors
from spota.deploy.wear import Wear
from spota.sim.env import Platform

STANDS = 1e-3
"""Speed below which Coulomb friction holds what it can [1/s of the position's unit]."""


class Machine:
    """Takes commands, gives measurements."""

    def __init__(self, env: Platform, domain: Mapping[str, float], wear: Wear | None = None, seed: int = 0):
        """Switch it on."""
        self.env, self.domain, self.wear = env, dict(domain), wear or Wear()
        env.domain.check({name: jnp.asarray([value], jnp.float32) for name, value in self.domain.items()})
        self.body = body_of(env, self.domain, seed)
        self.hardware = hardware_of(env)
        self.sensors = Sensors(env, self.hardware, self.wear, self._offsets(), seed)
        self._ideal, self._felt = np.zeros(len(env.observations)), np.zeros(len(env.actions))
        self._band = self._dead_band()
        self._speed = {q: v for v, q in self.hardware.velocities.items()}
        self.held = False
        """Whether a hand holds it where it is."""
        self.body.observe(self._ideal)

    def hold_at_start(self) -> None:
        """Put it into a start state of the platform's episodes, calibrated, and hold it there."""
        if not isinstance(self.body, PureBody):
            raise ValueError(f"{self.env.name} is simulated outside of jax, where nobody can put it into a state.")
        self.body.state[:] = self.body.first
        self.body.observe(self._ideal)
        self.sensors.forget_zero(self.hardware.zeroed)
        self.held = True

    def step(self, command: np.ndarray) -> None:
        """Let a command act for one time step: dead band, friction, physics."""
        if self.held:
            return
        self._felt[:] = command
        if self._band is not None:
            low, high = self._band
            self._felt[(command > low) & (command < high)] = 0.0
        if self.wear.coulomb:
            self._rub()
        self.body.step(self._felt)
        self.body.observe(self._ideal)

    def measure(self) -> np.ndarray:
        """What the sensors read now; the next call overwrites it."""
        return self.sensors.read(self._ideal)

    def _rub(self) -> None:
        """Dry friction against the motion; at rest it holds what it can."""
        for a, q in enumerate(self.hardware.driven):
            speed, volts = self._ideal[self._speed[q]], self._felt[a]
            if abs(speed) > STANDS:
                self._felt[a] = volts - math.copysign(self.wear.coulomb, speed)
            else:
                self._felt[a] = math.copysign(max(0.0, abs(volts) - self.wear.coulomb), volts)

    def _dead_band(self) -> tuple[np.ndarray, np.ndarray] | None:
        band = self.env.effects.dead_band
        if band is None:
            return None
        low, high = (np.array([self.domain[name] for name in names]) for names in (band.low, band.high))
        return low, high

    def _offsets(self) -> np.ndarray:
        """Constant errors of the sensors: those of the domain, and where the machine was switched on."""
        found, offset = np.zeros(len(self.env.observations)), self.env.effects.offset
        if offset is not None:
            found += [0.0 if name is None else self.domain[name] for name in offset.parameters]
        if self.hardware.zeroed is not None:
            found[self.hardware.zeroed] -= stands_at(self.hardware, self.body)
        return found
