"""Recordings that were not fitted: what a fit predicts of them, and which assumption about errors serves them."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float

from spota.fit.coordinates import Coordinates, Plain, Scores
from spota.fit.estimate import Estimate, Problem, beginnings_of, estimate
from spota.fit.noise import Noise, beginnings
from spota.fit.posterior import Sampled
from spota.fit.prediction import jacobians, predicted
from spota.fit.recording import measured
from spota.fit.segments import SECONDS, Segments
from spota.sim.env import Platform

ROWS = 60
"""Machines of the fit that predict."""
LEAD = 0.2
"""Seconds in which a machine is watched before it is predicted: slopes of a few samples say too little."""
COVERED = 0.9
"""The share of samples that the predicted bands should hold."""
TOO_FEW = 0.75
"""Below this share of samples in the bands the fit is surer than it should be."""


@dataclass(frozen=True)
class HeldOut:
    """How well the fit predicts half a second of what it has not seen, after a fifth of a second of watching."""

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


class Machines(NamedTuple):
    """What predicts: machines of a fit."""

    env: Platform
    coordinates: Scores
    middle: Float[np.ndarray, "p"]
    """The best machine, which places the beginnings."""
    sampled: Sampled
    noise: Noise


def check(machines: Machines, again: Segments, left: Segments) -> HeldOut:
    """Predict held-out segments with rows of the fit, and with errors as large as in the fitted recordings.

    What a simulator lacks makes slow errors. Over a segment that is fitted the beginning soaks them up, so that the
    noise that was learned holds little of them; whoever predicts from a beginning that was watched before meets them.
    How large they are is seen when fitted recordings are predicted in the same way.
    """
    lasting = _lasting(machines, again)
    off, spoiled = _predicted(machines, left)
    drawn = np.random.default_rng(1).standard_normal((1, *off.shape[1:]))
    low, high = np.quantile(spoiled + lasting[:, :, None, None] * drawn, [0.05, 0.95], axis=2)
    inside = ((low <= 0) & (high >= 0)).mean(axis=(0, 2))
    error = np.sqrt((off.mean(axis=2) ** 2).mean(axis=(0, 2)))
    system, values = nominal(machines.env)
    start, _ = watched(machines.env, system, values, machines.noise, left)
    plainly = ahead(machines.env, system, values[:, None], start[:, None], left)
    names = tuple((s.name, s.unit) for s in measured(machines.env))
    return HeldOut(names, left.n, _tuple(error), _tuple(np.sqrt((plainly**2).mean(axis=(0, 2, 3)))), _tuple(inside))


def _predicted(
    machines: Machines, segments: Segments
) -> tuple[Float[np.ndarray, "t q m n"], Float[np.ndarray, "t q m n"]]:
    """What rows of the fit leave of segments, from beginnings that may be theirs; the same with noise."""
    env, coordinates, middle, sampled, noise = machines
    rows = np.linspace(0, sampled.z.shape[0] - 1, ROWS).round().astype(int)
    generator = np.random.default_rng(0)
    start, factor = watched(env, coordinates, middle, noise, segments)
    half = np.einsum("nij,njm->imn", factor, generator.standard_normal((segments.n, start.shape[0], ROWS // 2)))
    starts = start[:, None] + np.concatenate([half, -half], axis=1)  # in pairs, so that their mean is the best guess
    off = ahead(env, coordinates, sampled.z[rows].T, starts, segments)
    noises = [noise.draw(generator, off[:, :, 0].shape) * scale for scale in sampled.scale[rows]]
    return off, off + np.stack(noises, axis=2)


def _lasting(machines: Machines, again: Segments) -> Float[np.ndarray, "t q"]:
    """Of errors that rows, beginnings and noise do not explain, the standard deviation at every time."""
    off, spoiled = _predicted(machines, again)
    unexplained = (off.mean(axis=2) ** 2).mean(axis=-1) - spoiled.var(axis=2).mean(axis=-1)
    return np.sqrt(np.maximum(unexplained, 0.0))


def watched(
    env: Platform, coordinates: Coordinates, z: Float[np.ndarray, "p"], noise: Noise, segments: Segments
) -> tuple[Float[np.ndarray, "d n"], Float[np.ndarray, "n d d"]]:
    """Where segments with a lead begin, by what a machine shows during the lead; and a factor of the covariance."""
    share = _lead(env, segments) / segments.positions.shape[0]
    problem = Problem(env, coordinates, segments, noise, horizon=share, pinned=coordinates.names)
    start = estimate(problem, 6, z[:, None]).start[..., 0]
    return start, np.linalg.cholesky(beginnings_of(problem, z, start)[1])


def ahead(
    env: Platform,
    coordinates: Coordinates,
    rows: Float[np.ndarray, "p m"],
    starts: Float[np.ndarray, "d m n"],
    segments: Segments,
) -> Float[np.ndarray, "t q m n"]:
    """What m machines leave unexplained of the half seconds after the lead."""
    m, n = rows.shape[1], segments.n
    everything = segments.chosen(np.tile(np.arange(n), m))
    flat = starts.repeat(m // starts.shape[1], axis=1).reshape(starts.shape[0], -1)
    off = predicted(env, coordinates, np.repeat(rows, n, axis=1), flat, everything)
    return off.reshape(*off.shape[:2], m, n)[_lead(env, segments) :]


def _lead(env: Platform, segments: Segments) -> int:
    """Samples of the lead."""
    return segments.positions.shape[0] - round(SECONDS / (segments.every * env.dt))


def nominal(before: Platform) -> tuple[Plain, Float[np.ndarray, "p"]]:
    """The platform's nominal machine, which has no friction that its own table does not name."""
    own = before.own_domain
    rows = {name: (own[name] if name in own else before.optional[name]) for name in before.domain}
    return Plain(tuple(rows), {}), np.array([row.nominal_value for row in rows.values()])


def choices(noise: Noise) -> dict[str, Noise]:
    """What may be assumed about errors."""
    return {"independent": replace(noise, tau=np.ones_like(noise.tau)), "lasting": noise}  # type: ignore[type-var]


def log_scores(problem: Problem, found: Estimate, left: Segments) -> tuple[list[str], list[float]]:
    """The mean log density of held-out samples by assumption, with the machine uncertain by Laplace."""
    best = int(np.argmin(found.cost))
    z, p = found.z[:, best], found.z.shape[0]
    lanes = np.repeat(z[:, None], left.n, axis=1)
    r, J = jacobians(problem.env, problem.coordinates, lanes, left.start, left, problem.free)
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
    spread = beginnings(problem.env, problem.noise, problem.segments)
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
