"""Generalised advantage estimation, batch last."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def advantages(
    rewards: Float[Array, "T n"],
    values: Float[Array, "T n"],
    last_value: Float[Array, "n"],
    alive: Bool[Array, "T n"],
    survived: Bool[Array, "n"],
    gamma: float,
    lam: float,
) -> Float[Array, "T n"]:
    """Σ_l (γλ)^l δ_{t+l}, δ_t = r_t + γ V_{t+1} − V_t.

    The time limit is a truncation: V_T is `last_value`. After a failure there is nothing: V is zero. Steps that were
    not taken have advantage zero.
    """
    goes_on = jnp.concatenate([alive[1:], survived[None]]).astype(rewards.dtype)
    following = jnp.concatenate([values[1:], last_value[None]]) * goes_on
    deltas = rewards + gamma * following - values

    def back(later, now):
        delta, on = now
        advantage = delta + gamma * lam * on * later
        return advantage, advantage

    _, result = jax.lax.scan(back, jnp.zeros_like(last_value), (deltas, goes_on), reverse=True)
    return jnp.where(alive, result, 0.0)
