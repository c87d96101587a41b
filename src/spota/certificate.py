"""The certificate: how much return a policy can lose on an unseen domain, how much it earns there, and what to doubt.

The first part compares: an upper bound on the mean gap to references that were trained on the very domains
(eq_UCBOG), plus the effort margin, an upper bound on what these would gain by a longer training. The second part stands
alone: lower bounds on what the policy earns on domains that nobody has seen. One says how much better anyone could be,
the other how good it is.

print(certificate)
# Certified: on an unseen domain it loses on average at most 41 of return (of 2500), with probability ≈ 95 %; …
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from spota import bounds
from spota.blocks import to_arrays
from spota.bootstrap import INTERVALS, UNITS, all_intervals, check_alpha
from spota.effort import Effort
from spota.files import plain
from spota.gap import Gaps, check_choice
from spota.replications import mrp

METHODS = tuple(f"{interval}_{unit}" for unit in UNITS for interval in INTERVALS)
"""The intervals that can decide; `basic_pooled` is the paper's."""

SPENDING = ("none", "halves", "squares")
"""How α is spent over the iterations: not at all, α/2^k, or 6α/(πk)²."""

EFFORT_SHARE = 0.2
"""The effort margin's share of α; the interval has the rest, so that both hold together with 1 − α."""

FEW_REFERENCES = 10
MANY_LOSE = 0.1
MUCH_OF_THE_GAP = 1 / 3
ALMOST_NOTHING = 0.1
MUCH_MORE = 0.25
"""References that gain this share of the mean gap by a longer training are not done."""
HARDLY_ANYTHING = 0.02
"""A gain below this share of the threshold decides nothing."""


def spent_alpha(alpha: float, iteration: int, spending: str) -> float:
    """α_k of iteration k = 1, 2, …; but for "none", all of them together sum up to α."""
    check_alpha(alpha)
    check_choice("spending", spending, SPENDING)
    if iteration < 1:
        raise ValueError(f"iteration={iteration}: iterations count from 1.")
    shares = {"none": 1.0, "halves": 2.0**-iteration, "squares": 6 / (math.pi * iteration) ** 2}
    return alpha * shares[spending]


@dataclass(frozen=True)
class Performance:
    """Lower confidence bounds on the return over ν, from unseen domains; each holds alone, for any sample size.

    There is one rollout a domain. The worst share is one of rollouts; that of domains is not worse.
    """

    n: int
    """Unseen domains."""
    confidence: float
    mean: float
    """As measured."""
    mean_lower: float
    """Lower bound on the expected return; −inf if returns leave the range."""
    worst_share: float
    worst_mean: float
    """Mean over the worst share, as measured."""
    worst_lower: float
    """Lower bound on it; −inf if returns leave the range."""
    survived: float
    """Share of rollouts that lasted until the time limit."""
    low: float
    high: float
    """The range that a return cannot leave; the bounds rest on it."""

    @property
    def in_range(self) -> bool:
        """Whether the range held, so that there are bounds."""
        return math.isfinite(self.mean_lower)

    @property
    def share_of_range(self) -> float:
        """Where the mean lies between the lowest and the highest return that there can be."""
        return (self.mean - self.low) / (self.high - self.low)

    def __str__(self) -> str:
        """One sentence."""
        if not self.in_range:
            return f"Earned {figure(self.mean)} on average over {self.n} unseen domains; there is no bound on it."
        return (
            f"Earns at least {figure(self.mean_lower)} on average, and at least {figure(self.worst_lower)} in the "
            f"worst {percent(self.worst_share)} ({self.n} unseen domains, {percent(self.confidence)} confidence each)."
        )


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


@dataclass(frozen=True)
class Subject:
    """What is certified: a policy on a platform with a distribution."""

    env: str
    seed: int
    domain: Mapping[str, Any]
    """The table of the distribution, as `DomainDistribution.to_dict` gives it."""
    max_return: float
    policy_sha256: str | None
    """See `fingerprint`."""
    n_c: int | None
    """Domains that the candidate was trained on; None if the policy came from elsewhere."""
    n_J: int
    """Rollouts a domain in the comparison."""


