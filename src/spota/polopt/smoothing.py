"""A few training domains as a smooth density: a kernel around each, as wide as the domains themselves are spread.

Ten domains are ten points in twenty dimensions, and a policy that is trained on points learns the points. Drawing each
training rollout near one of them asks for a policy that works between them, too. Nothing but the domains themselves
decides: their mean and their variance stay what they are, and one domain alone has no spread and stays what it is.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.domain import DomainDistribution, Domains
from spota.marginals import Bernoulli, Constant, Integers, Marginal, NumPyro, Observed
from spota.polopt.rows import Rows


def smoothed(key: Key[Array, ""], table: DomainDistribution, domains: Domains, rows: Rows, share: float) -> Rows:
    """Draw every parameter of every row from a kernel that makes up `share` of the domains' standard deviation."""
    if share == 0:
        return rows
    names = [name for name in domains if not isinstance(table[name].marginal, Constant | Bernoulli)]
    noise = jax.random.normal(key, (len(names), rows.keys.shape[0]))
    moved = {
        name: _inside(_near(rows.domains[name], domains[name], share, z), table[name].marginal)
        for name, z in zip(names, noise, strict=True)
    }
    return Rows({**rows.domains, **moved}, rows.keys)


def _near(
    values: Float[Array, "rows"], domains: Float[Array, "n"], share: float, z: Float[Array, "rows"]
) -> Float[Array, "rows"]:
    """Shrink towards the mean, so that the kernel does not widen the whole."""
    mean, std = domains.mean(), domains.std()
    return jnp.where(std > 0, mean + math.sqrt(1 - share**2) * (values - mean) + share * std * z, values)


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
