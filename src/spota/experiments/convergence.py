"""UCBOG and the number of domains over the iterations, across runs that differ in their seed (fig_UCBOG_decrease).

SPOTA would end at the first bound below the threshold. Here no run does: else a mean over a later iteration would be
about the harder runs only, and not comparable with the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from spota.certify.algorithm import Result
from spota.envs import make
from spota.runs import plan
from spota.runs.certifying import figures
from spota.runs.plan import Plan
from spota.text import percent

PLATFORMS = ("ball-balancer", "cart-pole")
RUNS = 5
"""Runs on each platform."""
ITERATIONS = 4
"""Iterations of each run; with `quick` those of its preset."""
UNREACHED = 1e-9
"""A threshold that only a bound of 0 meets."""
LARGEST = 0.02
"""The share of all gaps that counts as the largest."""
QUICK_PLATFORMS = ("cart-pole",)
QUICK_RUNS = 2


def plans(seed: int = 0, quick: bool = False, runs: int | None = None) -> list[Plan]:
    """All runs of the experiment: the paper's settings, or the quick preset; seeds count up from the first.

    The platforms take turns, so that what is there after an interruption is complete for fewer runs.
    """
    many = (QUICK_RUNS if quick else RUNS) if runs is None else runs
    if many < 1:
        raise ValueError(f"--runs {many}: at least 1 run is needed; leave it out for {RUNS} on each platform.")
    preset = "quick" if quick else "paper"
    loop = {"beta": UNREACHED} | ({} if quick else {"max_iterations": ITERATIONS})
    return [
        plan.resolve(None, {"env": env, "preset": preset, "seed": seed + i}, [("convergence", {"spota": loop})])
        for i in range(many)
        for env in (QUICK_PLATFORMS if quick else PLATFORMS)
    ]


@dataclass(frozen=True)
class Iteration:
    """One iteration across the runs."""

    iteration: int
    n_c: int
    n_r: int
    bounded: int
    """Runs whose comparison gave a bound; mean and deviation are over these."""
    mean: float
    """Mean UCBOG; NaN without any bound."""
    std: float
    """Standard deviation of UCBOG across runs."""
    median_gap: float
    """Mean over the runs of the median gap: what a domain costs that is not among the rare and bad ones."""
    earned: float
    """Mean return of the candidates on unseen domains; NaN if it was not measured."""
    certified: int
    """Runs whose bound is at most the threshold."""
    negative_share: float
    """Mean share of negative gaps."""


@dataclass(frozen=True)
class Convergence:
    """What several runs on one platform found."""

    plans: tuple[Plan, ...]
    results: tuple[Result, ...]
    gaps: tuple[Sequence[np.ndarray], ...]
    """The gaps of each iteration of each run."""

    @property
    def env(self) -> str:
        """The platform."""
        return self.plans[0].env

    @property
    def threshold(self) -> float:
        """The bound at which SPOTA would end."""
        return plan.preset_settings(self.plans[0].preset, make(self.env)).beta

    @property
    def ucbog(self) -> Float[np.ndarray, "runs iterations"]:
        """NaN where a run had no bound, or had ended with a bound of 0."""
        found = _rows([[c.ucbog for c in result.history] for result in self.results])
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def median_gaps(self) -> Float[np.ndarray, "runs iterations"]:
        """NaN where a run had ended with a bound of 0."""
        return _rows([[float(np.median(gaps)) for gaps in run] for run in self.gaps])

    @property
    def largest_share(self) -> float:
        """How much of the total gap, over all runs and iterations, the largest gaps carry."""
        falling = np.sort(np.concatenate([gaps.ravel() for run in self.gaps for gaps in run]))[::-1]
        return float(falling[: max(1, round(LARGEST * falling.size))].sum() / falling.sum()) if falling.any() else 0.0

    @property
    def iterations(self) -> list[Iteration]:
        """One line per iteration, for tables and curves."""
        return [self._iteration(i) for i in range(self.ucbog.shape[1])]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: every run, and the curves across them."""
        return {
            "env": self.env,
            "preset": self.plans[0].preset,
            "threshold": self.threshold,
            "runs": [_described(*one) for one in zip(self.plans, self.results, self.median_gaps, strict=True)],
            "iterations": [vars(line) for line in self.iterations],
            "largest_share": self.largest_share,
        }

    def __str__(self) -> str:
        """Where the runs would have ended, how often a bound rose, and how few domains decide."""
        ends = [int(below.argmax()) + 1 for below in self.ucbog <= self.threshold if below.any()]
        total = len(self.results)
        text = f"{self.env}: SPOTA would have ended {len(ends)} of {total} run{'s' if total > 1 else ''}"
        text += f", in iteration {_range(ends)}." if ends else "."
        steps = np.diff(self.ucbog)
        rose, known = np.sum(steps > 0), np.sum(np.isfinite(steps))
        text += f" From one iteration to the next the bound rose {rose} of {known} times."
        return f"{text} The largest {percent(LARGEST)} of all gaps carry {percent(self.largest_share)} of the total."

    def _iteration(self, i: int) -> Iteration:
        certificates = [result.history[i] for result in self.results if len(result.history) > i]
        bounds = np.array([c.ucbog for c in certificates if np.isfinite(c.ucbog)])
        mean, std = (float(bounds.mean()), float(bounds.std())) if bounds.size else (np.nan, np.nan)
        first = certificates[0]
        return Iteration(
            iteration=i + 1,
            n_c=first.n_c or 0,
            n_r=first.n_r,
            bounded=bounds.size,
            mean=mean,
            std=std,
            median_gap=float(np.nanmean(self.median_gaps[:, i])),
            earned=float(np.mean([np.nan if c.performance is None else c.performance.mean for c in certificates])),
            certified=int(np.sum(bounds <= self.threshold)),
            negative_share=float(np.mean([c.negative_share for c in certificates])),
        )


def _rows(runs: Sequence[Sequence[float]]) -> Float[np.ndarray, "runs iterations"]:
    """One row per run, NaN after its end."""
    found = np.full((len(runs), max(map(len, runs))), np.nan)
    for row, values in zip(found, runs, strict=True):
        row[: len(values)] = values
    return found


def _described(p: Plan, result: Result, medians: Float[np.ndarray, "iterations"]) -> dict[str, Any]:
    history = [{**figures(c), "median_gap": float(gap)} for c, gap in zip(result.history, medians, strict=False)]
    return {"seed": p.seed, "seconds": result.seconds, "history": history}


def _range(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"
