"""The illustrative example on the catapult: the simulation optimization bias, and SPOTA with a closed form."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from spota.certify.algorithm import Result, spota
from spota.certify.events import Listener
from spota.certify.settings import Spota
from spota.envs import catapult, make
from spota.polopt import exact

SIGMA = 0.15  # how far the candidate is off, tab_params_ill_exmpl
STATED = (1, 5, 10, 30, 100)  # sample sizes whose exact bias is stated


@dataclass(frozen=True)
class Example:
    """The illustrative example over n = 1 … N domains: one row per seed, next to the exact values."""

    n: np.ndarray
    best: Float[np.ndarray, "seeds N"]
    """Ĵ_n(θ*_n)."""
    candidate: Float[np.ndarray, "seeds N"]
    """Ĵ_n(θᶜ)."""
    optimum: Float[np.ndarray, "seeds N"]
    """Ĵ_n(θ*)."""
    gap: Float[np.ndarray, "seeds"]
    """G(θᶜ), which does not depend on n."""
    exact_bias: Float[np.ndarray, "N"]
    sigma: float

    @property
    def estimated_gap(self) -> Float[np.ndarray, "seeds N"]:
        """Ĝ_n(θᶜ), eq_optgap_approx."""
        return self.best - self.candidate

    @property
    def bias(self) -> Float[np.ndarray, "seeds N"]:
        """What Ĝ_n has too much; its mean estimates the simulation optimization bias, eq_SOB_def."""
        return self.estimated_gap - self.gap[:, None]

    def to_dict(self) -> dict[str, Any]:
        """Exact values, and means over the seeds with their standard errors."""
        thirty = int(np.searchsorted(self.n, 30))
        return {
            "seeds": self.gap.size,
            "sigma": self.sigma,
            "true_optimum": catapult.true_optimum(),
            "true_optimum_return": float(catapult.expected_return(catapult.true_optimum())),
            "exact_bias": {str(n): catapult.simulation_optimization_bias(n) for n in STATED},
            "gap": {"exact": catapult.expected_gap(self.sigma), **_mean(self.gap)},
            "estimated_gap_30": {
                "exact": catapult.expected_estimated_gap(30, self.sigma),
                **_mean(self.estimated_gap[:, thirty]),
            },
            "bias_30": {"exact": catapult.simulation_optimization_bias(30), **_mean(self.bias[:, thirty])},
        }


def illustrative_example(seed: int = 0, seeds: int = 100, largest: int = 100, sigma: float = SIGMA) -> Example:
    """Draw planets and candidates θᶜ ~ N(θ*, σ²), independent of them, and follow them over n."""
    if seeds < 2 or largest < 30:
        raise ValueError(f"seeds={seeds}, largest={largest}: the example needs 2 seeds and 30 domains at least.")
    k_domains, k_candidate = jax.random.split(jax.random.key(seed))
    drawn = make("catapult").domain.sample(k_domains, seeds * largest)["planet"]
    venus = np.asarray(drawn, np.float64).reshape(seeds, largest).cumsum(axis=1)
    n = np.arange(1, largest + 1)
    optimum = catapult.true_optimum()
    theta = optimum + sigma * np.asarray(jax.random.normal(k_candidate, (seeds, 1)), np.float64)
    best, candidate, true = (
        catapult.mean_return(t, venus / n) for t in (catapult.sample_optimum(n - venus, venus), theta, optimum)
    )
    gap = (catapult.expected_return(optimum) - catapult.expected_return(theta))[:, 0]
    bias = np.array([catapult.simulation_optimization_bias(int(i)) for i in n])
    return Example(n, best, candidate, true, gap, bias, sigma)


def spota_on_the_catapult(seed: int = 0, settings: Spota | None = None, listener: Listener | None = None) -> Result:
    """SPOTA itself on the example, with the closed form as its solver: references are exact."""
    settings = settings or Spota(beta=10.0, n_J=1, growth="doubling", max_iterations=8)
    return spota(jax.random.key(seed), make("catapult"), exact.catapult, settings, listener=listener)


def _mean(values: np.ndarray) -> dict[str, float]:
    return {"mean": float(values.mean()), "standard_error": float(values.std(ddof=1) / math.sqrt(values.size))}
