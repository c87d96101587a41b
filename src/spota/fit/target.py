"""The posterior that NUTS moves through: the prior, and a quadratic model of the simulator for each delay that matters.

Machines with another delay are best elsewhere: in the parameters themselves they would be hills with valleys between,
which chains do not cross. So every delay has its own coordinates v, around its own best machine and along the ridge
there (`ridge.py`); v = 0 is the best machine of all delays at once, and their densities are summed at the same v.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.fit.coordinates import Coordinates
from spota.fit.estimate import Estimate, Problem
from spota.fit.quadratic import Likelihood, Straight, modelled
from spota.fit.ridge import Ridge

SCALE_PRIOR = 0.5
"""Standard deviation of the logarithm of the noise's scale."""


class Around(eqx.Module):
    """Machines with one delay, in coordinates v around the best of them."""

    root: Float[np.ndarray, "f f"]
    """R of the quadratic model."""
    straight: Straight
    ridge: Ridge
    volume: Float[np.ndarray, ""]
    """Of the machines and of the beginnings of segments: what a delay gains where both are known less."""

    @staticmethod
    def of(problem: Problem, found: Estimate, which: int, likelihood: Likelihood, shrink: float) -> "Around":
        """The machines with that delay, if what the segments say counts `shrink` times as much."""
        free, z = problem.free, found.z[:, which]
        information = found.information[..., which][np.ix_(free, free)] * shrink
        factor = np.linalg.inv(np.linalg.cholesky(information + np.eye(int(free.sum())))).T
        straight = Straight.of(problem, z, factor)
        root = likelihood.quadratic(straight, 0.0 if free.all() else float(z[~free][0]))
        ridge = Ridge.of(problem, z, straight, information)
        return Around(root, straight, ridge, np.asarray(likelihood.volume + ridge.volume))

    def z_of(self, v: Float[Array, "k"]) -> Float[Array, "p"]:
        """All coordinates."""
        return self.ridge.z_of(v)

    def misfit(self, v: Float[Array, "k"]) -> Float[Array, ""]:
        """By the model."""
        w = self.straight.places(self.ridge.coordinates.values(self.z_of(v)))
        return modelled(jnp.asarray(self.root, jnp.float32), w)

    def far(self, v: Float[Array, "k"]) -> Float[Array, ""]:
        """Twice the negative log prior."""
        return (self.z_of(v)[np.array(self.straight.free)] ** 2).sum()


class Target(eqx.Module):
    """Over u: the coordinates v and, last, the logarithm of the noise's scale, whitened too."""

    delays: tuple[Around, ...]
    count: Float[np.ndarray, ""]
    """Samples that count."""
    middle: Float[np.ndarray, ""]
    """The logarithm of the likeliest scale of the noise, at the best machine."""

    @property
    def size(self) -> int:
        """Coordinates."""
        return len(self.delays[0].straight.free) + 1

    def log_scale(self, u: Any) -> Any:
        """Of the noise; its posterior is nearly normal."""
        return self.middle + u / jnp.sqrt(2 * self.count + SCALE_PRIOR**-2)

    def log_densities(
        self, misfits: Float[Array, "delays"], far: Float[Array, "delays"], scale: Float[Array, ""]
    ) -> Float[Array, "delays"]:
        """Of a machine with every delay, from misfits and priors."""
        volumes = jnp.stack([jnp.asarray(one.volume) for one in self.delays])
        own = volumes - volumes[0] - 0.5 * misfits * jnp.exp(-2 * scale) - 0.5 * far
        return own - self.count * scale - 0.5 * (scale / SCALE_PRIOR) ** 2

    def model(self, u: Float[Array, "k"]) -> Float[Array, "delays"]:
        """Log densities by the model."""
        misfits, far = (jnp.stack([f(one, u[:-1]) for one in self.delays]) for f in (Around.misfit, Around.far))
        return self.log_densities(misfits, far, self.log_scale(u[-1]))

    def potential(self, u: Float[Array, "k"]) -> Float[Array, ""]:
        """What NUTS descends."""
        return -jax.scipy.special.logsumexp(self.model(u))


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
        pairs = zip(kept, likelihoods, strict=True)
        delays = tuple(Around.of(problem, found, int(which), one, shrink) for which, one in pairs)
        return Both(Target(delays, np.asarray(count), np.asarray(middle)), likelihoods)

    def simulated(
        self, u: Float[np.ndarray, "draws k"]
    ) -> tuple[Float[np.ndarray, "draws delays"], Float[np.ndarray, "delays draws p"]]:
        """Log densities by the simulator, and the coordinates."""
        v, target = jnp.asarray(u[:, :-1], jnp.float32), self.target
        z = [np.asarray(jax.vmap(one.z_of)(v), np.float64) for one in target.delays]
        far = [np.asarray(jax.vmap(one.far)(v), np.float64) for one in target.delays]
        values = [_values(one.ridge.coordinates, its) for one, its in zip(target.delays, z, strict=True)]
        misfits = [one.misfit(its) for one, its in zip(self.likelihoods, values, strict=True)]
        scale = target.log_scale(jnp.asarray(u[:, -1], jnp.float32))
        misfit, prior = (jnp.asarray(np.stack(x, axis=-1), jnp.float32) for x in (misfits, far))
        densities = jax.vmap(target.log_densities)(misfit, prior, scale)
        return np.asarray(densities, np.float64), np.stack(z)

    def modelled(self, u: Float[np.ndarray, "draws k"]) -> Float[np.ndarray, "draws delays"]:
        """Log densities by the model."""
        return np.asarray(_modelled(self.target, jnp.asarray(u, jnp.float32)), np.float64)


@eqx.filter_jit
def _modelled(target: Target, u: Float[Array, "draws k"]) -> Float[Array, "draws delays"]:
    return jax.vmap(target.model)(u)


def _values(coordinates: Coordinates, z: Float[np.ndarray, "draws p"]) -> Float[np.ndarray, "p draws"]:
    return np.asarray(jax.vmap(coordinates.values)(jnp.asarray(z, jnp.float32)), np.float64).T
