"""A barrier in front of failure, for gradients: the reward ends with a failure, and such an end has no gradient.

It is zero far from every bound of the platform, and grows with the square of how far a rollout has come of the last bit
of the way. Where it begins far from the bound it keeps a policy from what would pay, and where it begins close a policy
fails before it is felt. So it may move during a training: at first it holds the policy back, later it lets it go as
close to the bound as its own domains allow. It becomes steeper as it moves, so that a rollout at the bound always costs
the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Scalar = float | Float[Array, ""]
Danger = Sequence[Float[Array, "n"]]
"""How close every rollout is to each kind of failure; 1 is failure."""


class Barrier(NamedTuple):
    """Where the barrier stands at one moment of a training."""

    weight: Scalar
    """In return a step, times the square of the way past the beginning."""
    begins: Scalar
    """As a share of the way to failure."""

    def moved(self, to: float, share: Scalar) -> "Barrier":
        """The barrier after this share of its way; at the bound it costs what it did."""
        begins = self.begins + share * (to - self.begins)
        return Barrier(self.weight * ((1 - self.begins) / (1 - begins)) ** 2, begins)

    def free(self, danger: Danger) -> list[Float[Array, "n"]]:
        """Up to where it costs nothing: a rollout that starts closer begins free of it."""
        return [jnp.maximum(d, self.begins) for d in danger]

    def cost(self, danger: Danger, free: Danger) -> Float[Array, "*n"]:
        """What a step costs every rollout; where nothing can fail, one number: nothing."""
        near = sum(jnp.maximum(d - f, 0.0) ** 2 for d, f in zip(danger, free, strict=True))
        return jnp.asarray(self.weight * near)
