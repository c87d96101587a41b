"""Environments in the style of gymnax as pure platforms: ξ are their parameters, and gradients go through them.

`reset_env(key, params)` and `step_env(key, state, action, params)` are all that is asked for, not the package: `step`
would begin anew by itself and, there, stop gradients.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from spota.sim.domain import DomainDistribution
from spota.sim.effects import Effects
from spota.sim.env import Env, Scalar, Signal


class GymnaxState(eqx.Module):
    """Where the environment is, what it shows, and whether it has ended: scalars, as platforms have them."""

    inner: tuple[Any, ...]
    observation: tuple[Scalar, ...]
    over: Any
    words: tuple[Any, Any]
    """The key that random steps draw from, folded with the step's number."""
    t: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class GymnaxEnv(Env):
    """A platform whose physics are a gymnax-style environment; `spota.from_gymnax` makes one."""

    name: str
    dt: float
    max_steps: int
    max_reward: float
    min_reward: float
    observations: tuple[Signal, ...]
    actions: tuple[Signal, ...]
    environment: Any
    parameters: Any
    params_of: Callable[[Any, dict[str, Any]], Any]

    def params(self, domain: Mapping[str, Any]) -> Any:
        """The environment's parameters with ξ in them; what the effects use stays with them."""
        own = {name: domain[name] for name in self.domain if name not in self.effects.parameters}
        return self.params_of(self.parameters, own)

    def start(self, key: Key[Array, ""], xi: Any) -> GymnaxState:
        """Reset; the same key decides what random steps draw."""
        k_reset, k_steps = jax.random.split(key)
        observation, inner = self.environment.reset_env(k_reset, xi)
        first, second = jax.random.key_data(k_steps)
        nothing = jnp.zeros((), jnp.int32)
        return GymnaxState(_scalars(inner), _scalars(observation), nothing > 0, (first, second), nothing)

    def observe(self, state: GymnaxState, xi: Any) -> tuple[Scalar, ...]:
        """The observation that came with the state."""
        del xi
        return state.observation

    def reward(self, state: GymnaxState, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        """What the step that begins here earns; an early end is charged the lowest reward for all later steps."""
        _, _, earned, over = self._stepped(state, action, xi)
        left = self.max_steps - 1 - state.t
        return earned + jnp.where(over, min(self.min_reward, 0.0) * left, 0.0)

    def step(self, state: GymnaxState, action: tuple[Scalar, ...], xi: Any) -> GymnaxState:
        """The next state."""
        observation, inner, _, over = self._stepped(state, action, xi)
        return GymnaxState(_scalars(inner), _scalars(observation), over, state.words, state.t + 1)

    def danger(self, state: GymnaxState, xi: Any) -> tuple[Scalar, ...]:
        """2 where the environment has ended, 0 elsewhere; before its own time limit that is a failure."""
        del xi
        return (jnp.where(state.over & (state.t < self.max_steps), 2.0, 0.0),)

    def _stepped(self, state: GymnaxState, action: tuple[Scalar, ...], xi: Any) -> tuple[Any, Any, Scalar, Any]:
        key = jax.random.fold_in(jax.random.wrap_key_data(jnp.stack(state.words)), state.t)
        like = jax.eval_shape(self.environment.reset_env, key, xi)[1]
        before = _whole(state.inner, like)
        observation, inner, reward, over, *_ = self.environment.step_env(key, before, jnp.stack(action), xi)
        inner = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), inner, like)
        return observation, inner, jnp.asarray(reward, jnp.float32).reshape(()), jnp.asarray(over, bool).reshape(())


def from_gymnax(
    env: Any,
    *,
    domain: DomainDistribution,
    params_of: Callable[[Any, dict[str, Any]], Any],
    reward: tuple[float, float],
    observations: Sequence[Signal],
    actions: Sequence[Signal],
    dt: float,
    max_steps: int,
    params: Any = None,
    effects: Effects | None = None,
    name: str | None = None,
) -> GymnaxEnv:
    """A gymnax-style environment as a pure platform: compiled, and with gradients through it.

    Args:
        env: Has `reset_env(key, params)` → observation, state, and `step_env(key, state, action, params)` →
            observation, state, reward, done, and whatever else.
        domain: The table of distributions.
        params_of: From the environment's parameters and ξ to parameters: lambda params, xi: params.replace(**xi).
            Quantities that follow from others must be set here, too.
        reward: The lowest and the highest reward of a step. With rewards below zero an early end is charged the lowest
            for every step that is left; otherwise it would be a relief.
        observations: A `Signal` for each.
        actions: A `Signal` for each; the action arrives as an array in physical units.
        dt: Seconds of a step.
        max_steps: Steps of an episode; the parameters' own time limit must not come before it.
        params: The nominal parameters; by default env.default_params.
        effects: Noise, offset, delay and dead band.
        name: What the platform is called.
    """
    called = name or getattr(env, "name", None) or type(env).__name__
    missing = [method for method in ("reset_env", "step_env") if not callable(getattr(env, method, None))]
    if missing:
        raise ValueError(
            f"{called} has no {' and no '.join(missing)}; from_gymnax takes environments in the style of gymnax, "
            "others are for spota.gymnasium, or for a class of your own that extends spota.Env."
        )
    nominal = getattr(env, "default_params", None) if params is None else params
    if nominal is None:
        raise ValueError(f"{called} has no default_params; write params=…, the nominal ones.")
    return GymnaxEnv(
        domain,
        effects or Effects(),
        name=called,
        dt=dt,
        max_steps=max_steps,
        min_reward=float(reward[0]),
        max_reward=float(reward[1]),
        observations=tuple(observations),
        actions=tuple(actions),
        environment=env,
        parameters=nominal,
        params_of=params_of,
    )


def _scalars(tree: Any) -> tuple[Any, ...]:
    """All entries of all arrays, one by one."""
    return tuple(entry for leaf in jax.tree.leaves(tree) for entry in jnp.asarray(leaf).reshape(-1))


def _whole(scalars: tuple[Any, ...], like: Any) -> Any:
    """The tree that these were the entries of."""
    rest = iter(scalars)
    leaves, structure = jax.tree.flatten(like)
    arrays = [jnp.stack([next(rest) for _ in range(math.prod(leaf.shape))]).reshape(leaf.shape) for leaf in leaves]
    return jax.tree.unflatten(structure, arrays)
