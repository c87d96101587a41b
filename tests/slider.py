"""A mass on a spring as a Gymnasium environment, and the same with one planted fault each."""

from typing import Any

import numpy as np
import pytest

gym = pytest.importorskip("gymnasium")

import spota  # noqa: E402

DT = 0.05
LIMIT = 3.0


class Slider(gym.Env):
    """Push a mass towards the middle; beyond ±3 m it has failed."""

    def __init__(self, mass: float = 1.0, stiffness: float = 1.0):
        self.mass, self.stiffness, self.length = mass, stiffness, 0.5
        self.inertia = self.mass * self.length**2
        self.observation_space = gym.spaces.Box(-5.0, 5.0, (2,), np.float64)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        del options
        super().reset(seed=seed)
        self.x, self.v = self.np_random.uniform(-1.0, 1.0), 0.0
        return self.observe(), {}

    def step(self, action):
        self.v += DT * (3 * float(action[0]) - self.stiffness * self.x) / (self.mass + self.inertia)
        self.x += DT * self.v
        return self.observe(), self.reward(), bool(abs(self.x) > LIMIT), False, {}

    def observe(self):
        return np.array([self.x, self.v])

    def reward(self) -> float:
        return float(np.exp(-(self.x**2)))


class Unseeded(Slider):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed, options=options)
        self.x = np.random.default_rng().uniform(-1.0, 1.0)
        return self.observe(), {}


class Leaking(Slider):
    def __init__(self):
        super().__init__()
        self.wear = 0.0

    def step(self, action):
        self.wear += 1e-3 * self.stiffness
        self.v *= 1 - self.wear
        return super().step(action)


class Greedy(Slider):
    def reward(self) -> float:
        return 2.0


class Diverging(Slider):
    def step(self, action):
        if abs(self.v) > 0.5:
            self.x = float("nan")
        return super().step(action)


class Restarting(Slider):
    """Goes back to its start when it is fast, as simulators do that have diverged, and says nothing."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        first = super().reset(seed=seed, options=options)
        self.home = self.x
        return first

    def step(self, action):
        found = super().step(action)
        if abs(self.v) < 0.6:
            return found
        self.x, self.v = self.home, 0.0
        return self.observe(), *found[1:]


class Loud(Slider):
    def step(self, action):
        np.exp(np.float64(1e4))  # overflows
        return super().step(action)


class Declaring(Slider):
    """Takes ξ when it is reset, and says so."""

    domain_parameters = ("mass", "stiffness")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self.mass, self.stiffness = ((options or {})["domain"][name] for name in self.domain_parameters)
        self.inertia = self.mass * self.length**2
        return super().reset(seed=seed)


NU = spota.DomainDistribution(
    mass=spota.Parameter(spota.Uniform(0.5, 2.0), "kg", sign="positive"),
    stiffness=spota.Parameter(spota.Uniform(0.2, 1.0), "N/m", sign="positive"),
)


def apply(env: Any, xi: Any) -> None:
    """Everything that ξ decides."""
    inner = env.unwrapped
    inner.mass, inner.stiffness = xi["mass"], xi["stiffness"]
    inner.inertia = xi["mass"] * inner.length**2


def platform(kind: Any = Slider, **others: Any) -> Any:
    """The environment as a platform; ξ arrives by `apply` unless told otherwise."""
    usual = {"domain": NU, "apply": apply, "reward": (0.0, 1.0), "dt": DT, "max_steps": 60}
    return spota.gymnasium(kind, **{**usual, **others})
