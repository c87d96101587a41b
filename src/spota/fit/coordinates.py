"""Coordinates in which what is believed about a machine beforehand is N(0, I), and how they become parameters.

`linear` continues beyond the ends of a table, to ask whether a machine lies there; `scores` never leaves it, to learn
which machine of the table it is. Parameters that are constant have no coordinate.
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from spota.fit.curves import Curves
from spota.sim.domain import DomainDistribution, Empirical
from spota.sim.env import Platform
from spota.sim.marginals import Constant, Marginal, TruncatedNormal, Uniform

ENDS = 9.0
"""Scores beyond which nothing changes: no law has anything there."""
QUANTILES = 721
"""Points of the curve from score to value."""
GRID = np.linspace(-ENDS, ENDS, QUANTILES)

BEND = 0.1
"""Standard deviations from a bound within which it is felt."""
FAR = 30.0
"""Standard deviations to where a bound stands that does not exist: nobody comes there, and numbers stay exact."""


class Linear(eqx.Module):
    """x = mean + L z, bent smoothly where it would leave what is physically possible."""

    names: tuple[str, ...] = eqx.field(static=True)
    constant: dict[str, float]
    mean: Float[Array, "p"]
    factor: Float[Array, "p p"]
    low: Float[Array, "p"]
    high: Float[Array, "p"]

    def values(self, z: Float[Array, "p"]) -> Float[Array, "p"]:
        """The parameters that have a coordinate."""
        width = BEND * jnp.sqrt((self.factor**2).sum(axis=1))
        above = self.low + width * jax.nn.softplus((self.mean + self.factor @ z - self.low) / width)
        below = self.high - width * jax.nn.softplus((self.high - above) / width)
        return below

    def domain(self, z: Float[Array, "p"]) -> dict[str, Float[Array, ""]]:
        """All parameters by name."""
        return _named(self, self.values(z))

    def z_of(self, values: Float[np.ndarray, "p m"]) -> Float[np.ndarray, "p m"]:
        """The coordinates of parameters, away from bounds."""
        off = values - np.asarray(self.mean, np.float64)[:, None]
        return np.linalg.solve(np.asarray(self.factor, np.float64), off)

    def moved(self, z: Float[np.ndarray, "p m"], step: Float[np.ndarray, "p m"]) -> Float[np.ndarray, "p m"]:
        """z after a step, which goes straight in the logarithms of what is positive.

        Masses, motor constants and lengths act in products, so that what recordings leave open of them is a bent ridge
        in the parameters, and a straight one in their logarithms.
        """
        L, mean = np.asarray(self.factor, np.float64), np.asarray(self.mean, np.float64)[:, None]
        x, along = mean + L @ z, L @ step
        positive = (np.asarray(self.low)[:, None] > 0) & (x > 0)
        ratio = np.clip(along / np.where(positive, x, 1.0), -1.0, 1.0)
        return np.linalg.solve(L, np.where(positive, x * np.exp(ratio), x + along) - mean)

    @property
    def spread(self) -> Float[np.ndarray, "p"]:
        """Standard deviations of the parameters."""
        return np.sqrt((np.asarray(self.factor) ** 2).sum(axis=1))


class Scores(eqx.Module):
    """x = F⁻¹(Φ(z)), parameter by parameter: z is N(0, 1) exactly if x has the law F; some are x themselves."""

    names: tuple[str, ...] = eqx.field(static=True)
    plain: tuple[str, ...] = eqx.field(static=True)
    """Parameters that are their own coordinate, such as whole delays."""
    constant: dict[str, float]
    curves: Curves
    """From score to value, level beyond ENDS."""

    def values(self, z: Float[Array, "p"]) -> Float[Array, "p"]:
        """The parameters that have a coordinate."""
        return jnp.where(np.isin(self.names, self.plain), z, self.curves.at(z))

    def domain(self, z: Float[Array, "p"]) -> dict[str, Float[Array, ""]]:
        """All parameters by name."""
        return _named(self, self.values(z))

    def z_of(self, values: Float[np.ndarray, "p"]) -> Float[np.ndarray, "p"]:
        """The coordinates of parameters."""
        curves = zip(np.asarray(values), np.asarray(self.curves.values), strict=True)
        scores = np.array([np.interp(x, curve, GRID) for x, curve in curves])
        return np.where(np.isin(self.names, self.plain), values, scores)


class Plain(eqx.Module):
    """The parameters themselves."""

    names: tuple[str, ...] = eqx.field(static=True)
    constant: dict[str, float]

    def values(self, z: Float[Array, "p"]) -> Float[Array, "p"]:
        """As they are."""
        return z

    def domain(self, z: Float[Array, "p"]) -> dict[str, Float[Array, ""]]:
        """All parameters by name."""
        return _named(self, z)


Coordinates = Linear | Scores | Plain


def values_of(system: Coordinates, z: Float[np.ndarray, "p"]) -> Float[np.ndarray, "p"]:
    """The parameters at a point that the host has."""
    return np.asarray(system.values(jnp.asarray(z, jnp.float32)), np.float64)


def linear(table: DomainDistribution, env: Platform, rows: int = 4000) -> Linear:
    """The table's mean and covariance; rows that were observed keep their correlations."""
    drawn = {n: np.asarray(x, np.float64) for n, x in table.sample(jax.random.key(0), rows).items()}
    names = tuple(name for name, row in table.items() if is_drawn(row.marginal))
    values = np.stack([drawn[name] for name in names])
    covariance = np.cov(values) if isinstance(table, Empirical) else np.diag(values.var(axis=1))
    scale = values.std(axis=1)
    correlation = covariance / np.outer(scale, scale) + 1e-6 * np.eye(len(names))
    return _linear(table, env, names, values.mean(axis=1), scale[:, None] * np.linalg.cholesky(correlation))