@dataclass(frozen=True)
class Certificate:
    """Loses at most `ucbog` on average over ν, with probability ≈ `confidence`. A value; JSON knows its fields.

    In JSON an infinite bound (nothing is known) is the text "inf" or "-inf".
    """

    env: str
    seed: int
    ucbog: float
    """The upper bound that decided, interval and effort margin together; +inf if there are too few gaps."""
    mean_gap: float
    confidence: float
    """1 − α of the whole run."""
    threshold: float
    """β."""
    certified: bool
    """Whether ucbog ≤ threshold."""
    method: str
    """The interval that decided, one of METHODS."""
    intervals: Mapping[str, float]
    """Upper bounds on the mean gap by every method; `mrp` sees the gaps before outlier rejection."""
    effort_margin: float | None
    """Upper bound on what the references would gain by a longer training, which they lack as opponents; 0 for an exact
    solver, None if nobody measured it."""
    effort_gain: float | None
    """What those that were trained longer gained on average."""
    effort_references: int
    """How many these were: the first ones, which is beforehand."""
    effort_factor: int
    """How many times as long they were trained."""
    alpha: float
    """The probability of error that the intervals of this iteration were given."""
    effort_alpha: float
    """The probability of error that the effort margin of this iteration was given."""
    spending: str
    """How α is spent over the iterations, one of SPENDING."""
    negative_share: float
    """Share of gaps that were negative before outlier rejection: there the reference lost."""
    clipped_share: float
    losing_share: float
    """Share of references that lost on average over their own domains. The best policy for several domains need not be
    the best on each, so that only this, and not a single negative gap, shows a weak reference."""
    reference_improvement: float
    """Mean gain of the references over their start, on their own domains with fresh random numbers."""
    starts: Mapping[str, int]
    """How many references started from which policy."""
    largest_gap_share: float
    """How much of the total gap comes from the domain with the largest."""
    n_c: int | None
    n_r: int
    n_G: int
    n_J: int
    max_return: float
    domain: Mapping[str, Any]
    policy_sha256: str | None
    performance: Performance | None
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        """What a roboticist needs to know, in sentences."""
        lines = [self.sentence, *([self.effort] if self.effort_references else [])]
        lines += [str(self.performance)] if self.performance else []
        return "\n".join([*lines, *(f"Warning: {warning}" for warning in self.warnings)])

    @property
    def sentence(self) -> str:
        """The verdict."""
        scale = f" (of {figure(self.max_return)})" if self.max_return > 0 else ""
        if self.certified:
            return (
                f"Certified: on an unseen domain it loses on average at most {figure(self.ucbog)} of return{scale}, "
                f"with probability ≈ {percent(self.confidence)}; the threshold was {figure(self.threshold)}."
            )
        if not math.isfinite(self.ucbog):
            return "Not certified: there is no upper bound on what it loses on an unseen domain."
        return (
            f"Not certified: on an unseen domain it may lose {figure(self.ucbog)} of return{scale} on average, more "
            f"than the threshold of {figure(self.threshold)} (confidence ≈ {percent(self.confidence)})."
        )

    @property
    def effort(self) -> str:
        """How strong the references are, in a sentence."""
        if self.effort_margin is None or self.effort_gain is None:
            return "Whether the references would gain by a longer training was not measured."
        if not self.effort_references:
            return "The references come from an exact solver, which more effort cannot improve."
        return (
            f"The bound includes an effort margin of {figure(self.effort_margin)}: {self.effort_references} "
            f"references, trained {self.effort_factor} times as long, gained {figure(self.effort_gain)} more."
        )

    @property
    def claims(self) -> dict[str, float]:
        """What each interval claims together with the effort margin."""
        return {name: bound + (self.effort_margin or 0.0) for name, bound in self.intervals.items()}

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON; an infinite bound becomes "inf"."""
        return plain(dataclasses.asdict(self))

    def to_json(self) -> str:
        """As text; `from_json` reads it."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Certificate":
        """Read what `to_dict` wrote."""
        fields = dict(values)
        unknown = set(fields) ^ {f.name for f in dataclasses.fields(cls)}
        if unknown:
            raise ValueError(
                f"This is no certificate of this spota: {', '.join(sorted(unknown))} is missing or unknown."
            )
        fields["ucbog"] = float(fields["ucbog"])
        if fields["effort_margin"] is not None:
            fields["effort_margin"] = float(fields["effort_margin"])
        fields["intervals"] = {name: float(bound) for name, bound in fields["intervals"].items()}
        fields["warnings"] = tuple(fields["warnings"])
        if fields["performance"] is not None:
            measured = dict(fields["performance"])
            lower = {name: float(measured[name]) for name in ("mean_lower", "worst_lower")}
            fields["performance"] = Performance(**{**measured, **lower})
        return cls(**fields)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))


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


