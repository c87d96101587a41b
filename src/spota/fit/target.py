"""The posterior that NUTS moves through: the prior, and a quadratic model of the simulator for each delay that matters.

Machines with another delay are best elsewhere: in the parameters themselves they would be hills with valleys between,
which chains do not cross. So every delay has its own coordinates v, around its own best machine and along the ridge
there (`ridge.py`); v = 0 is the best machine of all delays at once, and their densities are summed at the same v.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.fit.coordinates import Coordinates
from spota.fit.estimate import Estimate, Problem
from spota.fit.quadratic import LOOKS, Likelihood, Straight, around, modelled
from spota.fit.ridge import Ridge, determined

SCALE_PRIOR = 0.5
"""Standard deviation of the logarithm of the noise's scale."""
TRUSTED = 6.0
"""Standard deviations up to which the model is believed: a quadratic may fit again where the simulator does not."""
MOST_DELAYS = 4
"""Delays that are summed over."""


class Around(eqx.Module):
    """Machines with one delay, in coordinates v around the best of them."""

    root: Float[np.ndarray, "r f"]
    """R of the quadratic model."""
    ridge: Ridge
    volume: Float[np.ndarray, ""]
    """What a unit of v takes of z, as a logarithm: what a delay gains where its machines are known less."""

    @staticmethod
    def of(
        problem: Problem, found: Estimate, which: int, likelihood: Likelihood, shrink: float, tight: np.ndarray
    ) -> "Around":
        """The machines with that delay, if what the segments say counts `shrink` times as much."""
        free, z = problem.free, found.z[:, which]
        information = _information(problem, found, which) * shrink
        factor = np.linalg.inv(np.linalg.cholesky(information + np.eye(int(free.sum())))).T
        straight = Straight.of(problem, z, factor)
        delay = 0.0 if free.all() else float(z[~free][0])
        rough = likelihood.quadratic(tight.size, lambda w: straight.values(w, delay))
        ridge = Ridge.of(problem, z, straight, rough, information, tight)
        root = likelihood.fitted(around(tight.size), ridge.values)
        return Around(root, ridge, np.asarray(ridge.volume))

    def parts(self, v: Float[Array, "k"]) -> "Parts":
        """What the density is made of, by the model."""
        z, stretch = self.ridge.z_of(v)
        beyond = jnp.maximum(jnp.abs(v) - TRUSTED, 0.0)
        misfit = modelled(jnp.asarray(self.root, jnp.float32), v) + 10 * (beyond**2).sum()
        far = (z[np.array(self.ridge.straight.free)] ** 2).sum()
        return Parts(z, misfit, far, jnp.asarray(self.volume) + stretch)


class Parts(NamedTuple):
    """What the density of a machine is made of."""

    z: Float[Array, "*n p"]
    misfit: Float[Array, "*n"]
    far: Float[Array, "*n"]
    """Twice the negative log prior."""
    volume: Float[Array, "*n"]
    """The logarithm of what a unit of v takes of z."""


class Target(eqx.Module):
    """Over u: the coordinates v and, last, the logarithm of the noise's scale, whitened too."""

    delays: Around
    """MOST_DELAYS of them in one, so that one program serves all recordings; those that are too many have no volume."""
    count: Float[np.ndarray, ""]
    """Samples that count."""
    middle: Float[np.ndarray, ""]
    """The logarithm of the likeliest scale of the noise, at the best machine."""

    @property
    def size(self) -> int:
        """Coordinates."""
        return len(self.delays.ridge.straight.free) + 1

    def log_scale(self, u: Any) -> Any:
        """Of the noise; its posterior is nearly normal."""
        return self.middle + u / jnp.sqrt(2 * self.count + SCALE_PRIOR**-2)

    def parts(self, u: Float[Array, "k"]) -> Parts:
        """Of the machines with every delay."""
        return jax.vmap(lambda one: one.parts(u[:-1]))(self.delays)

    def log_densities(self, parts: Parts, u: Float[Array, "k"]) -> Float[Array, "delays"]:
        """Of the machines with every delay."""
        scale = self.log_scale(u[-1])
        own = parts.volume - self.delays.volume[0] - 0.5 * parts.misfit * jnp.exp(-2 * scale) - 0.5 * parts.far
        return own - self.count * scale - 0.5 * (scale / SCALE_PRIOR) ** 2

    def potential(self, u: Float[Array, "k"]) -> Float[Array, ""]:
        """What NUTS descends."""
        return -jax.scipy.special.logsumexp(self.log_densities(self.parts(u), u))


