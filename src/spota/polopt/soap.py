"""Adam in the eigenbasis of each layer's gradients (SOAP: Vyas et al. 2024), as an optax transformation.

Gradients through a simulator are badly conditioned: a network's few loud directions hide the many quiet ones in which
there is still something to gain. Adam scales coordinates, and the loud directions are no coordinates. SOAP keeps
running means of G Gᵀ and Gᵀ G of every weight matrix G, turns it into their eigenvectors, and lets Adam work there.
Layers of tens of units cost microseconds.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

FLOOR = 1e-3
"""The smallest scale of a direction, as a share of the array's largest: what is quieter is rounding, and rounding
differs between one device and two. Without it, early steps are partly random and some trainings fall."""

SILENT = 1e-18
"""The smallest scale of all, for parameters on which nothing depends yet: squares of smaller gradients are zero in 32
bits. (With the smallest number there is instead, a step of 0 / scale became 0 / 0 where it was compiled for two
devices.)"""


class Moments(eqx.Module):
    """What is remembered of one array's gradients: Adam's two moments and, of a matrix, the means of G Gᵀ and Gᵀ G.

    The second moment is that of the turned gradient.
    """

    first: Float[Array, "*shape"]
    second: Float[Array, "*shape"]
    sides: tuple[Float[Array, "_ _"], ...]


class SoapState(eqx.Module):
    """How many steps were taken, and the moments of every array in the order of its leaves."""

    count: Int[Array, ""]
    moments: tuple[Moments, ...]


def scale_by_soap(b1: float = 0.9, b2: float = 0.95) -> optax.GradientTransformation:
    """Directions of steps from gradients; b1 and b2 are the memories of direction and scale."""

    def init(params: Any) -> Any:
        return SoapState(jnp.int32(0), tuple(_new(leaf) for leaf in jax.tree.leaves(params)))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        leaves, structure = jax.tree.flatten(updates)
        count = state.count + 1
        moved = [_step(g, m, b1, b2, count) for g, m in zip(leaves, state.moments, strict=True)]
        steps, moments = zip(*moved, strict=True)
        return jax.tree.unflatten(structure, steps), SoapState(count, moments)

    return optax.GradientTransformation(init, update)


def _new(leaf: Float[Array, "*shape"]) -> Moments:
    sides = tuple(jnp.zeros((size, size)) for size in leaf.shape) if leaf.ndim == 2 else ()
    return Moments(jnp.zeros_like(leaf), jnp.zeros_like(leaf), sides)


def _step(
    g: Float[Array, "*shape"], old: Moments, b1: float, b2: float, count: Int[Array, ""]
) -> tuple[Float[Array, "*shape"], Moments]:
    """Adam's step in the eigenbasis, turned back, and what is remembered now."""
    squares = (g @ g.T, g.T @ g) if old.sides else ()
    sides = tuple(b2 * mean + (1 - b2) * new for mean, new in zip(old.sides, squares, strict=True))
    bases = tuple(_eigenvectors(side) for side in sides)
    first = b1 * old.first + (1 - b1) * g
    second = b2 * old.second + (1 - b2) * _turned(g, bases) ** 2
    scale = jnp.sqrt(second / (1 - b2**count))
    scale += FLOOR * scale.max() + SILENT
    step = _turned(first / (1 - b1**count), bases) / scale
    return _turned(step, tuple(basis.T for basis in bases)), Moments(first, second, sides)


@jax.custom_batching.sequential_vmap
def _eigenvectors(side: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """One matrix after the other, however many problems there are.

    A batch would be cut into tasks for the very pool of threads that waits for them: if all its threads wait, nothing
    moves any more (jaxlib 0.10.2, lapack's batch map; seen with 32 × 32 matrices on two cores).
    """
    return jnp.linalg.eigh(side)[1]


def _turned(g: Float[Array, "*shape"], bases: tuple[Float[Array, "_ _"], ...]) -> Float[Array, "*shape"]:
    """In the coordinates of both sides' eigenvectors; what is not a matrix stays as it is."""
    if not bases:
        return g
    left, right = bases
    return left.T @ g @ right
