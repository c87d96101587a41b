"""Coordinates v of machines along the ridge on which they explain recordings equally well.

Masses, motor constants and lengths act in products and sums, so that what is known of them is a bent ridge, thin and
long, in which a sampler would go astray. Tight coordinates are those that segments determine once the loose ones are
given. v of the loose ones is a distance in z. Where the tight ones are then is almost straight in logarithms; a few
corrections by the quadratic model of the simulator (`quadratic.py`) lead back to the ridge. v of the tight ones is a
distance from there, in units of what is known in logarithms, so that the ridge is equally wide everywhere in v.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.interpolate
from jaxtyping import Array, Bool, Float

from spota.fit.coordinates import GRID, Scores
from spota.fit.curves import Curves
from spota.fit.estimate import Problem
from spota.fit.quadratic import Straight, features
from spota.sim.marginals import Uniform

TIGHT = 8.0
"""Information, in units of the prior's, from which on a coordinate is determined by the segments."""
CORRECTIONS = 3
"""Steps back to the ridge."""
FARTHEST = 20.0
"""Of a correction, in standard deviations of what is known: the model may lead astray far from the best machine."""
SCORED = 2.5
"""Scores up to which the ridge is followed as it is; beyond, the prior's end is near, and it goes on straight."""
POINTS = 257
"""Of the curve from a parameter back to its score."""


class Ridge(eqx.Module):
    """v → z, around one machine; of its matrices the rows and columns count that belong to tight or loose ones."""

    coordinates: Scores
    straight: Straight
    best: Float[np.ndarray, "p"]
    tight: Bool[np.ndarray, "k"]
    along: Float[np.ndarray, "k k"]
    """How tight parameters follow loose ones, in logarithms of what is positive."""
    off: Float[np.ndarray, "k f"]
    """How far tight parameters are from the ridge, by the features of the quadratic model."""
    near: Float[np.ndarray, "k k"]
    far: Float[np.ndarray, "k k"]
    """Factors of the covariances of tight parameters beside the ridge, in logarithms, and of loose coordinates."""
    scores: Curves
    """From where a parameter is, in logarithms from the best, to its coordinate."""
    stretch: Curves
    """The logarithm of their slopes."""

    @staticmethod
    def of(
        problem: Problem,
        z: Float[np.ndarray, "p"],
        straight: Straight,
        root: Float[np.ndarray, "r f"],
        information: Float[np.ndarray, "k k"],
        tight: Bool[np.ndarray, "k"],
    ) -> "Ridge":
        """Around the best machine, with the information about the coordinates that are free."""
        assert isinstance(problem.coordinates, Scores)
        slope, H = straight.slope[list(straight.free)], information + np.eye(tight.size)
        inside = _embedded(np.linalg.inv(H[np.ix_(tight, tight)]), tight, tight)
        follows = -_embedded(_solved(information, tight), tight, ~tight)
        beside = H - H @ inside @ H
        far = np.linalg.cholesky(np.linalg.inv(beside[np.ix_(~tight, ~tight)]))
        near = np.linalg.cholesky(np.linalg.inv(H[np.ix_(tight, tight)]))
        jacobian = (root[:, 1 : 1 + tight.size] @ straight.inverse)[:, tight]
        back = np.linalg.solve(jacobian.T @ jacobian, jacobian.T @ root)
        back[:, 0] = 0.0  # the best machine is on the ridge
        return Ridge(
            problem.coordinates, straight, z, tight, slope[:, None] * follows / slope, _rows(back, tight),
            slope[:, None] * _embedded(near, tight, tight), _embedded(far, ~tight, ~tight),
            *_back(problem.coordinates, straight, z),
        )  # fmt: skip

    @property
    def volume(self) -> float:
        """The logarithm of what a unit of v takes of z, but for the stretch."""
        widths = np.diag(self.near)[self.tight], np.diag(self.far)[~self.tight]
        return float(sum(np.log(np.abs(x)).sum() for x in widths))

    def z_of(self, v: Float[Array, "k"]) -> tuple[Float[Array, "p"], Float[Array, ""]]:
        """All coordinates, and the logarithm of the stretch there."""
        free = np.array(self.straight.free)
        best, far, along, off, near = (
            jnp.asarray(x, jnp.float32) for x in (self.best, self.far, self.along, self.off, self.near)
        )
        loose = best.at[free].add(far @ v)
        moved = self.straight.moved(self.coordinates.values(loose))
        x, limit = moved + along @ moved, FARTHEST * jnp.sqrt((near**2).sum(axis=1)) + 1e-12
        for _ in range(CORRECTIONS):
            x = x - limit * jnp.tanh(off @ features(jnp.asarray(self.straight.inverse, jnp.float32) @ x) / limit)
        stretch = jnp.where(self.tight, self.stretch.at(x), 0.0)
        beside = self.scores.at(x) + jnp.exp(stretch) * (near @ v)
        return best.at[free].set(jnp.where(self.tight, beside, loose[free])), stretch.sum()

    def values(self, v: Float[np.ndarray, "k m"]) -> Float[np.ndarray, "p m"]:
        """The parameters of machines."""
        return np.asarray(_values(self, jnp.asarray(v, jnp.float32)), np.float64)


