"""The oscillator of `oscillator.py` as a host environment in NumPy: the same physics, so that both must agree."""

from dataclasses import dataclass

import numpy as np
from oscillator import EFFECTS, NU, Oscillator

from spota.sim.domain import DomainDistribution
from spota.sim.effects import Effects
from spota.sim.host import HostDomains, HostEnv


class Springs:
    """n masses on springs."""

    def __init__(self, domains: HostDomains, x: np.ndarray, v: np.ndarray):
        self.xi, self.x, self.v = domains, x, v

    def observe(self) -> np.ndarray:
        return np.stack([self.x, self.v])

    def step(self, command: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        xi = self.xi
        reward = np.exp(-(self.x**2))
        force = command[0] - xi["stiffness"] * self.x - xi["damping"] * self.v
        self.v = np.where(active, self.v + Oscillator.dt * force / xi["mass"], self.v)
        self.x = np.where(active, self.x + Oscillator.dt * self.v, self.x)
        return reward, np.abs(self.x) > 1

    def close(self) -> None:
        del self.xi


@dataclass(frozen=True, eq=False)
class HostOscillator(HostEnv):
    """A mass on a spring, beside others."""

    domain: DomainDistribution = NU
    effects: Effects = EFFECTS
    at_once: int = 4096  # type: ignore[misc]

    name = "host-oscillator"
    dt, max_steps, max_reward = Oscillator.dt, Oscillator.max_steps, Oscillator.max_reward
    observations, actions = Oscillator.observations, Oscillator.actions

    def open(self, domains: HostDomains, seeds: np.ndarray) -> Springs:
        return Springs(domains, np.zeros(seeds.size), np.zeros(seeds.size))

    def open_at(self, domains: HostDomains, observation: np.ndarray) -> Springs:
        return Springs(domains, *observation)
