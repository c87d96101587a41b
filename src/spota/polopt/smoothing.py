"""A few training domains as a smooth density: a kernel around each, scaled by how much each parameter varies in ν.

Ten domains are ten points in twenty dimensions, and a policy that is trained on points learns the points. Drawing each
training rollout near one of them asks for a policy that works between them, too, and a little beyond: ten draws seldom
reach the tails that a hundred others will.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.polopt.rows import Rows
from spota.sim.domain import DomainDistribution
from spota.sim.marginals import Bernoulli, Constant, Integers, Marginal, NumPyro, Observed

FEW = 100
"""Domains below which a policy learns the points instead of the distribution. Above, a kernel only makes it harder:
what is trained on is spread more widely than what the policy will meet."""


def width_for(n: int, width: float) -> float:
    """Of the kernel around each of n domains, if that is what a few of them want."""
    return width if n < FEW else 0.0


def smoothed(key: Key[Array, ""], table: DomainDistribution, rows: Rows, width: float) -> Rows:
    """Move every parameter of every row by `width` of its standard deviations in ν, within its support."""
    if width == 0:
        return rows
    names = [name for name in rows.domains if not isinstance(table[name].marginal, Constant | Bernoulli)]
    noise = jax.random.normal(key, (len(names), rows.keys.shape[0]))
    moved = {
        name: _inside(rows.domains[name] + width * _spread(table[name].marginal) * z, table[name].marginal)
        for name, z in zip(names, noise, strict=True)
    }
    return Rows({**rows.domains, **moved}, rows.keys)


def _spread(marginal: Marginal) -> float:
    """The standard deviation, from draws: any law can be drawn from."""
    return float(marginal.draw(np.random.default_rng(0), 4096).std())


def _inside(values: Float[Array, "rows"], marginal: Marginal) -> Float[Array, "rows"]:
    """Reflect at the ends of the support: cutting off would pile the extremes up."""
    low, high = marginal.support
    values = jnp.where(values < low, 2 * low - values, values)
    values = jnp.clip(jnp.where(values > high, 2 * high - values, values), low, high)
    return jnp.round(values) if _is_whole(marginal) else values


def _is_whole(marginal: Marginal) -> bool:
    """Whether only whole numbers can be drawn."""
    if isinstance(marginal, NumPyro):
        return bool(marginal.distribution.is_discrete)
    if isinstance(marginal, Observed):
        return bool(np.all(np.mod(marginal.values, 1) == 0))
    return isinstance(marginal, Integers)
