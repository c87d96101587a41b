"""Problems that are parabolas in one policy parameter, so that the optimum of any sample is known: catapult and lq."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.envs import catapult
from spota.polopt import exact
from spota.stats.gap import reject_outliers


@dataclass(frozen=True)
class Parabolas:
    """J(θ, ξ) = top − c/2 (θ − x)² with random c and x: the optimum of any sample is a weighted mean."""

    draw: Callable[[np.random.Generator, tuple[int, ...]], tuple[np.ndarray, np.ndarray, np.ndarray]]
    """c, x and top of random domains."""
    curvature: float
    """E[c]."""
    optimum: float
    """θ*."""
    low: float
    """Below every return of the optimum of any domains."""

    def gaps(
        self, rng: np.random.Generator, shape: tuple[int, int, int], theta: float
    ) -> tuple[Float[Array, "sets n_G n_r"], Float[Array, "sets n_G n_r"], Float[np.ndarray, "sets n_G n_r"]]:
        """Gaps of θ against exact references, before and after outlier rejection, and the returns of θ."""
        parts = [self._some_gaps(rng, (size, *shape[1:]), theta) for size in _sizes(shape[0], 250)]
        raw, final, returns = zip(*parts, strict=True)
        return jnp.concatenate(raw), jnp.concatenate(final), np.concatenate(returns)

    def bias(self, n: int, draws: int = 200_000) -> float:
        """E[Ĵ_n(θ*_n)] − J(θ*) = E[c̄_n/2 (θ*_n − θ*)²], eq_SOB_def, by drawing (to about half a percent)."""
        c, x, _ = self.draw(np.random.default_rng(0), (draws, n))
        return float((c.mean(axis=1) / 2 * (best(c, x) - self.optimum) ** 2).mean())

    def _some_gaps(self, rng: np.random.Generator, shape: tuple[int, int, int], theta: float):
        c, x, top = self.draw(rng, shape)
        loss = c * (theta - x) ** 2 / 2
        # cross[s, k', k, i]: reference k' on domain i of reference k
        cross = loss[:, None] - c[:, None] * (best(c, x)[:, :, None, None] - x[:, None]) ** 2 / 2
        raw = np.einsum("skki->ski", cross)
        raw, cross = jnp.asarray(raw, jnp.float32), jnp.asarray(cross, jnp.float32)
        return raw, _rejected(raw, cross), top - loss


def best(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """θ*_n for the domains of the last axis."""
    return np.asarray((c * x).sum(axis=-1) / c.sum(axis=-1))


def _planets(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    venus = (rng.random(shape) < catapult.VENUS).astype(int)
    c = np.array(catapult.STIFFNESS) / (catapult.MASS * np.array(catapult.GRAVITY))
    return c[venus], np.array(catapult.PRE_EXTENSION)[venus], np.zeros(shape)


def _regulators(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lq = exact.LinearQuadratic()
    a, b = lq.draw(rng, shape)
    c, x = lq.parabola(a, b)
    return c, x, lq.returns(x, a, b)


PARABOLAS = {
    "catapult": Parabolas(
        _planets, 2 * catapult.expected_gap(1.0), catapult.true_optimum(), catapult.Catapult().min_return
    ),
    "lq": Parabolas(
        _regulators, exact.LinearQuadratic().curvature, exact.LinearQuadratic().optimum, -108.0
    ),  # the best θ of a domain is at most 2.31, and costs at most 107.2 elsewhere
}


_rejected = jax.jit(jax.vmap(lambda raw, cross: reject_outliers(raw, cross, "first").final))


def _sizes(total: int, most: int) -> Iterator[int]:
    for first in range(0, total, most):
        yield min(most, total - first)
