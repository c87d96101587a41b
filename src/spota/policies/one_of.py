"""One of several networks as one kind of policy: references can start from either, and train as one program.

An assessed network from elsewhere and a candidate of our own have different layers. Each reference holds both and uses
one; the other one is never seen, and no gradient reaches it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from spota.policies.contract import Contract
from spota.policies.network import FNN
from spota.policies.onnx_policy import Imported


class OneOf(eqx.Module):
    """Acts as the imported network, or as ours."""

    imported: Imported
    ours: FNN
    theirs: Float[Array, ""]
    """1 if the imported network acts, 0 if ours does."""

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The action of the chosen network."""
        chosen = jax.lax.stop_gradient(self.theirs) > 0.5
        return jnp.where(chosen, self.imported(observation), self.ours(observation))

    @property
    def contract(self) -> Contract:
        """Of both."""
        return self.ours.contract

    @property
    def hidden(self) -> tuple[int, ...]:
        """Sizes of our network's hidden layers."""
        return self.ours.hidden


def as_one_of(network: Any, imported: Imported, ours: FNN) -> OneOf:
    """Either network beside the other: `network` acts."""
    theirs = isinstance(network, Imported)
    return OneOf(network if theirs else imported, ours if theirs else network, jnp.float32(theirs))
