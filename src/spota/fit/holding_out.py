"""Recordings that were not fitted: what a fit predicts of them, and which assumption about errors serves them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float

from spota.fit.coordinates import Plain, Scores
from spota.fit.estimate import Estimate, Problem
from spota.fit.noise import Noise, beginnings
from spota.fit.posterior import Sampled
from spota.fit.prediction import jacobians, predicted
from spota.fit.recording import measured
from spota.fit.segments import SECONDS, Segments
from spota.sim.env import Env

ROWS = 60
"""Machines of the fit that predict."""
COVERED = 0.9
"""The share of samples that the predicted bands should hold."""
TOO_FEW = 0.75
"""Below this share of samples in the bands the fit is surer than it should be."""


@dataclass(frozen=True)
class HeldOut:
    """How well the fit predicts half a second of what it has not seen, from the measured beginning."""

    signals: tuple[tuple[str, str], ...]
    """Names and units."""
    segments: int
    error: tuple[float, ...]
    """Root mean square of the mean prediction's error, by signal."""
    nominal_error: tuple[float, ...]
    """The same with the platform's nominal values."""
    coverage: tuple[float, ...]
    """The share of samples inside of the 90 % bands."""

    @property
    def warnings(self) -> list[str]:
        """Where the bands are too narrow."""
        return [
            f"Of {name}, {100 * share:.0f} % of the held-out samples lie in bands that should hold 90 %: the machine "
            "does something that no row of the table does."
            for (name, _), share in zip(self.signals, self.coverage, strict=True)
            if share < TOO_FEW
        ]

    def to_dict(self) -> dict[str, Any]:
        """By signal."""
        columns = zip(self.signals, self.error, self.nominal_error, self.coverage, strict=True)
        return {
            "segments": self.segments,
            "signals": [
                {"name": name, "unit": unit, "error": e, "nominal_error": n, "coverage_90": c}
                for (name, unit), e, n, c in columns
            ],
        }


def check(before: Env, coordinates: Any, sampled: Sampled, noise: Noise, left: Segments) -> HeldOut:
    """Predict the held-out segments with rows of the fit."""
    assert isinstance(coordinates, Scores)
    rows = np.linspace(0, sampled.z.shape[0] - 1, ROWS).round().astype(int)
    n = left.n
    lanes = np.repeat(sampled.z[rows].T, n, axis=1)
    everything = left.chosen(np.tile(np.arange(n), ROWS))
    off = predicted(before, coordinates, lanes, everything.start, everything)
    off = off.reshape(*off.shape[:2], ROWS, n)
    error = np.sqrt((off.mean(axis=2) ** 2).mean(axis=(0, 2)))
    generator = np.random.default_rng(0)
    scale = sampled.scale[rows]
    spoiled = off + np.stack([noise.draw(generator, off[:, :, 0].shape) * s for s in scale], axis=2)
    low, high = np.quantile(spoiled, [0.05, 0.95], axis=2)
    inside = ((low <= 0) & (high >= 0)).mean(axis=(0, 2))
    system, values = nominal(before)
    plainly = predicted(before, system, np.repeat(values[:, None], n, axis=1), left.start, left)
    names = tuple((s.name, s.unit) for s in measured(before))
    return HeldOut(names, n, _tuple(error), _tuple(np.sqrt((plainly**2).mean(axis=(0, 2)))), _tuple(inside))


def nominal(before: Env) -> tuple[Plain, Float[np.ndarray, "p"]]:
    """The platform's nominal machine, which has no friction that its own table does not name."""
    own = type(before).__dataclass_fields__["domain"].default
    rows = {name: (own[name] if name in own else before.optional[name]) for name in before.domain}
    return Plain(tuple(rows), {}), np.array([row.nominal_value for row in rows.values()])


def choices(noise: Noise) -> dict[str, Noise]:
    """What may be assumed about errors."""
    return {"independent": replace(noise, tau=np.ones_like(noise.tau)), "lasting": noise}  # type: ignore[type-var]


def log_scores(problem: Problem, found: Estimate, left: Segments) -> tuple[list[str], list[float]]:
    """The mean log density of held-out samples by assumption, with the machine uncertain by Laplace."""
    best = int(np.argmin(found.cost))
    z, p = found.z[:, best], found.z.shape[0]
    r, J = jacobians(problem.env, problem.coordinates, np.repeat(z[:, None], left.n, axis=1), left.start, left)
    names, scored = [], []
    for name, noise in choices(problem.noise).items():
        ratio = float((problem.noise.weights / noise.weights).mean())
        information = found.information[..., best] / ratio
        covariance = np.linalg.inv(information + np.eye(p))
        covariance[~problem.free] = covariance[:, ~problem.free] = 0.0
        scored.append(_log_density(r, J[:, :, :p], covariance, J[:, :, p:], problem, noise))
        names.append(name)
    return names, scored


def _log_density(
    r: np.ndarray, J: np.ndarray, covariance: np.ndarray, S: np.ndarray, problem: Problem, noise: Noise
) -> float:
    """Of segments with errors that last, an uncertain machine and an uncertain beginning."""
    spread = beginnings(problem.env, problem.noise, problem.segments, SECONDS)
    t, q, n = r.shape
    lag = np.abs(np.subtract.outer(np.arange(t), np.arange(t)))
    base = scipy.linalg.block_diag(*(s**2 * rho**lag for s, rho in zip(noise.sigma, noise.rho, strict=True)))
    total = 0.0
    for i in range(n):
        A, B = (x[..., i].swapaxes(0, 1).reshape(t * q, -1) for x in (J, S))
        C = base + A @ covariance @ A.T + (B * spread**2) @ B.T + 1e-12 * np.eye(t * q)
        factor = np.linalg.cholesky(C)
        e = scipy.linalg.solve_triangular(factor, r[..., i].T.reshape(-1), lower=True)
        total += -0.5 * (e @ e) - np.log(np.diag(factor)).sum() - 0.5 * t * q * np.log(2 * np.pi)
    return float(total / (n * t * q))


def _tuple(values: np.ndarray) -> tuple[float, ...]:
    return tuple(map(float, values))
