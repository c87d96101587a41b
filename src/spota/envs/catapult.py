"""The illustrative example: a catapult on Mars or on Venus, as a platform of one step and in closed form.

true_optimum()                      # 1.2454…: θ*, the best extension when the planet is unknown
simulation_optimization_bias(30)    # 0.9113…: how much too good the best of 30 drawn planets looks
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import Effects
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Bernoulli

GRAVITY = (3.71, 8.87)  # g_M, g_V [m/s²], tab_params_ill_exmpl
STIFFNESS = (1000.0, 3000.0)  # k_M, k_V [N/m]
PRE_EXTENSION = (0.5, 1.5)  # x_M, x_V [m]
MASS = 1.0  # m [kg]
VENUS = 0.7  # the probability of Venus
MAX_EXTENSION = 2.0  # [m]; every optimum lies between 0.5 and 1.5

NU = DomainDistribution(
    planet=Parameter(Bernoulli(VENUS), "-", "0 is Mars, 1 is Venus", "planet", 1.0, "nonnegative"),
)


class CatapultParams(eqx.Module):
    """ξ of the catapult: the planet alone is drawn, and everything else follows from it."""

    planet: Scalar

    def _of_planet(self, mars: float, venus: float) -> Scalar:
        return jnp.where(jnp.asarray(self.planet) > 0.5, venus, mars)

    @property
    def g(self) -> Scalar:
        """Gravity [m/s²]."""
        return self._of_planet(*GRAVITY)

    @property
    def k(self) -> Scalar:
        """Spring stiffness [N/m]."""
        return self._of_planet(*STIFFNESS)

    @property
    def x(self) -> Scalar:
        """Spring pre-extension [m]."""
        return self._of_planet(*PRE_EXTENSION)


class CatapultState(eqx.Module):
    """Loaded (0) or shot (1)."""

    shot: Scalar


def height(theta: Any, g: Any, k: Any, x: Any) -> Any:
    """h(θ, ξ) of the illustrative example, from the conservation of energy [m]."""
    return k * (theta - x) ** 2 / (2 * MASS * g)


@dataclass(frozen=True, eq=False)
class Catapult(Env):
    """Choose the spring's extension so that the shot stays low, without knowing the planet."""

    domain: DomainDistribution = NU
    effects: Effects = Effects()  # noqa: RUF009, frozen

    name = "catapult"
    dt = 1.0  # one decision; no time passes in the equations
    max_steps = 1
    max_reward = 0.0
    min_reward = -max(
        float(height(theta, *xi))
        for theta in (0.0, MAX_EXTENSION)
        for xi in zip(GRAVITY, STIFFNESS, PRE_EXTENSION, strict=True)
    )
    observations = (Signal("shot", "-", 0.0, 1.0),)
    actions = (Signal("extension", "m", 0.0, MAX_EXTENSION),)

    def params(self, domain: Mapping[str, Any]) -> CatapultParams:
        """ξ: the planet."""
        return CatapultParams(domain["planet"])

    def start(self, key: Key[Array, ""], xi: CatapultParams) -> CatapultState:
        """Loaded."""
        del key, xi
        return CatapultState(jnp.zeros(()))

    def observe(self, state: CatapultState, xi: CatapultParams) -> tuple[Scalar, ...]:
        """Nothing that tells the planet: zero before the shot."""
        del xi
        return (state.shot,)

    def reward(self, state: CatapultState, action: tuple[Scalar, ...], xi: CatapultParams) -> Scalar:
        """−h(θ, ξ): the height is a cost."""
        del state
        return -height(action[0], xi.g, xi.k, xi.x)

    def step(self, state: CatapultState, action: tuple[Scalar, ...], xi: CatapultParams) -> CatapultState:
        """The shot."""
        del action, xi
        return CatapultState(jnp.ones_like(state.shot))


def sample_optimum(n_mars: Any, n_venus: Any) -> Any:
    """θ*_n of eq_ill_exmpl_polparamopt; the counts may be arrays, or shares as in `true_optimum`."""
    (g_M, g_V), (k_M, k_V), (x_M, x_V) = GRAVITY, STIFFNESS, PRE_EXTENSION
    c_M, c_V = n_mars * k_M * g_V, n_venus * k_V * g_M
    return (x_M * c_M + x_V * c_V) / (c_M + c_V)


def mean_return(theta: Any, share_venus: Any) -> Any:
    """The mean return of an extension over domains of which that share is Venus, eq_ill_exmpl_est_eedr."""
    on_mars, on_venus = (-height(theta, *xi) for xi in zip(GRAVITY, STIFFNESS, PRE_EXTENSION, strict=True))
    return (1 - share_venus) * on_mars + share_venus * on_venus


def expected_return(theta: Any) -> Any:
    """J(θ), over the Bernoulli law of the planets."""
    return mean_return(theta, VENUS)


def true_optimum() -> float:
    """θ*, the best extension for the law itself."""
    return sample_optimum(1 - VENUS, VENUS)


def simulation_optimization_bias(n: int) -> float:
    """E[Ĵ_n(θ*_n)] − J(θ*), exactly, by summing over the number of Venus draws (eq_SOB_def)."""
    if n < 1:
        raise ValueError(f"simulation_optimization_bias({n}): draw at least one domain.")
    from scipy import stats  # slow to import

    n_venus = np.arange(n + 1)
    best = mean_return(sample_optimum(n - n_venus, n_venus), n_venus / n)
    return float(stats.binom.pmf(n_venus, n, VENUS) @ best - expected_return(true_optimum()))


def expected_gap(sigma: float) -> float:
    """E[G(θᶜ)] for a candidate θᶜ ~ N(θ*, σ²): J is a parabola, so only its curvature counts."""
    (g_M, g_V), (k_M, k_V) = GRAVITY, STIFFNESS
    curvature = ((1 - VENUS) * k_M / g_M + VENUS * k_V / g_V) / MASS
    return curvature * sigma**2 / 2


def expected_estimated_gap(n: int, sigma: float) -> float:
    """E[Ĝ_n(θᶜ)] for θᶜ ~ N(θ*, σ²) that is independent of the n domains: the gap plus the bias.

    The paper draws θᶜ around θ*_n, which depends on the domains; its identity needs θ*.
    """
    return expected_gap(sigma) + simulation_optimization_bias(n)
