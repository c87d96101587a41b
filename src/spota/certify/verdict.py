"""Gaps, rollouts and effort → a certificate: what follows from them, at which confidence, and what to doubt."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Key

from spota.certify.certificate import METHODS, Certificate, Performance, Subject, table_sha256
from spota.certify.doubts import doubts, repeated
from spota.certify.effort import Effort
from spota.stats import bounds
from spota.stats.bootstrap import all_intervals, shortcomings
from spota.stats.gap import Gaps
from spota.stats.replications import mrp
from spota.stats.spending import Trial
from spota.stats.split import FLOOR, Returns, Split, crash_level, in_range, split_upper
from spota.text import check_choice

EFFORT_SHARE = 0.4
"""The effort margin's share of α; the interval has the rest, so that both hold together with 1 − α. The margin rests on
four to six references, whose quantiles of Student's t grow fast: with 0.2 the sum of both was a tenth larger."""
ALONE = Trial()
"""The only test of its run."""
RESAMPLED = ("basic", "percentile", "bca", "studentized")
"""The intervals that need resamples."""


@dataclass(frozen=True)
class Rollouts:
    """Single returns, which the split interval needs: gaps alone do not show what happens rarely."""

    candidate: Returns
    """On the domains of the references."""
    best_known: Returns
    """Those of the best policy known for the domains of each reference, with the same random numbers."""
    unseen: Float[np.ndarray, " n"]
    """The candidate's on unseen domains, one rollout each, in the order in which they were drawn."""
    pilot: Float[np.ndarray, " m"]
    """The same on domains that serve nothing but the choice of the level."""

    def in_range(self, low: float, high: float) -> bool:
        """Whether all of them keep to the range of returns."""
        return all(in_range(x, low, high) for x in (self.candidate, self.best_known, self.unseen, self.pilot))

    @property
    def floor(self) -> float:
        """What a reference's return counts as at least."""
        return crash_level(self.pilot, FLOOR)

    def split(self, low: float, high: float, alpha: float) -> Split:
        """The gap in its two parts."""
        level = min(max(crash_level(self.pilot), low), high)  # a return may pass the end of its range by a rounding
        floor = min(self.floor, level)
        return split_upper(self.candidate, self.best_known, self.unseen, level, low, high, alpha, floor=floor)


def measure(
    returns: Float[Array, "n"] | Float[np.ndarray, "n"],
    survived: float,
    low: float,
    high: float,
    alpha: float = 0.05,
    worst_share: float = 0.2,
) -> Performance:
    """Bounds from one return per domain, in the order in which they were drawn."""
    values = np.asarray(returns, np.float64)
    try:
        mean_lower = bounds.betting(values, low, high, alpha)
        worst_lower = bounds.worst_share_mean(values, low, high, worst_share, alpha)
    except ValueError:
        if low < high and np.isfinite(values).all() and 0 < worst_share <= 1:
            mean_lower = worst_lower = -math.inf  # the range is wrong: say so in the certificate, and keep the rest
        else:
            raise
    return Performance(
        n=values.size, confidence=1 - alpha, mean=float(values.mean()), mean_lower=mean_lower, worst_share=worst_share,
        worst_mean=float(bounds.worst_mean(values, worst_share)), worst_lower=worst_lower, survived=float(survived),
        low=low, high=high,
    )  # fmt: skip


def certify(
    key: Key[Array, ""],
    gaps: Gaps,
    subject: Subject,
    trial: Trial = ALONE,
    *,
    threshold: float,
    method: str,
    alpha: float = 0.05,
    n_b: int = 1000,
    rollouts: Rollouts | None = None,
    effort: Effort | None = None,
    starts: Mapping[str, int] | None = None,
    improvement: float | None = None,
    performance: Performance | None = None,
    notes: tuple[str, ...] = (),
    blocks: Mapping[str, str] | None = None,
) -> Certificate:
    """Bound the mean gap in every way there is, and state what follows from the one that decides (SPOTA_UCBOG).

    The verdict is certified or undecided; only a better policy refutes, see `challenged`.
    Without `rollouts` there is no split. `effort` is None where nobody measured what a longer training gains;
    `improvement` is the mean raw gap unless given; `blocks` says what the blocks hold that all this comes from.
    """
    check_choice("method", method, METHODS)
    here = trial.alpha(alpha)
    for_effort = EFFORT_SHARE * here if effort is not None and effort.gains.size else 0.0
    now = here - for_effort
    effort_figures = _effort_figures(effort, for_effort)
    largest, split = _split(rollouts, performance, subject, now)
    intervals = _intervals(key, gaps, split, method, now, n_b, largest)
    ucbog = min(intervals[method] + (effort_figures["effort_margin"] or 0.0), largest)
    certificate = Certificate(
        **_about(subject),
        ucbog=ucbog,
        mean_gap=_mean_gap(gaps, split if method == "split" else None),
        confidence=1 - alpha,
        threshold=threshold,
        verdict="certified" if ucbog <= threshold else "undecided",
        gap_at_least=None,
        method=method,
        intervals=intervals,
        split=split,
        largest_loss=largest,
        alpha=now,
        **effort_figures,
        spending=trial.spending,
        look=trial.look,
        looks=trial.looks,
        **_gap_figures(gaps),
        reference_improvement=float(gaps.raw.mean()) if improvement is None else improvement,
        starts=dict(starts or {}),
        blocks=dict(blocks or {}),
        performance=performance,
        warnings=notes,
    )
    warnings = *doubts(certificate), *_too_few(certificate, n_b), *repeated(certificate, trial.candidate), *notes
    return dataclasses.replace(certificate, warnings=warnings)


