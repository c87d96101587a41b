"""The certificate: how much return a policy can lose on an unseen domain, and how much it earns there; as a value.

The first part compares: an upper bound on the mean gap to references that were trained on the very domains
(eq_UCBOG), by default with the policy's rare failures counted on thousands of unseen domains (`split`), plus the effort
margin, an upper bound on what references would gain by a longer training. The second part stands alone: lower bounds on
what the policy earns on domains that nobody has seen. One says how much better anyone could be, the other how good it
is.

print(certificate)
# Certified: on an unseen domain it loses on average at most 41 of return (of 2500), with probability ≈ 95 %; …
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from spota.files.atomic import plain
from spota.files.documents import check, check_format, parse_json
from spota.stats.bootstrap import INTERVALS, UNITS
from spota.stats.split import QUANTILE, Part, Split
from spota.text import figure, percent

FORMAT = 4
"""Of certificate.json; `spota/files/schemas/certificate.schema.json` says what is in it."""
OLDER = {1: {"domain_sha256": None, "blocks": {}, "recordings": []}, 2: {"recordings": []}, 3: {}}
"""Formats that can still be read, and what they did not say."""
METHODS = (*(f"{interval}_{unit}" for unit in UNITS for interval in INTERVALS), "split")
"""The intervals that can decide; `basic_pooled` is the paper's, `split` is ours."""

T = TypeVar("T")
Verdict = Literal["certified", "refuted", "undecided"]
"""The upper bound on the loss is at most the threshold, a lower bound is above it, or neither."""


