"""Policies over one domain parameter: the paper's four panels (fig_QBB_QCP_sim_eval_dp_range)."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spota.analysis import evaluate
from spota.analysis.evaluate import Policies, Sweep, Tell
from spota.envs import make
from spota.runs import plan, training
from spota.runs.plan import Plan
from spota.runs.training import Training

KEPT = 0.9
"""The share of its return at the nominal value that a policy is asked to keep."""
NAMES = {"ppo": "nominal PPO", "epopt": "EPOpt", "spota": "SPOTA"}
"""The algorithms as people call them."""


@dataclass(frozen=True)
class Panel:
    """A parameter and the range that it is swept over; the paper prints no ranges."""

    env: str
    parameter: str
    low: float
    high: float


PANELS = (
    Panel("ball-balancer", "ball_mass", 0.001, 0.021),
    Panel("ball-balancer", "ball_friction", 0.0, 0.1),
    Panel("cart-pole", "action_delay", 0.0, 20.0),
    Panel("cart-pole", "pinion_radius", 0.00254, 0.01016),
)
"""All but the last reach beyond the distribution; with 21 or 11 points the nominal value is one of them."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    points: int = 21
    rollouts: int = evaluate.ROLLOUTS


QUICK = Size(points=11, rollouts=60)
OPTIMIZERS = {"ppo": {"iterations": 200}, "epopt": {"iterations": 200, "warm_up": 100}}
"""More than the usual 60, after which nominal PPO is not yet the best on its own domain."""
QUICK_OPTIMIZERS = {"ppo": {"iterations": 30}, "epopt": {"iterations": 40, "warm_up": 30}}


def trainings(seed: int = 0, quick: bool = False) -> dict[str, Plan | Training]:
    """What is to be trained, by the names of the run directories: each algorithm on each platform."""
    return {directory_name(env, algo): _training(env, algo, seed, quick) for env in platforms(PANELS) for algo in NAMES}


def directory_name(env: str, algo: str) -> str:
    """Where the policy of an algorithm for a platform lives."""
    return f"{env}-{algo}"


def platforms(panels: tuple[Panel, ...]) -> list[str]:
    """The platforms of the panels, each once."""
    return list(dict.fromkeys(panel.env for panel in panels))


def existing(directory: Path, names: list[str]) -> dict[str, Path]:
    """The policies that a directory has already, by name; runs that did not end are refused."""
    found = {name: directory / name for name in names if (directory / name / "policy.npz").is_file()}
    if not found:
        raise ValueError(f"--policies {directory} has no policy.npz in any of {', '.join(names)}.")
    for path in found.values():
        if (path / "config.toml").exists() and not (path / "result.json").exists():
            again = f"spota train --resume {shlex.quote(str(path))}"
            raise ValueError(f"{path} is a run that has not ended; go on with it: {again}")
    return found


def measure(seed: int, panel: Panel, policies: Policies, size: Size, tell: Tell | None = None) -> Sweep:
    """One panel: the other parameters nominal, without observation noise, the same start states everywhere."""
    env = make(panel.env, noise=False)
    values = evaluate.span(env, panel.parameter, size.points, panel.low, panel.high)
    key = evaluate.evaluation_key(seed)
    return evaluate.sweep(key, env, policies, {panel.parameter: values}, rollouts=size.rollouts, tell=tell)


@dataclass(frozen=True)
class Kept:
    """Where a policy keeps its return."""

    policy: str
    nominal: float
    """Mean return at the swept value next to the nominal one."""
    lowest: float
    """Lowest mean return of the sweep."""
    low: float
    """From here …"""
    high: float
    """… to here, without a break, the mean return is at least `KEPT` of that at the nominal value."""
    ends: tuple[float, float]
    """The ends of the sweep."""
    unit: str

    def __str__(self) -> str:
        """The range in words."""
        if (self.low, self.high) == self.ends:
            return f"everywhere, {_range(*self.ends)}{self._unit}"
        if self.low == self.high:
            return f"nowhere but at {self.low:.4g}{self._unit}"
        return f"from {_range(self.low, self.high)}{self._unit}"

    @property
    def _unit(self) -> str:
        return "" if self.unit == "-" else f" {self.unit}"


def kept(result: Sweep) -> list[Kept]:
    """For each policy, how far it can go from the nominal value."""
    axis = result.axes[0]
    at = int(np.abs(axis.values - axis.nominal).argmin())
    ends = (float(axis.values[0]), float(axis.values[-1]))
    found = []
    for name, mean in zip(result.policies, result.mean, strict=True):
        lost = np.flatnonzero(mean < KEPT * mean[at])
        first = max((i + 1 for i in lost if i < at), default=0)
        last = min((i - 1 for i in lost if i > at), default=mean.size - 1)
        low, high = (float(axis.values[i]) for i in (first, last))
        found.append(Kept(name, float(mean[at]), float(mean.min()), low, high, ends, axis.unit))
    return found


def describe(result: Sweep) -> dict[str, Any]:
    """A panel for JSON: every point, and where each policy keeps its return."""
    summary = {k.policy: {**vars(k), "words": str(k)} for k in kept(result)}
    return {**result.to_dict(), "kept_share": KEPT, "kept": summary}


def _training(env: str, algo: str, seed: int, quick: bool) -> Plan | Training:
    if algo == "spota":
        return plan.resolve(None, {"env": env, "preset": "quick" if quick else "tuned", "seed": seed})
    optimizer = (QUICK_OPTIMIZERS if quick else OPTIMIZERS)[algo]
    return training.resolve(
        None, {"env": env, "algo": algo, "nominal": algo == "ppo", "seed": seed, "optimizer": optimizer}
    )


def _range(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}"