def wider(system: Linear, table: DomainDistribution, env: Platform, least: Mapping[str, float]) -> Linear:
    """The same middle, every parameter by itself and with at least that spread: machines far from a narrow table."""
    own = dict(zip(system.names, system.spread, strict=True))
    scale = {name: max(float(own.get(name, 0.0)), least[name]) for name in table}
    names = tuple(name for name in table if scale[name] > 0)
    middle = {**system.constant, **dict(zip(system.names, np.asarray(system.mean, np.float64), strict=True))}
    mean = np.array([middle[name] for name in names])
    return _linear(table, env, names, mean, np.diag([scale[name] for name in names]))


def _linear(
    table: DomainDistribution, env: Platform, names: tuple[str, ...], mean: np.ndarray, factor: np.ndarray
) -> Linear:
    far = mean[:, None] + FAR * np.sqrt((factor**2).sum(axis=1))[:, None] * np.array([-1.0, 1.0])
    bounds = np.array([possible(table, env, name) for name in names])
    bounds = np.where(np.isfinite(bounds), bounds, far)
    arrays = (mean, factor, bounds[:, 0], bounds[:, 1])
    return Linear(names, _constants(table, names), *(jnp.asarray(x, jnp.float32) for x in arrays))


def scores(table: DomainDistribution, plain: tuple[str, ...] = ()) -> Scores:
    """Every drawn parameter by itself; `plain` ones are their own coordinate, such as whole delays."""
    names = tuple(name for name, row in table.items() if is_drawn(row.marginal) or name in plain)
    curves = np.stack([_curve(table[name].marginal, GRID) for name in names])
    smooth = Curves.through(np.tile(GRID, (len(names), 1)), curves, level=True)
    return Scores(names, plain, _constants(table, names), smooth)


def possible(table: DomainDistribution, env: Platform, name: str) -> tuple[float, float]:
    """What no machine can exceed: the sign of the parameter, and the platform's limits."""
    low, high = env.limits.get(name, (-np.inf, np.inf))
    usual = table[name].marginal.usual_range
    smallest = {"any": -np.inf, "nonnegative": 0.0, "positive": 1e-3 * abs(usual[1])}[table[name].sign]
    return max(low, smallest), high


def _curve(marginal: Marginal, grid: np.ndarray) -> np.ndarray:
    """F⁻¹(Φ(z)) on a grid."""
    u = scipy.special.ndtr(grid)
    if isinstance(marginal, Uniform):
        return marginal.low + (marginal.high - marginal.low) * u
    if isinstance(marginal, TruncatedNormal):
        outside = scipy.special.ndtr(-marginal.cut)
        return marginal.center + marginal.std * scipy.special.ndtri(outside + u * (1 - 2 * outside))
    return np.quantile(marginal.draw(np.random.default_rng(0), 20_000), u)


def is_drawn(marginal: Marginal) -> bool:
    """Whether there is more than one value."""
    low, high = marginal.support
    return not isinstance(marginal, Constant) and high > low


def _constants(table: DomainDistribution, names: tuple[str, ...]) -> dict[str, float]:
    return {name: row.marginal.mean for name, row in table.items() if name not in names}


def _named(coordinates: "Coordinates", values: Float[Array, "p"]) -> dict[str, Float[Array, ""]]:
    drawn = {name: values[i] for i, name in enumerate(coordinates.names)}
    return {**{name: jnp.asarray(x, jnp.float32) for name, x in coordinates.constant.items()}, **drawn}
