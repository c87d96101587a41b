"""A mass on a spring, whose programs compile quickly: m ẍ = F − k x − c ẋ, with a delay of up to three steps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Key

from spota.fit.fitting import Fit, Settings, fit
from spota.fit.recording import Recording
from spota.runs.directory import Run
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import ActionDelay, Effects, ObservationNoise
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Integers, TruncatedNormal, Uniform

NU = DomainDistribution(
    mass=Parameter(TruncatedNormal(1.0, 0.1), "kg", "mass", "m", sign="positive"),
    stiffness=Parameter(TruncatedNormal(40.0, 4.0), "N/m", "stiffness", "k", sign="positive"),
    damping=Parameter(Uniform(0.2, 1.0), "N s/m", "damping", "c", sign="nonnegative"),
    colour=Parameter(Uniform(0.0, 1.0), "-", "nobody feels it", "h"),
    action_delay=Parameter(Integers(0, 3), "steps", "time until a command acts", "d", 0.0, "nonnegative"),
)
EFFECTS = Effects(noise=ObservationNoise((2e-3, 1e-2)), delay=ActionDelay(longest=3))


class OscillatorState(eqx.Module):
    """Position [m] and velocity [m/s]."""

    x: Scalar
    v: Scalar


@dataclass(frozen=True, eq=False)
class Oscillator(Env):
    """A mass on a spring."""

    domain: DomainDistribution = NU
    effects: Effects = EFFECTS

    name = "oscillator"
    dt = 0.01
    max_steps = 20
    max_reward = 1.0
    observations = (Signal("x", "m", -1.0, 1.0), Signal("x_dot", "m/s", -5.0, 5.0))
    actions = (Signal("F", "N", -10.0, 10.0),)

    def params(self, domain: Mapping[str, Any]) -> Any:
        return {name: domain[name] for name in ("mass", "stiffness", "damping")}

    def start(self, key: Key[Array, ""], xi: Any) -> OscillatorState:
        del key, xi
        return OscillatorState(jnp.zeros(()), jnp.zeros(()))

    def at(self, observation: tuple[Scalar, ...], xi: Any) -> OscillatorState:
        del xi
        return OscillatorState(*observation)

    def observe(self, state: OscillatorState, xi: Any) -> tuple[Scalar, ...]:
        del xi
        return state.x, state.v

    def reward(self, state: OscillatorState, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        del action, xi
        return jnp.exp(-(state.x**2))

    def step(self, state: OscillatorState, action: tuple[Scalar, ...], xi: Any) -> OscillatorState:
        force = action[0] - xi["stiffness"] * state.x - xi["damping"] * state.v
        v = state.v + self.dt * force / xi["mass"]
        return OscillatorState(state.x + self.dt * v, v)


ENV = Oscillator()


def recording(
    name: str, seconds: float = 10.0, seed: int = 0, noise: float = 2e-3, volts: float = 5.0, **machine: float
) -> Recording:
    """What the machine did, in plain NumPy: a reckoning of its own."""
    xi = {"mass": 1.0, "stiffness": 40.0, "damping": 0.6, "action_delay": 1, **machine}
    rng, steps = np.random.default_rng(seed), round(seconds / ENV.dt)
    t = np.arange(steps) * ENV.dt
    force = volts * np.sin(2 * np.pi * (0.3 * t + 0.12 * t**2))
    late = np.concatenate([np.zeros(int(xi["action_delay"])), force])[:steps]
    x, v, seen = 0.0, 0.0, []
    for F in late:
        seen.append(x)
        v += ENV.dt * (F - xi["stiffness"] * x - xi["damping"] * v) / xi["mass"]
        x += ENV.dt * v
    positions = np.array(seen)[:, None] + noise * rng.standard_normal((steps, 1))
    return Recording(name, f"{name}{seed}", t, positions, force[:, None])


KEY = jax.random.key(0)
TRUTH = {"mass": 1.12, "stiffness": 44.0, "damping": 0.5, "action_delay": 2}
SETTINGS = Settings(warm_up=80, draws=60, held_out=0.34, seed=1)


def fit_in(directory: Path) -> Fit:
    """A fit of three recordings of one machine, one of which is held out."""
    recordings = [recording(f"r{i}", seconds=5.0, seed=i, **TRUTH) for i in range(3)]
    with Run(directory, {"env": "oscillator", **asdict(SETTINGS)}, warn=lambda text: pytest.fail(text)) as run:
        return fit(ENV, recordings, SETTINGS, run)
