"""A network that acts on the last N observations and on its own actions between them: it can feel how they act."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from spota.policies.contract import Contract
from spota.policies.network import layered, scaled

Past = Float[Array, "rows n"]
"""Scaled observations, each followed by the action that followed it, the newest first: rows, which a layer reads at
once."""


class Stacked(eqx.Module):
    """tanh layers on the last N scaled observations, `stride` steps apart, and the action that followed each older one.

    An episode begins with a past of zeros. (To repeat the first observation instead made rollouts four times slower.)
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, "_"], ...]
    contract: Contract = eqx.field(static=True)
    memory: int = eqx.field(static=True)
    """N, the newest observation included."""
    stride: int = eqx.field(static=True, default=1)
    """Steps from one of them to the next."""

    def start(self, n: int) -> Past:
        """Nothing seen and nothing done."""
        channels = len(self.contract.observations) + len(self.contract.actions)
        return jnp.zeros((self.steps * channels, n))

    def step(self, past: Past, observation: Float[Array, "d n"]) -> tuple[Past, Float[Array, "a n"]]:
        """The action without exploration, and what is remembered then."""
        now = scaled(self.contract, observation)
        action = self.on(now, self.chosen(past))
        return after(past, now, action), action

    def chosen(self, past: Past) -> Float[Array, "inputs n"]:
        """Those rows of the past that the first layer reads."""
        if self.stride == 1:
            return past
        n = past.shape[-1]
        return past.reshape(self.steps, -1, n)[self.stride - 1 :: self.stride].reshape(-1, n)

    def on(self, now: Float[Array, "d *n"], chosen: Float[Array, "inputs *n"]) -> Float[Array, "a *n"]:
        """The action for what is seen and remembered; two products are faster than one of both put together."""
        first, bias, d = self.weights[0], self.biases[0], now.shape[0]
        x = jnp.tensordot(first[:, :d], now, 1) + jnp.tensordot(first[:, d:], chosen, 1)
        x = jnp.tanh(x + bias.reshape(-1, *(1,) * (x.ndim - 1)))
        return jnp.tanh(layered(self.weights[1:], self.biases[1:], x))

    def save(self, path: str | Path) -> Path:
        """Write a policy file; `spota.load` reads it."""
        from spota.policies.storage import save  # which knows this class

        return save(self, path)

    @property
    def steps(self) -> int:
        """How many steps it reaches back."""
        return (self.memory - 1) * self.stride

    @property
    def hidden(self) -> tuple[int, ...]:
        """Sizes of the hidden layers."""
        return tuple(bias.shape[0] for bias in self.biases[:-1])


def after(past: Past, now: Float[Array, "d n"], action: Float[Array, "a n"]) -> Past:
    """What is remembered after a step in which this scaled observation led to this action."""
    newest = jnp.concatenate([now, action])
    return jnp.concatenate([newest, past[: -newest.shape[0]]])
