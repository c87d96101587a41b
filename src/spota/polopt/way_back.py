"""What happens to a gradient on its way back through a simulation: it may fade, and outliers are cut.

A rollout that is about to fail is chaotic: its gradient can be 10⁹ times as large as those of all others, and a mean
over rollouts then points where this one happens to point. References whose domains hold one hard machine fell apart by
it. So wherever a gradient passes from one step to the one before, each of its numbers is compared with its usual size
over all rollouts, the geometric mean, which a single giant hardly moves, and cut at some times that.
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from spota.polopt.rows import Tree


def passed(numbers: Tree, horizon: int | None, cut: float | None) -> Tree:
    """The same numbers, whose last axis is over rollouts; a gradient that passes here on its way back is changed.

    It keeps 1 − 1/horizon of its size, nearly (None: all of it), and none of its numbers is larger than `cut` times
    their usual size over the rollouts of a device (None: as large as it is); one that is not finite is left out then.
    """
    if horizon is None and cut is None:
        return numbers
    inexact, others = eqx.partition(numbers, eqx.is_inexact_array)
    share = 1.0 if horizon is None else math.exp(-1 / horizon)
    return eqx.combine(_passed(inexact, share, cut), others)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _passed(numbers: PyTree, share: float, cut: float | None) -> PyTree:
    del share, cut
    return numbers


def _forward(numbers: PyTree, share: float, cut: float | None) -> tuple[PyTree, None]:
    del share, cut
    return numbers, None


def _backward(share: float, cut: float | None, _: None, gradient: PyTree) -> tuple[PyTree]:
    return (jax.tree.map(lambda g: share * (g if cut is None else _clipped(g, cut)), gradient),)


def _clipped(gradient: Float[Array, "*channels n"], cut: float) -> Float[Array, "*channels n"]:
    """Each number, at most `cut` times the geometric mean of those that are neither zero nor infinite."""
    usual = _geometric_mean(jnp.abs(gradient))
    return jnp.where(jnp.isfinite(gradient), jnp.clip(gradient, -cut * usual, cut * usual), 0.0)


def _geometric_mean(sizes: Float[Array, "*channels n"]) -> Float[Array, "*channels 1"]:
    """Of those that are neither zero nor infinite, within 7 %: the bits of a positive float are its logarithm,
    nearly, and a mean of bits costs much less than logarithms."""
    counts = jnp.isfinite(sizes) & (sizes > 0)
    bits = jnp.where(counts, jax.lax.bitcast_convert_type(sizes, jnp.int32).astype(jnp.float32), 0.0)
    mean = bits.sum(-1, keepdims=True) / jnp.maximum(counts.sum(-1, keepdims=True), 1)
    return jax.lax.bitcast_convert_type(mean.astype(jnp.int32), jnp.float32)


_passed.defvjp(_forward, _backward)