def doubts(c: Certificate) -> Iterator[str]:
    """Reasons not to trust a certificate, in plain words, the gravest first."""
    if c.performance and c.performance.in_range and c.performance.share_of_range < ALMOST_NOTHING:
        yield (
            f"The policy earns almost nothing on unseen domains: {figure(c.performance.mean)} on average, of at most "
            f"{figure(c.performance.high)}. References that start from it may be as weak, and then a small gap means "
            "nothing. Train it first: more iterations, or another optimizer."
        )
    if c.clipped_share == 1:
        yield (
            "No reference beat the policy on any domain, so every gap was set to zero. This shows that the optimizer "
            "found nothing better, not that nothing better exists."
        )
    if c.reference_improvement <= 0:
        yield (
            f"The references did not improve on their start (by {figure(c.reference_improvement)} on average): the "
            "gaps, and so the bound, are too small. Give the optimizer more iterations or another step size."
        )
    if c.losing_share > MANY_LOSE:
        yield (
            f"{percent(c.losing_share)} of the references lost against the policy on the very domains that they were "
            "trained on. They are weak, and the bound is too small; train them longer."
        )
    if c.effort_margin is None:
        yield (
            "Whether the references are strong enough was not measured: none of them was trained longer. If they are "
            "weak, the bound is too small. Set effort_references, and use an optimizer that has iterations."
        )
    elif still_improving(c):
        yield (
            f"The references are still improving: trained {c.effort_factor} times as long they gain "
            f"{figure(c.effort_gain or 0.0)}, and the mean gap is {figure(c.mean_gap)}. Train them longer."
        )
    if c.n_G < FEW_REFERENCES:
        yield f"Only {c.n_G} references were compared; below {FEW_REFERENCES} every interval is a guess. Set n_G to 20."
    if c.largest_gap_share > MUCH_OF_THE_GAP and c.n_G * c.n_r > 1:
        yield (
            f"One domain carries {percent(c.largest_gap_share)} of the total gap: the mean says little about it, and "
            "another draw of domains could give another verdict."
        )
    if c.method.startswith("basic"):
        beside = c.claims["studentized_reference"]
        yield (
            "The basic bootstrap decided, as in the paper; it promises more than it keeps: about 87 % instead of 95 % "
            "with 20 gaps, and less when the gaps of a reference correlate. "
            f"The bootstrap-t over references gives {figure(beside)}."
        )
    if c.performance and not c.performance.in_range:
        yield (
            f"Some returns lie outside {figure(c.performance.low)} … {figure(c.performance.high)}, the range that the "
            "platform states (min_reward, max_reward); without it there are no bounds on the performance."
        )


def still_improving(c: Certificate) -> bool:
    """Whether a longer training gains so much that the references cannot count as the best for their domains."""
    gain = c.effort_gain or 0.0
    return gain > MUCH_MORE * c.mean_gap and gain > HARDLY_ANYTHING * c.threshold


def repeated(c: Certificate, iteration: int) -> Iterator[str]:
    """A run tests its candidates until one passes: what that does to the confidence, unless α is spent over them."""
    if c.certified and iteration > 1 and c.spending == "none":
        each = c.alpha + c.effort_alpha
        luck = percent(min(iteration * each, 1.0))
        yield (
            f"This is the run's candidate number {iteration}; those before it were refused. Each was tested at "
            f"{percent(each)}, so that the chance of passing one of them by luck adds up to at most {luck}. "
            "spend_alpha = halves keeps it at that of one test."
        )


def fingerprint(policy: PyTree) -> str | None:
    """SHA-256 over the policy's kind and its arrays with names, types and shapes; None if it holds anything else."""
    arrays = to_arrays(policy)
    if not arrays or any(array.dtype == object for array in arrays.values()):
        return None
    digest = hashlib.sha256(type(policy).__name__.encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def figure(value: float) -> str:
    """A number as people write it: three digits or so, never 1e+03."""
    if not math.isfinite(value):
        return "no bound"
    if abs(value) < 1e-3:
        return "0"
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def percent(share: float) -> str:
    """0.953 → 95 %; 0.005 → 0.5 %."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.4g} %"
