"""Rollouts of a host policy on a pure environment: compiled physics, and the policy on the host between two steps.

It is the seam of host environments, mirrored. Random numbers and the order of a step are those of a compiled rollout:
nothing but the place of the policy differs.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from spota.sim import randomness, rollout
from spota.sim.acting import given
from spota.sim.domain import Domains
from spota.sim.env import Env
from spota.sim.host_policy import HostPolicy

PROGRAMS = 64
"""Compiled steps that are kept, one for each platform."""
See = Callable[["rollout.Step"], None]
"""Hears of every step until the last rollout has failed."""


def play(env: Env, policy: HostPolicy, domains: Domains, keys: Key[Array, "n"], see: See) -> "rollout.World":
    """One rollout on every domain; returns how they ended."""
    words = randomness.words(keys)
    world, observation = _begin(env)(domains, keys, words)
    move = _move(env)
    for t in range(env.max_steps):
        action = policy(np.asarray(observation))
        world, step, observation = move(domains, words, np.int32(t), world, action)
        see(step)
        if not np.asarray(world.alive).any():
            break
    return world


def summed(
    env: Env, policy: HostPolicy, domains: Domains, keys: Key[Array, "n"]
) -> tuple[Float[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
    """The return of every rollout, and whether it survived."""
    total = np.zeros(keys.shape, np.float32)

    def see(step: "rollout.Step") -> None:
        nonlocal total
        total = total + np.asarray(step.reward)

    world = play(env, policy, domains, keys, see)
    return total, np.asarray(world.alive)


def recorded(
    env: Env, policy: HostPolicy, domains: Domains, keys: Key[Array, "n"]
) -> tuple["rollout.World", "rollout.Step"]:
    """Every step: leaves are [T, …, n]; after the last failure everything stands still and earns nothing."""
    steps: list[Any] = []
    world = play(env, policy, domains, keys, steps.append)
    if len(steps) < env.max_steps:
        last = steps[-1]
        still = eqx.tree_at(
            lambda s: (s.state, s.reward, s.alive),
            last,
            (world.state, jnp.zeros_like(last.reward), jnp.zeros_like(last.alive)),
        )
        steps += [still] * (env.max_steps - len(steps))
    return world, _stacked(steps)


def _stacked(steps: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack([np.asarray(x) for x in leaves])), *steps)


@functools.lru_cache(maxsize=PROGRAMS)
def _begin(env: Env) -> Callable[..., Any]:
    """Start states, and what is seen there."""

    def begin(domains, keys, words):
        world = rollout.begin(env, given(jnp.zeros((len(env.actions), keys.shape[0]))), domains, keys)
        return world, rollout.look(env, domains, words, jnp.int32(0), world)

    return jax.jit(begin)


@functools.lru_cache(maxsize=PROGRAMS)
def _move(env: Env) -> Callable[..., Any]:
    """One step with a given action, and what is seen after it."""

    def move(domains, words, t, world, action):
        world, step = rollout.advance(env, given(action), domains, words, t, world)
        return world, step, rollout.look(env, domains, words, t + 1, world)

    return jax.jit(move)
