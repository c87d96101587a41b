"""UCBOG and the number of domains over the iterations, across runs that differ in their seed (fig_UCBOG_decrease).

A run ends when it is certified, so runs have different lengths. A mean is over the runs that reached the iteration.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from spota import plan
from spota.algorithm import Result
from spota.certificate import Certificate
from spota.certifying import figures
from spota.plan import Plan

PLATFORMS = ("ball-balancer", "cart-pole")
RUNS = 5
"""Runs on each platform."""
QUICK_PLATFORMS = ("cart-pole",)
QUICK_RUNS = 2


def plans(seed: int = 0, quick: bool = False, runs: int | None = None) -> list[Plan]:
    """All runs of the experiment: the paper's settings, or the quick preset; seeds count up from the first."""
    many = (QUICK_RUNS if quick else RUNS) if runs is None else runs
    if many < 1:
        raise ValueError(f"--runs {many}: at least 1 run is needed; leave it out for {RUNS} on each platform.")
    preset = "quick" if quick else "paper"
    return [
        plan.resolve(None, {"env": env, "preset": preset, "seed": seed + i})
        for env in (QUICK_PLATFORMS if quick else PLATFORMS)
        for i in range(many)
    ]


@dataclass(frozen=True)
class Iteration:
    """One iteration across the runs that reached it."""

    iteration: int
    n_c: int
    n_r: int
    runs: int
    """Runs that reached it."""
    bounded: int
    """Those of them whose comparison gave a bound; mean and deviation are over these."""
    mean: float
    """Mean UCBOG; NaN without any bound."""
    std: float
    """Standard deviation of UCBOG across runs."""
    negative_share: float
    """Mean share of negative gaps."""


@dataclass(frozen=True)
class Convergence:
    """What several runs on one platform found."""

    plans: tuple[Plan, ...]
    results: tuple[Result, ...]

    @property
    def env(self) -> str:
        """The platform."""
        return self.plans[0].env

    @property
    def threshold(self) -> float:
        """The bound that ends a run."""
        return self.plans[0].spota.beta

    @property
    def length(self) -> int:
        """Iterations of the longest run."""
        return max(len(result.history) for result in self.results)

    @property
    def ucbog(self) -> Float[np.ndarray, "runs iterations"]:
        """NaN where a run had ended before, or had no bound."""
        found = np.full((len(self.results), self.length), np.nan)
        for row, result in zip(found, self.results, strict=True):
            row[: len(result.history)] = [c.ucbog for c in result.history]
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def iterations(self) -> list[Iteration]:
        """One line an iteration, for tables and curves."""
        return [self._iteration(i) for i in range(self.length)]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: every run, and the curves across them."""
        return {
            "env": self.env,
            "preset": self.plans[0].preset,
            "threshold": self.threshold,
            "runs": [_described(p, result) for p, result in zip(self.plans, self.results, strict=True)],
            "iterations": [vars(line) for line in self.iterations],
        }

    def __str__(self) -> str:
        """How the runs ended, and what the means are over."""
        certified = [len(result.history) for result in self.results if result.reason == "certified"]
        total = len(self.results)
        told = f"{self.env}: {len(certified)} of {total} run{'s' if total > 1 else ''} reached the threshold"
        told += f", in iteration {_range(certified)}." if certified else "."
        if len({len(result.history) for result in self.results}) > 1:
            told += " Means are over the runs that were still going: later ones are about the harder runs."
        return told

    def _iteration(self, i: int) -> Iteration:
        reached = [result.history[i] for result in self.results if len(result.history) > i]
        bounds = np.array([c.ucbog for c in reached if np.isfinite(c.ucbog)])
        mean, std = (float(bounds.mean()), float(bounds.std())) if bounds.size else (np.nan, np.nan)
        negative = float(np.mean([c.negative_share for c in reached]))
        return Iteration(i + 1, *_domains(reached[0]), len(reached), bounds.size, mean, std, negative)


def _domains(c: Certificate) -> tuple[int, int]:
    return c.n_c or 0, c.n_r


def _described(p: Plan, result: Result) -> dict[str, Any]:
    return {
        "seed": p.seed,
        "reason": result.reason,
        "seconds": result.seconds,
        "history": [figures(c) for c in result.history],
    }


def _range(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"
