"""A quadratic model of what a machine leaves unexplained, around the best one: cheap enough for thousands of looks.

With w the whitened coordinates, r(w) ≈ r₀ + Σ aᵢ wᵢ + Σ bᵢⱼ wᵢ wⱼ, from simulations 1.5 standard deviations away along
every coordinate and every pair of them. Masses, motor constants and lengths act in products, so that what is known of
them is a bent ridge; it is straight in their logarithms, which w is made of. The misfit, with the likeliest beginnings
of segments, is a quadratic form in r, and so ‖R φ‖² with the features φ = (1, wᵢ, wᵢ wⱼ). What the
simulator itself says of a draw is `Likelihood.misfit`; by the difference of both draws are weighed (`posterior.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from spota.fit.coordinates import Plain, values_of
from spota.fit.estimate import Estimate, Problem, beginnings_of
from spota.fit.noise import beginnings
from spota.fit.prediction import predicted

AWAY = 1.5
"""Standard deviations of the simulations from the best machine."""
LOOKS = 400
"""Machines all around to which the model is fitted."""
SPREAD = 1.3
"""Their standard deviation, in that of what is known."""
ROWS = 24
"""Of R: recordings determine a few combinations of parameters, and all further rows are zero but for rounding."""
AT_ONCE = 100
"""Machines that are simulated at a time."""


@dataclass(frozen=True)
class Likelihood:
    """Twice the negative log likelihood of machines with one delay, by the simulator, with the likeliest beginnings.

    How well these are known does not count. If they were integrated out, a machine that forgets its beginning sooner
    would gain, as it would lose if segments were told by their ends; delays came out too long by that.
    """

    problem: Problem
    start: Float[np.ndarray, "d n"]
    """Where segments begin, by the best machine."""
    pulls: Float[np.ndarray, "t q d n"]
    """Sᵀ W of every sample."""
    off: Float[np.ndarray, "d n"]
    covariance: Float[np.ndarray, "n d d"]
    constant: float
    """What the beginnings cost that the best machine gives the segments."""

    @staticmethod
    def of(problem: Problem, found: Estimate, which: int) -> "Likelihood":
        """Around the best machine with that delay."""
        start = found.start[..., which]
        S, C = beginnings_of(problem, found.z[:, which], start)
        spread = beginnings(problem.env, problem.noise, problem.segments)[:, None]
        moved = start - np.asarray(problem.segments.start[:, : start.shape[1]], np.float64)
        constant = float(((moved / spread) ** 2).sum())
        return Likelihood(problem, start, S * problem.weights[:, :, None, None], moved / spread**2, C, constant)

    def left(self, values: Float[np.ndarray, "p m"]) -> Float[np.ndarray, "t q n m"]:
        """What machines with these parameters leave unexplained."""
        n, m = self.start.shape[1], values.shape[1]
        segments = self.problem.segments.chosen(np.tile(np.arange(n), m))
        lanes = np.repeat(values, n, axis=1), np.tile(self.start, m)
        system = self.problem.coordinates
        r = predicted(self.problem.env, Plain(system.names, system.constant), *lanes, segments)
        return np.moveaxis(r.reshape(*r.shape[:2], m, n), 2, 3)

    def form(
        self, r: Float[np.ndarray, "t q n m"], constants: Float[np.ndarray, "m"]
    ) -> tuple[Float[np.ndarray, "k m"], Float[np.ndarray, "e m"]]:
        """Vectors a, b such that the misfit of a combination of residuals is |a|² − |b|²; constants have weight 1."""
        m = r.shape[-1]
        h = np.einsum("tqdn,tqnm->ndm", self.pulls, r) + self.off.T[..., None] * constants
        turned = np.swapaxes(np.linalg.cholesky(self.covariance), 1, 2) @ h
        return (r * np.sqrt(self.problem.weights)[:, :, None, None]).reshape(-1, m), turned.reshape(-1, m)

    def misfit(self, values: Float[np.ndarray, "p m"]) -> Float[np.ndarray, "m"]:
        """Of machines, by the simulator; infinite where it fails."""
        parts = []
        for some in _pieces(values):
            a, b = self.form(self.left(some), np.ones(some.shape[1]))
            parts.append((a**2).sum(axis=0) - (b**2).sum(axis=0) + self.constant)
        return np.nan_to_num(np.concatenate(parts), nan=np.inf)

    def quadratic(self, k: int, values: Callable[[np.ndarray], np.ndarray]) -> Float[np.ndarray, "r f"]:
        """R of the misfit ‖R φ‖², to second order in k coordinates, from which `values` [p, m] are computed."""
        ones, pairs = np.eye(k) * AWAY, list(zip(*np.triu_indices(k, 1), strict=True))
        points = [np.zeros(k), *ones, *-ones, *(ones[i] + ones[j] for i, j in pairs)]
        r = self.left(values(np.stack(points, axis=1)))
        middle, up, down, both = r[..., :1], r[..., 1 : k + 1], r[..., k + 1 : 2 * k + 1], r[..., 2 * k + 1 :]
        i, j = (np.array(x, int) for x in zip(*pairs, strict=True))
        slope, bend = (up - down) / (2 * AWAY), (up + down - 2 * middle) / (2 * AWAY**2)
        mixed = (both - up[..., i] - up[..., j] + middle) / AWAY**2
        a, b = self.form(np.concatenate([middle, slope, bend, mixed], axis=-1), np.eye(1 + 2 * k + i.size)[0])
        return self.root(a, b)

    def fitted(
        self, points: Float[np.ndarray, "k m"], values: Callable[[np.ndarray], np.ndarray]
    ) -> Float[np.ndarray, "r f"]:
        """The same from machines all around, by least squares: less exact in the middle, and right where most are."""
        k = len(points)
        parts = [self.form(self.left(values(some)), np.ones(some.shape[1])) for some in _pieces(points)]
        a, b = (np.concatenate(x, axis=1) for x in zip(*parts, strict=True))
        misfit = (a**2).sum(axis=0) - (b**2).sum(axis=0)
        off = np.nan_to_num(misfit - np.nanmin(misfit), nan=np.inf, posinf=np.inf)
        weights = 1 / (1 + (off / (2 * k)) ** 2)
        seen = weights > 0
        phi = np.asarray(jax.vmap(features, -1)(jnp.asarray(points[:, seen], jnp.float32)), np.float64)
        scale = np.sqrt(weights[seen])[:, None]
        solve = np.linalg.pinv(phi * scale) * scale.T
        return self.root(*((solve @ x[:, seen].T).T for x in (a, b)))

    def root(self, a: Float[np.ndarray, "k f"], b: Float[np.ndarray, "e f"]) -> Float[np.ndarray, "r f"]:
        """R of the misfit |a φ|² − |b φ|²."""
        G = a.T @ a - b.T @ b
        G[0, 0] += self.constant
        powers, vectors = (x[..., -ROWS:] for x in np.linalg.eigh(G))
        return np.sqrt(np.maximum(powers, 0.0))[:, None] * vectors.T


class Straight(eqx.Module):
    """w: where a machine is from the best one, in logarithms of what is positive and in units of what is known."""

    best: Float[np.ndarray, "p"]
    """Parameters of the best machine."""
    logarithmic: Bool[np.ndarray, "p"]
    factor: Float[np.ndarray, "k k"]
    inverse: Float[np.ndarray, "k k"]
    slope: Float[np.ndarray, "p"]
    """Of the logarithms, or of the parameters, by the coordinates z."""
    free: tuple[int, ...] = eqx.field(static=True)
    """Which parameters move."""

    @staticmethod
    def of(problem: Problem, z: Float[np.ndarray, "p"], factor: Float[np.ndarray, "k k"]) -> "Straight":
        """Around z, of whose free coordinates the covariance is known by its factor."""
        system, free = problem.coordinates, problem.free
        logarithmic = np.array([problem.env.domain[name].sign == "positive" for name in system.names])
        up, down = (values_of(system, z + 0.5 * sign) for sign in (1.0, -1.0))
        slope = np.where(logarithmic, np.log(np.where(logarithmic, up / down, 1.0)), up - down)
        factor = slope[free][:, None] * factor
        moving = tuple(map(int, np.flatnonzero(free)))
        return Straight(values_of(system, z), logarithmic, factor, np.linalg.inv(factor), slope, moving)

    def values(self, w: Float[np.ndarray, "k m"], delay: float) -> Float[np.ndarray, "p m"]:
        """The parameters there; what is pinned is the delay."""
        moved = np.zeros((self.best.size, w.shape[1]))
        moved[list(self.free)] = self.factor @ w
        best = self.best[:, None]
        values = np.where(
            self.logarithmic[:, None], best * np.exp(np.where(self.logarithmic[:, None], moved, 0)), best + moved
        )
        values[np.setdiff1d(np.arange(self.best.size), self.free)] = delay
        return values

    def moved(self, values: Float[Array, "p"]) -> Float[Array, "k"]:
        """Where a machine is from the best one, in logarithms of what is positive."""
        best, log = jnp.asarray(self.best, jnp.float32), self.logarithmic
        ratio = jnp.where(log, values / jnp.where(log, best, 1.0), 1.0)
        return jnp.where(log, jnp.log(ratio), values - best)[np.array(self.free)]


def around(k: int) -> Float[np.ndarray, "k m"]:
    """Points all around the middle, in pairs."""
    half = np.random.default_rng(0).standard_normal((k, LOOKS // 2)) * SPREAD
    return np.concatenate([half, -half], axis=1)


def _pieces(points: Float[np.ndarray, "k m"]) -> list[Float[np.ndarray, "k some"]]:
    return [points[:, first : first + AT_ONCE] for first in range(0, points.shape[1], AT_ONCE)]


def features(w: Float[Array, "k"]) -> Float[Array, "f"]:
    """1, wᵢ, wᵢ² and wᵢ wⱼ."""
    i, j = np.triu_indices(w.size, 1)
    return jnp.concatenate([jnp.ones(1), w, w**2, w[i] * w[j]])


def modelled(root: Float[Array, "r f"], w: Float[Array, "k"]) -> Float[Array, ""]:
    """‖R φ(w)‖²."""
    return ((root @ features(w)) ** 2).sum()
