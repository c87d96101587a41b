"""Coordinates v of machines along the ridge on which they explain recordings equally well.

Masses, motor constants and lengths act in products, so that what is known of them is a bent ridge, which is straight in
their logarithms. Tight coordinates are those that segments determine once the loose ones are given. v of the loose ones
is a distance in z, and v of the tight ones a distance from the ridge, in units of what is known: a shear, which leaves
volumes as they are, so that a density needs no correction.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from spota.fit.coordinates import ENDS, QUANTILES, Scores
from spota.fit.estimate import Problem
from spota.fit.quadratic import Straight

TIGHT = 8.0
"""Information, in units of the prior's, from which on a coordinate is determined by the segments."""
FARTHEST = 3.5
"""Scores up to which the ridge is followed."""


class Ridge(eqx.Module):
    """v → z, around one machine."""

    coordinates: Scores
    best: Float[np.ndarray, "p"]
    along: Float[np.ndarray, "t l"]
    """How tight parameters follow loose ones, in logarithms of what is positive."""
    near: Float[np.ndarray, "t t"]
    far: Float[np.ndarray, "l l"]
    """Factors of the covariances of tight coordinates beside the ridge, and of loose ones."""
    logarithmic: Bool[np.ndarray, "p"]
    tight: tuple[int, ...] = eqx.field(static=True)
    loose: tuple[int, ...] = eqx.field(static=True)

    @staticmethod
    def of(problem: Problem, z: Float[np.ndarray, "p"], straight: Straight, information: np.ndarray) -> "Ridge":
        """Around the best machine, with the information about the coordinates that are free."""
        first, rest = _determined(information)
        H, free = information + np.eye(len(information)), np.flatnonzero(problem.free)
        inside = np.linalg.inv(H[np.ix_(first, first)])
        beside = H[np.ix_(rest, rest)] - H[np.ix_(rest, first)] @ inside @ H[np.ix_(first, rest)]
        slope = straight.slope[free]
        follows = -np.linalg.solve(information[np.ix_(first, first)], information[np.ix_(first, rest)])
        along = slope[first][:, None] * follows / slope[rest]
        factors = (np.linalg.cholesky(inside), np.linalg.cholesky(np.linalg.inv(beside)))
        assert isinstance(problem.coordinates, Scores)
        places = (tuple(map(int, free[which])) for which in (first, rest))
        return Ridge(problem.coordinates, z, along, *factors, straight.logarithmic, *places)

    @property
    def volume(self) -> float:
        """The logarithm of what a unit of v takes of z."""
        return float(np.log(np.diag(self.near)).sum() + np.log(np.diag(self.far)).sum())

    def z_of(self, v: Float[Array, "k"]) -> Float[Array, "p"]:
        """All coordinates."""
        tight, loose = np.array(self.tight, int), np.array(self.loose, int)
        best = jnp.asarray(self.best, jnp.float32)
        z = best.at[loose].add(jnp.asarray(self.far, jnp.float32) @ v[tight.size :])
        moved = (self._logarithms(z) - self._logarithms(best))[loose]
        ridge = self._logarithms(best)[tight] + jnp.asarray(self.along, jnp.float32) @ moved
        values = jnp.where(self.logarithmic[tight], jnp.exp(jnp.where(self.logarithmic[tight], ridge, 0.0)), ridge)
        return z.at[tight].set(self._scores(values) + jnp.asarray(self.near, jnp.float32) @ v[: tight.size])

    def _logarithms(self, z: Float[Array, "p"]) -> Float[Array, "p"]:
        values = self.coordinates.values(z)
        return jnp.where(self.logarithmic, jnp.log(jnp.where(self.logarithmic, values, 1.0)), values)

    def _scores(self, values: Float[Array, "t"]) -> Float[Array, "t"]:
        """Of tight parameters; where the ridge leaves the prior, its end."""
        usual = np.abs(np.linspace(-ENDS, ENDS, QUANTILES)) <= FARTHEST
        grid, curves = self.coordinates.grid[usual], self.coordinates.curves[np.array(self.tight, int)][:, usual]
        return jax.vmap(lambda x, curve: jnp.interp(x, curve, grid))(values, curves)


def _determined(information: Float[np.ndarray, "k k"]) -> tuple[Int[np.ndarray, "t"], Int[np.ndarray, "l"]]:
    """Which coordinates are known well if the others are given, found one by one; and the others."""
    left, rest, first = information.copy(), list(range(len(information))), []
    while rest:
        j = max(rest, key=lambda i: left[i, i])
        if left[j, j] < TIGHT:
            break
        left = left - np.outer(left[:, j], left[j]) / left[j, j]
        first.append(j)
        rest.remove(j)
    return np.array(first, int), np.array(rest, int)
