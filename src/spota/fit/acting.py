"""Which recorded command acts when: delayed, by fractions of a step if need be, and behind a dead band."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from spota.sim.env import Platform


def acting(
    env: Platform, domain: dict[str, Float[Array, ""]], commands: Float[Array, "steps a"], history: int
) -> Float[Array, "t a"]:
    """What reaches the physics of one machine in every step after so many of history."""
    columns = {name: value[None] for name, value in domain.items()}  # effects are written for batches: here, of steps
    return env.effects.reach(_delayed(env, commands, domain, history).T, columns).T


def _delayed(
    env: Platform, commands: Float[Array, "steps a"], domain: dict[str, Float[Array, ""]], history: int
) -> Float[Array, "t a"]:
    """The command that acts in every step; a fraction of a step lies between two of them."""
    name = env.effects.delay.parameter
    if name not in domain or history == 0:
        return commands[history:]
    delay = jnp.clip(domain[name], 0.0, history)
    whole = jnp.clip(jnp.floor(jax.lax.stop_gradient(delay)).astype(jnp.int32), 0, max(history - 1, 0))
    part = delay - whole
    steps = commands.shape[0] - history
    now = jax.lax.dynamic_slice_in_dim(commands, history - whole, steps)
    before = jax.lax.dynamic_slice_in_dim(commands, history - whole - 1, steps)
    return (1 - part) * now + part * before
