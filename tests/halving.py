"""A solver of the catapult that is as weak as one likes: every iteration halves the distance to the optimum."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from spota.certify.comparison import _scores
from spota.envs import catapult
from spota.polopt import exact
from spota.polopt.solve import Progress, Solution
from spota.polopt.solver import solves_all


@solves_all
@dataclass(frozen=True)
class Halving:
    """After k iterations θ is θ* + (θ₀ − θ*) / 2ᵏ, so that everything about it has a closed form."""

    iterations: int = 2

    def theta(self, start: np.ndarray, planet: np.ndarray) -> np.ndarray:
        venus, n = planet.sum(axis=-1), planet.shape[-1]
        best = catapult.sample_optimum(n - venus, venus)
        return best + (start - best) / 2**self.iterations

    def earned(self, start: np.ndarray, planet: np.ndarray) -> np.ndarray:
        """Mean return on its own planets."""
        return catapult.mean_return(self.theta(start, planet)[..., None], planet).mean(axis=-1)

    def __call__(self, keys: Any, env: Any, domains: Any, inits: Any, watch: Any = None) -> Solution:
        del env
        planet, start, P = np.asarray(domains["planet"], np.float64), exact.extension(inits), keys.shape[0]
        policy, score = exact.extending(self.theta(start, planet), inits), _scores(jnp.zeros(P), jnp.ones(P))
        if watch is not None:
            watch(Progress(1, 1, np.zeros(P), np.zeros(P), np.zeros(P), policy, 1, {}))
        curve = jnp.zeros((P, 1))
        return Solution(policy, score, score, curve, curve, jnp.zeros(1), jnp.zeros(P, bool))
