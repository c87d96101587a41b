"""A reward as a small tanh network of the state and the command, fitted to what was earned."""

from itertools import pairwise
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

HIDDEN = (32, 32)
BATCH = 512
"""Steps of the simulator in one update."""
RATE = 5e-3
"""Adam's step size, which falls with a cosine in every fit."""


class RewardNet(eqx.Module):
    """tanh layers, and a linear one at the end."""

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, "_"], ...]

    def __call__(self, x: Float[Array, "k n"]) -> Float[Array, "n"]:
        """The reward of every column."""
        *layers, (last, bias) = zip(self.weights, self.biases, strict=True)
        for weight, shift in layers:
            x = jnp.tanh(weight @ x + shift[:, None])
        return (last @ x + bias[:, None])[0]


def new_net(key: Key[Array, ""], inputs: int) -> RewardNet:
    """Random weights."""
    sizes = list(pairwise((inputs, *HIDDEN, 1)))
    keys = jax.random.split(key, len(sizes))
    weights = (jax.random.normal(k, (out, into)) / np.sqrt(into) for k, (into, out) in zip(keys, sizes, strict=True))
    return RewardNet(tuple(weights), tuple(jnp.zeros(out) for _, out in sizes))


def fit(
    key: Key[Array, ""], net: RewardNet, x: Float[Array, "k n"], y: Float[Array, "n"], share: Float[Array, "n"],
    updates: int,
) -> RewardNet:  # fmt: skip
    """The net after some updates on random columns; `share` is 0 for columns that do not count, and 1 for others."""
    adam = optax.adam(optax.cosine_decay_schedule(RATE, updates))

    def loss(net: RewardNet, chosen: Int[Array, "b"]):
        return (share[chosen] * (net(x[:, chosen]) - y[chosen]) ** 2).mean()

    def update(state, key):
        net, moments = state
        chosen = jax.random.randint(key, (BATCH,), 0, y.shape[0])
        step, moments = adam.update(jax.grad(loss)(net, chosen), moments)
        return (cast(RewardNet, optax.apply_updates(cast(Any, net), step)), moments), None

    begin = net, adam.init(cast(Any, net))
    return jax.lax.scan(update, begin, jax.random.split(key, updates))[0][0]
