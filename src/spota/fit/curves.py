"""Smooth curves through tables, cheap enough for samplers: cubic between the points of an even grid, straight beyond.

A sampler feels every corner, so that values and slopes go on smoothly from point to point, and at both ends.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
from jaxtyping import Array, Float


class Curves(eqx.Module):
    """One rising curve for each of k parameters."""

    first: Float[np.ndarray, "k"]
    step: Float[np.ndarray, "k"]
    values: Float[np.ndarray, "k points"]
    slopes: Float[np.ndarray, "k points"]
    """A step long."""

    @staticmethod
    def through(x: Float[np.ndarray, "k points"], y: Float[np.ndarray, "k points"], level: bool = False) -> "Curves":
        """Through y at the even grids x, monotone where y is; level ones stay what they are beyond their ends."""
        step = (x[:, -1] - x[:, 0]) / (x.shape[1] - 1)
        pairs = zip(x, y, strict=True)
        slopes = np.stack([scipy.interpolate.PchipInterpolator(a, b).derivative()(a) for a, b in pairs])
        if level:
            slopes[:, [0, -1]] = 0.0
        return Curves(x[:, 0], step, y, slopes * step[:, None])

    def at(self, x: Float[Array, "k"]) -> Float[Array, "k"]:
        """Every curve at its own x."""
        return jax.vmap(_at)(x, *(jnp.asarray(a, jnp.float32) for a in vars(self).values()))


def _at(
    x: Float[Array, ""],
    first: Float[Array, ""],
    step: Float[Array, ""],
    values: Float[Array, "points"],
    slopes: Float[Array, "points"],
) -> Float[Array, ""]:
    """The cubic that has both values and both slopes of its piece; the grid is even, so nothing is searched."""
    last = values.size - 1
    place = (x - first) / step
    low = jax.lax.stop_gradient(jnp.clip(jnp.floor(place), 0, last - 1)).astype(jnp.int32)
    t = jnp.clip(place - low, 0.0, 1.0)
    a, b, m, n = values[low], values[low + 1], slopes[low], slopes[low + 1]
    inside = a + t * (m + t * (3 * (b - a) - 2 * m - n + t * (m + n - 2 * (b - a))))
    return inside + m * jnp.minimum(place - low, 0.0) + n * jnp.maximum(place - low - 1, 0.0)
