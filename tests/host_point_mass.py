"""The point mass of `point_mass.py` as a host environment in NumPy: the same physics, so that both must agree."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from point_mass import PointMass, PointMassState
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import ActionDelay, DeadBand, Effects, ObservationNoise
from spota.sim.host import HostDomains, HostEnv, MachineError
from spota.sim.marginals import Integers, Uniform

NU = DomainDistribution(
    mass=Parameter(Uniform(0.5, 1.5), "kg", "mass", "m", sign="positive"),
    action_delay=Parameter(Integers(0, 2), "steps", "delay", nominal=0.0, sign="nonnegative"),
    low=Parameter(Uniform(-0.2, 0.0), "N", "dead below"),
    high=Parameter(Uniform(0.0, 0.2), "N", "dead above"),
)
WORN = Effects(ObservationNoise((0.01, 0.02)), None, ActionDelay(longest=2), DeadBand(("low",), ("high",)))
START = 0.3


class Masses:
    """n masses with position and velocity."""

    def __init__(self, env: "HostPointMass", domains: HostDomains, seeds: np.ndarray):
        self.env, self.mass, self.time = env, domains["mass"], 0
        unit = np.stack([np.random.default_rng(seed).uniform(-1, 1, 2) for seed in seeds], axis=1)
        self.x, self.v = START + env.spread * unit[0], env.spread * unit[1]

    def observe(self) -> np.ndarray:
        return np.stack([self.x, self.v])

    def step(self, command: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        del active
        torn = self.mass > self.env.tears_above
        if torn.any():
            raise MachineError(int(torn.argmax()), "the rope is torn")
        reward = np.exp(-(self.x**2) - 0.1 * self.v**2)
        self.v = self.v + self.env.dt * command[0] / self.mass
        self.x = self.x + self.env.dt * self.v
        self.time += 1
        if self.time == self.env.diverges_at:
            self.x = np.where(self.mass > 1, np.nan, self.x)
        return reward, np.abs(self.x) > 1

    def close(self) -> None:
        del self.mass


@dataclass(frozen=True, eq=False)
class HostPointMass(HostEnv):
    """Fails when the mass is further than 1 m away."""

    domain: DomainDistribution = NU
    effects: Effects = WORN
    spread: float = 0.0
    tears_above: float = np.inf
    diverges_at: int = -1
    at_once: int = 64  # type: ignore[misc]

    name = "host-point-mass"
    dt, max_steps, max_reward = PointMass.dt, PointMass.max_steps, PointMass.max_reward
    observations, actions = PointMass.observations, PointMass.actions

    def open(self, domains: HostDomains, seeds: np.ndarray) -> Masses:
        return Masses(self, domains, seeds)


@dataclass(frozen=True, eq=False)
class PurePointMass(PointMass):
    """The same, compiled."""

    domain: DomainDistribution = NU
    effects: Effects = WORN

    def start(self, key: Key[Array, ""], xi: Any) -> PointMassState:
        del key, xi
        return PointMassState(jnp.float32(START), jnp.zeros(()))

    def reward(self, state: PointMassState, action: Any, xi: Any) -> Any:
        del action, xi
        return jnp.exp(-(state.x**2) - 0.1 * state.v**2)