Density = Float[np.ndarray, "draws delays"]


@dataclass(frozen=True)
class Both:
    """The target by the model, and what the simulator says instead."""

    target: Target
    likelihoods: tuple[Likelihood, ...]

    @staticmethod
    def of(problem: Problem, found: Estimate, kept: np.ndarray) -> "Both":
        """Around the best machines with these delays, the best of all first."""
        n, z = problem.each, found.z[problem.free, kept[0]]
        samples = problem.segments.positions.shape[0]
        count = max(float((n * samples / problem.noise.tau).sum() - found.start.shape[0] * n), 10.0)
        middle = 0.5 * float(np.log((found.cost[kept[0]] - (z**2).sum()) / count))
        likelihoods = tuple(Likelihood.of(problem, found, int(which)) for which in kept)
        shrink = float(np.exp(-2 * middle))
        tight = determined(problem, _information(problem, found, int(kept[0])) * shrink)
        pairs = zip(kept, likelihoods, strict=True)
        delays = [Around.of(problem, found, int(which), one, shrink, tight) for which, one in pairs]
        absent = eqx.tree_at(lambda one: one.volume, delays[0], np.asarray(-np.inf))
        delays += [absent] * (MOST_DELAYS - len(delays))
        together = jax.tree.map(lambda *leaves: np.stack(leaves), *delays)
        return Both(Target(together, np.asarray(count), np.asarray(middle)), likelihoods)

    def fitted_to(self, u: Float[np.ndarray, "draws k"]) -> "Both":
        """The model fitted again, to machines all around and to those that it has drawn.

        Where it was wrong, draws went astray: they alone would say little about where the machines are likely.
        """
        some = np.linspace(0, len(u) - 1, LOOKS).round().astype(int)
        points = np.concatenate([around(u.shape[1] - 1), u[some, :-1].T], axis=1)
        roots = self.target.delays.root.copy()
        for i, likelihood in enumerate(self.likelihoods):
            ridge = jax.tree.map(lambda x, i=i: x[i], self.target.delays.ridge)
            roots[i] = likelihood.fitted(points, ridge.values)
        return replace(self, target=eqx.tree_at(lambda one: one.delays.root, self.target, roots))

    def weighed(self, u: Float[np.ndarray, "draws k"]) -> tuple[Density, Density, Float[np.ndarray, "draws delays p"]]:
        """Log densities by the simulator and by the model, and the coordinates, of every delay that is there."""
        there = len(self.likelihoods)
        parts, modelled = _modelled(self.target, jnp.asarray(u, jnp.float32))
        z = np.asarray(parts.z, np.float64)[:, :there]
        system = self.likelihoods[0].problem.coordinates
        misfits = [one.misfit(_values(system, z[:, i])) for i, one in enumerate(self.likelihoods)]
        scale = np.asarray(self.target.log_scale(u[:, -1]), np.float64)[:, None]
        off = np.stack(misfits, axis=1) - np.asarray(parts.misfit, np.float64)[:, :there]
        by_model = np.asarray(modelled, np.float64)[:, :there]
        return by_model - 0.5 * off * np.exp(-2 * scale), by_model, z


def _information(problem: Problem, found: Estimate, which: int) -> Float[np.ndarray, "k k"]:
    return found.information[..., which][np.ix_(problem.free, problem.free)]


@eqx.filter_jit
def _modelled(target: Target, u: Float[Array, "draws k"]) -> tuple[Parts, Float[Array, "draws delays"]]:
    parts = jax.vmap(target.parts)(u)
    return parts, jax.vmap(target.log_densities)(parts, u)


def _values(coordinates: Coordinates, z: Float[np.ndarray, "draws p"]) -> Float[np.ndarray, "p draws"]:
    return np.asarray(jax.vmap(coordinates.values)(jnp.asarray(z, jnp.float32)), np.float64).T