def challenged(certificate: Certificate, gap_at_least: float) -> Certificate:
    """The certificate once it is known what one other policy earns more on unseen domains, at least.

    It may err with the probability that the upper bound has: a verdict is wrong only if the policy was certified and
    its gap is above the threshold, or if it was refuted and the gap is not, and one of the two cannot be.
    """
    verdict = "refuted" if gap_at_least > certificate.threshold else certificate.verdict
    return dataclasses.replace(certificate, gap_at_least=gap_at_least, verdict=verdict)


def _intervals(
    key: Key[Array, ""], gaps: Gaps, split: Split | None, method: str, alpha: float, n_b: int, largest: float
) -> dict[str, float]:
    """Every upper bound; if the split is to decide and cannot, there is none."""
    found = all_intervals(key, gaps.final, alpha, n_b, largest)
    found["mrp"] = min(float(mrp(gaps.raw.mean(axis=1), alpha).upper), largest)
    if split is not None or method == "split":
        found["split"] = math.inf if split is None else split.bound
    return found


def _about(subject: Subject) -> dict[str, Any]:
    """Whose certificate it is."""
    domain = json.loads(json.dumps(subject.domain))
    own = {name: value for name, value in vars(subject).items() if name != "min_return"}
    return {**own, "domain": domain, "domain_sha256": table_sha256(domain)}


def _split(
    rollouts: Rollouts | None, performance: Performance | None, subject: Subject, alpha: float
) -> tuple[float, Split | None]:
    """The largest loss that there can be, and the gap in two parts; neither, where returns leave their range."""
    low, high = subject.min_return, subject.max_return
    kept = (rollouts is None or rollouts.in_range(low, high)) and (performance is None or performance.in_range)
    if not kept:
        return math.inf, None
    return high - low, None if rollouts is None else rollouts.split(low, high, alpha)


def _mean_gap(gaps: Gaps, split: Split | None) -> float:
    return max(split.mean, 0.0) if split is not None else float(np.asarray(gaps.final, np.float64).mean())


def _effort_figures(effort: Effort | None, alpha: float) -> dict[str, Any]:
    """What the certificate says about a longer training of some references."""
    if effort is None:
        figures = {"effort_margin": None, "effort_gain": None, "effort_references": 0, "effort_factor": 1}
    else:
        figures = {"effort_margin": effort.margin(alpha), "effort_gain": effort.gain}
        figures |= {"effort_references": effort.gains.size, "effort_factor": effort.factor}
    return {**figures, "effort_alpha": alpha}


def _gap_figures(gaps: Gaps) -> dict[str, Any]:
    """What the certificate says about the gaps beside their mean."""
    n_G, n_r = gaps.final.shape
    won = np.maximum(np.asarray(gaps.final, np.float64), 0.0)  # where references lose, nothing is won
    return {
        "n_G": n_G,
        "n_r": n_r,
        "negative_share": float(gaps.negative_share),
        "clipped_share": float(gaps.clipped_share),
        "losing_share": float((gaps.raw.mean(axis=1) < 0).mean()),
        "largest_gap_share": float(won.max() / won.sum()) if won.any() else 0.0,
    }


def _too_few(c: Certificate, n_b: int) -> Iterator[str]:
    """Settings that cannot give the confidence, where resampling decided."""
    if c.method.startswith(RESAMPLED):
        yield from shortcomings(c.n_G, n_b, c.alpha)
