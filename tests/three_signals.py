"""The point mass with a third sensor, for networks with three inputs."""

from dataclasses import dataclass

import jax.numpy as jnp

from point_mass import PointMass, PointMassState
from spota.sim.env import Signal


@dataclass(frozen=True, eq=False)
class ThreeSignals(PointMass):
    """Cosine and sine of the position, and the velocity; a torque of ±2, as Pendulum has it."""

    name = "three-signals"
    observations = (Signal("cos", "-", -1.0, 1.0), Signal("sin", "-", -1.0, 1.0), Signal("v", "m/s", -8.0, 8.0))

    def observe(self, state: PointMassState, xi):
        del xi
        return jnp.cos(state.x), jnp.sin(state.x), state.v
