"""Gaps, effort and returns → a certificate: what follows from them, at which confidence, and what to doubt."""

import dataclasses
import json
import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Array, Float, Key

from spota import bounds
from spota.bootstrap import all_intervals, check_alpha
from spota.certificate import METHODS, SPENDING, Certificate, Performance, Subject
from spota.doubts import doubts, repeated
from spota.effort import Effort
from spota.gap import Gaps, check_choice
from spota.replications import mrp

EFFORT_SHARE = 0.2
"""The effort margin's share of α; the interval has the rest, so that both hold together with 1 − α."""


def spent_alpha(alpha: float, iteration: int, spending: str) -> float:
    """α_k of iteration k = 1, 2, …; but for "none", all of them together sum up to α."""
    check_alpha(alpha)
    check_choice("spending", spending, SPENDING)
    if iteration < 1:
        raise ValueError(f"iteration={iteration}: iterations count from 1.")
    shares = {"none": 1.0, "halves": 2.0**-iteration, "squares": 6 / (math.pi * iteration) ** 2}
    return alpha * shares[spending]


def measure(
    returns: Float[Array, "n"] | Float[np.ndarray, "n"],
    survived: float,
    low: float,
    high: float,
    alpha: float = 0.05,
    worst_share: float = 0.2,
) -> Performance:
    """Bounds from one return a domain, in the order in which they were drawn."""
    values = np.asarray(returns, np.float64)
    try:
        mean_lower = bounds.betting(values, low, high, alpha)
        worst_lower = bounds.worst_share_mean(values, low, high, worst_share, alpha)
    except ValueError:
        if low < high and np.isfinite(values).all() and 0 < worst_share <= 1:
            mean_lower = worst_lower = -math.inf  # the range is wrong: say so in the certificate, and keep the rest
        else:
            raise
    worst = np.sort(values)[: max(1, round(worst_share * values.size))]
    return Performance(
        n=values.size, confidence=1 - alpha, mean=float(values.mean()), mean_lower=mean_lower, worst_share=worst_share,
        worst_mean=float(worst.mean()), worst_lower=worst_lower, survived=float(survived), low=low, high=high,
    )  # fmt: skip


def assess(
    key: Key[Array, ""],
    gaps: Gaps,
    subject: Subject,
    *,
    threshold: float,
    method: str,
    alpha: float = 0.05,
    n_b: int = 1000,
    iteration: int = 1,
    spending: str = "none",
    effort: Effort | None = None,
    starts: Mapping[str, int] | None = None,
    improvement: float | None = None,
    performance: Performance | None = None,
    notes: tuple[str, ...] = (),
) -> Certificate:
    """Bootstrap the gaps and state what follows (SPOTA_UCBOG).

    `effort` is None where nobody measured what a longer training gains; `improvement` is the mean raw gap unless given.
    """
    check_choice("method", method, METHODS)
    here = spent_alpha(alpha, iteration, spending)
    for_effort = EFFORT_SHARE * here if effort is not None and effort.gains.size else 0.0
    now = here - for_effort
    margin = None if effort is None else effort.margin(for_effort)
    intervals = all_intervals(key, gaps.final, now, n_b)
    intervals["mrp"] = float(mrp(gaps.raw.mean(axis=1), now).upper)
    final = np.asarray(gaps.final, np.float64)
    n_G, n_r = final.shape
    ucbog = intervals[method] + (margin or 0.0)
    certificate = Certificate(
        env=subject.env,
        seed=subject.seed,
        ucbog=ucbog,
        mean_gap=float(final.mean()),
        confidence=1 - alpha,
        threshold=threshold,
        certified=ucbog <= threshold,
        method=method,
        intervals=intervals,
        effort_margin=margin,
        effort_gain=None if effort is None else effort.gain,
        effort_references=0 if effort is None else effort.gains.size,
        effort_factor=1 if effort is None else effort.factor,
        alpha=now,
        effort_alpha=for_effort,
        spending=spending,
        negative_share=float(gaps.negative_share),
        clipped_share=float(gaps.clipped_share),
        losing_share=float((gaps.raw.mean(axis=1) < 0).mean()),
        reference_improvement=float(gaps.raw.mean()) if improvement is None else improvement,
        starts=dict(starts or {}),
        largest_gap_share=float(final.max() / final.sum()) if final.any() else 0.0,
        n_c=subject.n_c,
        n_r=n_r,
        n_G=n_G,
        n_J=subject.n_J,
        max_return=subject.max_return,
        domain=json.loads(json.dumps(subject.domain)),
        policy_sha256=subject.policy_sha256,
        performance=performance,
        warnings=notes,
    )
    return dataclasses.replace(certificate, warnings=(*doubts(certificate), *repeated(certificate, iteration), *notes))