@dataclass(frozen=True)
class Performance:
    """Lower confidence bounds on the return over ν, from unseen domains; each holds alone, for any sample size.

    There is one rollout per domain. The worst share is one of rollouts; that of domains is not worse.
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


@dataclass(frozen=True)
class Subject:
    """What is certified: a policy on a platform with a distribution."""

    env: str
    seed: int
    domain: Mapping[str, Any]
    """The table of the distribution, as `DomainDistribution.to_dict` gives it."""
    min_return: float
    max_return: float
    policy_sha256: str | None
    """See `policies.fingerprint`."""
    n_c: int | None
    """Domains that the candidate was trained on; None if the policy came from elsewhere."""
    n_J: int
    """Rollouts a domain in the comparison."""
    recordings: tuple[str, ...] = ()
    """What the table was fitted to, `DomainDistribution.recordings`."""


@dataclass(frozen=True)
class Certificate:
    """Loses at most `ucbog` on average over ν, with probability ≈ `confidence`. A value; JSON knows its fields.

    In JSON an infinite bound (nothing is known) is the text "inf" or "-inf".
    """

    env: str
    seed: int
    ucbog: float
    """The upper bound that decided, interval and effort margin together; +inf if nothing is known."""
    mean_gap: float
    """The estimate that the interval belongs to: both parts of the split together, or the mean of the gaps."""
    confidence: float
    """1 − α of the whole run."""
    threshold: float
    """β."""
    verdict: Verdict
    gap_at_least: float | None
    """Lower bound on what it loses: what the best of the references earns more on unseen domains, at least. None if
    nobody looked, because it was certified."""
    method: str
    """The interval that decided, one of METHODS."""
    intervals: Mapping[str, float]
    """Upper bounds on the mean gap by every method; `mrp` sees the gaps before outlier rejection, and there is a
    `split` only with unseen domains."""
    split: Split | None
    """The loss in its two parts, ordinary and rare; None without unseen domains, or if returns leave their range."""
    largest_loss: float
    """max_return − min_return, which no loss and so no bound exceeds; +inf if returns leave this range."""
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
    """How α is spent over the iterations: none or cubes."""
    look: int
    """Which look at the policy this was: references join in each."""
    looks: int
    """How many there may be; α is spent over them."""
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
    domain_sha256: str | None
    """See `table_sha256`."""
    recordings: tuple[str, ...]
    """SHA-256 of the recordings that the table was fitted to; then it is about what is not known of one machine."""
    blocks: Mapping[str, str]
    """The blocks behind it, and the SHA-256 of what each holds; see `blocks.content_sha256`."""
    performance: Performance | None
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        """What a roboticist needs to know, in sentences."""
        lines = [self.sentence, *([self.subject] if self.subject else []), *([self.parts] if self.parts else [])]
        lines += [self.effort] if self.effort_references else []
        lines += [str(self.performance)] if self.performance else []
        return "\n".join([*lines, *(f"Warning: {warning}" for warning in self.warnings)])

    @property
    def sentence(self) -> str:
        """The verdict."""
        scale = f" (of {figure(self.max_return)})" if self.max_return > 0 else ""
        if self.verdict == "certified":
            return (
                f"Certified: on an unseen domain it loses on average at most {figure(self.ucbog)} of return{scale}, "
                f"with probability ≈ {percent(self.confidence)}; the threshold was {figure(self.threshold)}."
            )
        if self.verdict == "refuted":
            return (
                f"Refuted: it loses on average at least {figure(self.gap_at_least or 0.0)} of return{scale} on an "
                f"unseen domain, more than the threshold of {figure(self.threshold)}, with probability ≈ "
                f"{percent(self.confidence)}: one of the references earns that much more."
            )
        if not self.bounded:
            return "Undecided: there is no upper bound on what it loses on an unseen domain."
        return (
            f"Undecided: on an unseen domain it may lose {figure(self.ucbog)} of return{scale} on average, more than "
            f"the threshold of {figure(self.threshold)}; that it does lose so much is not shown (confidence ≈ "
            f"{percent(self.confidence)})."
        )

    @property
    def subject(self) -> str:
        """Which machines it is about, if they are guesses at one; nothing about a table of many."""
        if not self.recordings:
            return ""
        n, known = len(self.recordings), ", ".join(sha256[:12] for sha256 in self.recordings[:3])
        return (
            f"It is about one machine, of which there {'are' if n > 1 else 'is'} {n} recording{'s' if n > 1 else ''} "
            f"({known}{', …' if n > 3 else ''}): an unseen domain is a machine that these allow, and no other machine."
        )

    @property
    def certified(self) -> bool:
        """Whether the upper bound on the loss is at most the threshold."""
        return self.verdict == "certified"

    @property
    def bounded(self) -> bool:
        """Whether the bound says more than that no two returns differ by more than their range."""
        return self.ucbog < self.largest_loss

    @property
    def parts(self) -> str:
        """The loss in its two parts, in sentences; nothing unless the split interval decided."""
        if self.split is None or self.method != "split":
            return ""
        ordinary, rare = self.split.ordinary, self.split.rare
        return (
            f"The mean loss is {figure(self.mean_gap)}. Ordinary: {figure(ordinary.mean)}, at most "
            f"{figure(ordinary.bound)} ({ordinary.n} domains of {self.n_G} references). Rare failures: "
            f"{figure(rare.mean)}, at most {figure(rare.bound)} ({rare.n} unseen domains); {self.failures}"
        )

    @property
    def failures(self) -> str:
        """How often it fails, as the end of a sentence; nothing without a split."""
        split = self.split
        if split is None:
            return ""
        if self.largest_loss - (self.max_return - split.level) <= split.shortfall:
            return (
                f"on {percent(QUANTILE)} of the machines it earns {figure(split.level)} or less: failures are not rare."
            )
        short = (
            f"short of {figure(split.level)}, a return that {percent(1 - QUANTILE)} of the machines reach, by more "
            f"than {figure(split.shortfall)}"
        )
        if not split.failing:
            return f"on none of the machines it falls {short}."
        carried = f"these carry {percent(split.carried)} of the loss"
        return f"on {percent(split.failing)} of the machines it falls {short}, and {carried}."

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
        """What each interval claims together with the effort margin; no more than there is to lose."""
        margin = self.effort_margin or 0.0
        return {name: min(bound + margin, self.largest_loss) for name, bound in self.intervals.items()}

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON; an infinite bound becomes "inf"."""
        return {"format": FORMAT, **plain(dataclasses.asdict(self))}

    def to_json(self) -> str:
        """As text; `from_json` reads it."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the document") -> "Certificate":
        """Read what `to_dict` wrote, in this or an older format; fields that nobody knows here are ignored."""
        number = check_format(values, (*OLDER, FORMAT), "certificate", where)
        check(values, "certificate", where)
        known = {**OLDER.get(number, {}), **values}
        known["intervals"] = {name: float(bound) for name, bound in known["intervals"].items()}
        known["split"] = known["split"] and _split_from(known["split"])
        known["performance"] = known["performance"] and _of_type(Performance, known["performance"])
        known |= {name: tuple(known[name]) for name in ("warnings", "recordings") if name in known}
        return _of_type(cls, known)

    @classmethod
    def from_json(cls, text: str, where: str = "the document") -> "Certificate":
        """Read what `to_json` wrote."""
        return cls.from_dict(parse_json(text, where), where)


def differing(stated: Certificate, true: Certificate, tolerance: float = 0.0) -> list[str]:
    """Where two certificates differ, in words; numbers may by a relative tolerance."""
    pairs = zip(_flat(stated.to_dict()), _flat(true.to_dict()), strict=False)
    if len(_flat(stated.to_dict())) != len(_flat(true.to_dict())):
        return ["it has other parts than it should"]
    return [
        f"{name} is {a!r} and should be {b!r}"
        for (name, a), (other, b) in pairs
        if name != other or not _same(a, b, tolerance)
    ]


def table_sha256(table: Mapping[str, Any]) -> str:
    """SHA-256 over the table of a distribution, as JSON with sorted names and without spaces."""
    text = json.dumps(plain(table), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """All values of a document, under dotted names."""
    if isinstance(value, Mapping):
        return [one for key in sorted(value) for one in _flat(value[key], f"{name}.{key}" if name else key)]
    if isinstance(value, list | tuple):
        return [one for i, inner in enumerate(value) for one in _flat(inner, f"{name}[{i}]")]
    return [(name, value)]


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return a == b


def _split_from(values: Mapping[str, Any]) -> Split:
    parts = {name: _of_type(Part, values[name]) for name in ("ordinary", "rare")}
    return _of_type(Split, {"floor": "-inf", **values, **parts})  # which formats before 4 did not have


def _of_type(cls: type[T], given: Mapping[str, Any]) -> T:
    """A dataclass from checked values; "inf" is a number where a number is meant, and other fields are ignored."""
    fields = {f.name: f.type for f in dataclasses.fields(cast(Any, cls))}
    values = {name: given[name] for name in fields}
    bounds = {name for name, value in values.items() if value in ("inf", "-inf") and "float" in str(fields[name])}
    return cls(**{name: float(value) if name in bounds else value for name, value in values.items()})
