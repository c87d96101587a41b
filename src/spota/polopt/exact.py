"""Problems whose optimum is known: the catapult's closed form as a solver, and a linear-quadratic regulator.

Both returns are parabolas in one policy parameter, J(θ, ξ) = top(ξ) − c(ξ)/2 (θ − x(ξ))². The best parameter for n
domains is the mean of their x, weighted by c; and the expected return is the parabola with the mean curvature about
θ* = E[c x] / E[c], so that the optimality gap of any θ is known.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.envs.catapult import MAX_EXTENSION, Catapult, mean_return, sample_optimum
from spota.policies import Network
from spota.policies.network import FNN
from spota.polopt.optimizer import Solution, Watch
from spota.polopt.rows import Score
from spota.polopt.solver import optimal, solves_all
from spota.sim.env import Env


@optimal
@solves_all
def catapult(
    keys: Key[Array, "P"],
    env: Env,
    domains: dict[str, Float[Array, "P n"]],
    inits: Network,
    watch: Watch | None = None,
) -> Solution:
    """The best extension for each set of planets, eq_ill_exmpl_polparamopt; a `Solver` without any search."""
    del keys, watch
    if not isinstance(env, Catapult):
        raise ValueError(f"The closed form is the catapult's; {env.name} needs an optimizer, e.g. Analytic().")
    if not isinstance(inits, FNN):
        raise ValueError("An episode of the catapult has one step, of which there is nothing to remember.")
    planets = np.asarray(domains["planet"], np.float64)
    venus, n = planets.sum(-1), planets.shape[-1]
    theta = sample_optimum(n - venus, venus)
    start, best = (_score(t, venus / n) for t in (extension(inits), theta))
    still = jnp.ones((theta.size, 2))
    curve = jnp.stack([start.returns, best.returns], axis=-1)
    return Solution(
        extending(theta, inits), best, start, curve, still, jnp.arange(2.0), jnp.zeros(theta.size, bool)
    )  # fmt: skip


def extending(theta: np.ndarray | float, like: FNN) -> FNN:
    """The network that always extends by θ: its last layer is a bias alone."""
    weights, bias = like.weights[-1], np.arctanh(2 * np.asarray(theta) / MAX_EXTENSION - 1)
    last = jnp.zeros_like(weights), jnp.broadcast_to(jnp.asarray(bias, jnp.float32)[..., None], like.biases[-1].shape)
    return eqx.tree_at(lambda p: (p.weights[-1], p.biases[-1]), like, last)


def extension(policy: FNN) -> np.ndarray:
    """θ of one network, or of several stacked ones."""
    before_the_shot, act = jnp.zeros(1), FNN.__call__
    stacked = policy.biases[-1].ndim > 1
    action = jax.vmap(lambda p: act(p, before_the_shot))(policy) if stacked else act(policy, before_the_shot)
    return np.asarray((np.asarray(action, np.float64)[..., 0] + 1) * MAX_EXTENSION / 2)


def _score(theta: np.ndarray, share_venus: np.ndarray) -> Score:
    returns = jnp.asarray(mean_return(theta, share_venus), jnp.float32)
    return jax.vmap(Score)(returns, jnp.ones_like(returns))


@dataclass(frozen=True)
class LinearQuadratic:
    """Regulate s' = a s + b u in one step with u = −θ s: J(θ; a, b) = −q (a − b θ)² − r θ², for s = 1.

    a and b are uniform and independent, so that E[c] and E[c x] are polynomials of their bounds.
    """

    a: tuple[float, float] = (0.5, 1.5)
    b: tuple[float, float] = (0.4, 1.6)
    q: float = 10.0
    r: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Domains (a, b)."""
        return rng.uniform(*self.a, shape), rng.uniform(*self.b, shape)

    def returns(self, theta: Any, a: Any, b: Any) -> Any:
        """J(θ; a, b)."""
        return -self.q * (a - b * theta) ** 2 - self.r * theta**2

    def parabola(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Curvature c and best parameter x on each domain."""
        c = 2 * (self.q * b**2 + self.r)
        return c, 2 * self.q * a * b / c

    @property
    def curvature(self) -> float:
        """E[c]."""
        low, high = self.b
        return 2 * (self.q * (low**2 + low * high + high**2) / 3 + self.r)

    @property
    def optimum(self) -> float:
        """θ* = E[c x] / E[c]."""
        return 2 * self.q * (sum(self.a) / 2) * (sum(self.b) / 2) / self.curvature
