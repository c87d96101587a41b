"""Danger and reward from measurements: the platform's own functions, as plain arithmetic on what the sensors say."""

import functools
from collections.abc import Mapping

import jax
import numpy as np

from spota.deploy.hardware import hardware_of, to_raw
from spota.deploy.plain import Plain, plain
from spota.sim.env import Env, Platform


class Judgement:
    """Takes the state from the observation, and parameters from the nominal domain unless they are known better."""

    def __init__(self, env: Platform, known: Mapping[str, float] | None = None):
        """Print danger and reward as functions of state, command and domain."""
        self._hardware = hardware_of(env)
        self.domain = _nominal(env) | dict(known or {})
        self._raw = np.zeros(len(env.observations))
        self._danger, self._reward = _printed(env)

    def danger(self, observation: np.ndarray) -> float:
        """The largest danger; 0 if the platform has none that can be measured."""
        if self._danger is None:
            return 0.0
        found = self._danger(*self._state(observation), *self.domain.values())
        return max(found, default=0.0)

    def rewards(self, observations: np.ndarray, commands: np.ndarray) -> np.ndarray | None:
        """The reward of each row; None if it cannot be measured."""
        if self._reward is None:
            return None
        domain = tuple(self.domain.values())
        rows = zip(observations, commands.tolist(), strict=True)
        return np.array([self._reward(*self._state(o), *c, *domain)[0] for o, c in rows])

    def _state(self, observation: np.ndarray) -> list[float]:
        np.copyto(self._raw, observation)
        to_raw(self._hardware, self._raw)
        return self._raw.tolist()


def _nominal(env: Platform) -> dict[str, float]:
    return {name: float(np.asarray(column)[0]) for name, column in env.domain.nominal().items()}


@functools.cache
def _printed(env: Platform) -> tuple[Plain | None, Plain | None]:
    """Danger and reward as functions of state, command and domain; None where the state cannot be seen."""
    if not isinstance(env, Env):
        return None, None
    names, values = zip(*_nominal(env).items(), strict=True)
    start = env.start(jax.random.key(0), env.params(dict(zip(names, values, strict=True))))
    leaves, structure = jax.tree.flatten(start)
    d, a = len(leaves), len(env.actions)
    if d != len(env.observations):
        return None, None

    def danger(*x):
        return env.danger(jax.tree.unflatten(structure, x[:d]), env.params(dict(zip(names, x[d:], strict=True))))

    def reward(*x):
        xi = env.params(dict(zip(names, x[d + a :], strict=True)))
        return env.reward(jax.tree.unflatten(structure, x[:d]), x[d : d + a], xi)

    return (
        plain(danger, d + len(names), f"the danger of {env.name}"),
        plain(reward, d + a + len(names), f"the reward of {env.name}"),
    )