@eqx.filter_jit
def _values(ridge: Ridge, v: Float[Array, "k m"]) -> Float[Array, "p m"]:
    return jax.vmap(lambda one: ridge.coordinates.values(ridge.z_of(one)[0]), -1, -1)(v)


def determined(problem: Problem, information: Float[np.ndarray, "k k"]) -> Bool[np.ndarray, "k"]:
    """Which free coordinates are known well if the others are given, found one by one.

    Those of laws that end abruptly come last: a loose one meets its end gently, because its score has none, and a tight
    one would be a wall for all that it follows.
    """
    names = [name for name, free in zip(problem.coordinates.names, problem.free, strict=True) if free]
    hard = np.array([isinstance(problem.env.domain[name].marginal, Uniform) for name in names])
    left, tight = information.copy(), np.zeros(len(names), bool)
    for group in (~hard, hard):
        while (group & ~tight).any():
            j = int(np.argmax(np.where(group & ~tight, np.diag(left), -np.inf)))
            if left[j, j] < TIGHT:
                break
            left = left - np.outer(left[:, j], left[j]) / left[j, j]
            tight[j] = True
    return tight


def _solved(information: np.ndarray, tight: np.ndarray) -> np.ndarray:
    return np.linalg.solve(information[np.ix_(tight, tight)], information[np.ix_(tight, ~tight)])


def _embedded(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    whole = np.zeros((rows.size, columns.size))
    whole[np.ix_(rows, columns)] = matrix
    return whole


def _rows(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    whole = np.zeros((rows.size, matrix.shape[1]))
    whole[rows] = matrix
    return whole


def _back(coordinates: Scores, straight: Straight, z: Float[np.ndarray, "p"]) -> tuple[Curves, Curves]:
    """From free parameters to their scores, and the logarithms of the slopes."""
    grids, scores, slopes = [], [], []
    fine = np.linspace(GRID[0], GRID[-1], 40 * GRID.size)
    for j in straight.free:
        values = scipy.interpolate.PchipInterpolator(GRID, coordinates.curves.values[j])(fine)
        x = np.log(values / straight.best[j]) if straight.logarithmic[j] else values - straight.best[j]
        ends = np.interp([min(-SCORED, z[j] - 0.3), max(SCORED, z[j] + 0.3)], fine, x)
        grids.append(np.linspace(ends[0], ends[1], POINTS))
        scores.append(np.interp(grids[-1], x, fine))
        slopes.append(np.log(np.gradient(scores[-1], grids[-1])))
    grid = np.stack(grids)
    return Curves.through(grid, np.stack(scores)), Curves.through(grid, np.stack(slopes), level=True)
