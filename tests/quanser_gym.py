"""spota's Cart-Pole as somebody would have written it for Gymnasium: one environment, and one of arrays.

Start states are a table, and the seed is the row, so that episodes can be the same as on our own platform.
"""

from typing import Any

import numpy as np
import pytest

gym = pytest.importorskip("gymnasium")

from benchmarks.numpy_cart_pole import MAX_TILT, START, VOLTS, State, coefficients, moved, reward  # noqa: E402

import spota  # noqa: E402

OURS: Any = spota.make("cart-pole")
LIMITS = np.array([max(-s.low, s.high) for s in OURS.observations])


def drawn(seeds: Any) -> np.ndarray:
    """Random start states, each from its own seed."""
    return np.stack([START * np.random.default_rng(int(seed)).uniform(-1, 1, 4) for seed in seeds])


class QuanserCartPole(gym.Env):
    """One cart-pole."""

    observation_space = gym.spaces.Box(-LIMITS, LIMITS, dtype=np.float64)
    action_space = gym.spaces.Box(-VOLTS, VOLTS, (1,), np.float64)

    def __init__(self, starts: np.ndarray):
        self.starts = starts

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.state, self.c = State(*self.starts[seed]), coefficients((options or {})["domain"])
        return np.array(self.state), {}

    domain_parameters = tuple(OURS.domain)

    def step(self, action):
        earned = reward(np, self.state, action[0])
        self.state = moved(np, self.state, action[0], self.c)
        return np.array(self.state), earned, bool(out_of_range(self.state, self.c)), False, {}


class QuanserCartPoles(gym.vector.VectorEnv):
    """Many, as arrays."""

    metadata = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED}  # noqa: RUF012
    single_observation_space = QuanserCartPole.observation_space
    single_action_space = QuanserCartPole.action_space

    def __init__(self, num_envs: int):
        self.num_envs = num_envs

    def reset(self, *, seed: Any = None, options: Any = None):
        del options
        self.state = State(*drawn(seed).T)
        return np.stack(self.state, axis=1), {}

    def step(self, actions):
        earned = reward(np, self.state, actions[:, 0])
        self.state = moved(np, self.state, actions[:, 0], self.c)
        nobody = np.zeros(self.num_envs, bool)
        return np.stack(self.state, axis=1), earned, out_of_range(self.state, self.c), nobody, {}


def out_of_range(state: State, c: Any) -> Any:
    return (np.abs(state.x) > c.rail_end) | (np.abs(state.tilt) > MAX_TILT)


def set_coefficients(env: Any, xi: Any) -> None:
    env.c = coefficients(xi)


FACTS: dict[str, Any] = {
    "domain": OURS.domain, "effects": OURS.effects, "reward": (0.0, 1.0), "dt": OURS.dt, "max_steps": OURS.max_steps,
    "observations": OURS.observations, "actions": OURS.actions,
}  # fmt: skip


def single(starts: np.ndarray) -> Any:
    """One environment after the other, started from the table."""
    return spota.gymnasium(QuanserCartPole, arguments={"starts": starts}, name="quanser", **FACTS)


def many() -> Any:
    """All as arrays."""
    return spota.gymnasium(QuanserCartPoles, apply=set_coefficients, vector=True, name="quansers", **FACTS)
