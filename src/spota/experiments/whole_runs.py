"""The whole procedure counted: how often a run of SPOTA, with all its candidates and looks, says what is not so.

An interval that is right in 95 % of all comparisons is not yet a run that is right: a run tries candidates and looks
at each until one passes, and passes it when the bound happens to be low. Here runs are counted, on `rope`, where the
gap of every candidate is known, and candidates on two domains do not know of the rare failure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from spota.certify.algorithm import spota
from spota.certify.certificate import Certificate
from spota.certify.events import Assessed, BlockFinished, Event
from spota.certify.settings import AS_PUBLISHED, Spota
from spota.experiments.rope import Pull, best_pulls, gap, rope
from spota.files.atomic import plain

RUNS = 500
THRESHOLDS = {0.002: 5.0, 0.01: 10.0, 0.02: 20.0}
"""β for each share of weak ropes: candidates fall on both sides of it."""
SIZES: dict[str, Any] = {"n_c": 2, "n_r": 10, "n_G": 10, "n_J": 1, "max_iterations": 3, "growth": "constant"}
"""Few domains, so that wrong verdicts are possible; one rollout, because nothing else is random."""
PROCEDURES: dict[str, dict[str, Any]] = {"default": {}, "paper": AS_PUBLISHED}
"""Ours as users get it, and the paper's."""


@dataclass(frozen=True)
class Kind:
    """One line of the study."""

    procedure: str
    """One of PROCEDURES."""
    weak: float
    """The share of domains on which a policy can fail, one of THRESHOLDS."""

    @property
    def settings(self) -> Spota:
        """Those of its runs."""
        return Spota(**{**SIZES, "beta": THRESHOLDS[self.weak], **PROCEDURES[self.procedure]})


@dataclass(frozen=True)
class Candidate:
    """A policy, what it truly loses, and what its last look says about that."""

    gap: float
    certificate: Certificate

    @property
    def too_low(self) -> bool:
        """Whether it loses more than its upper bound."""
        return self.certificate.ucbog < self.gap

    @property
    def too_high(self) -> bool:
        """Whether it loses less than its lower bound."""
        return (self.certificate.gap_at_least or 0.0) > self.gap


@dataclass(frozen=True)
class CountedRun:
    """The candidates of a run, and which of them it returned."""

    candidates: tuple[Candidate, ...]
    returned: Candidate

    @property
    def certified(self) -> bool:
        """Whether it ended with a certificate."""
        return self.returned.certificate.certified

    @property
    def beyond(self) -> bool:
        """Whether it certified a policy that loses more than the threshold."""
        return self.certified and self.returned.gap > self.returned.certificate.threshold


@dataclass(frozen=True)
class Counts:
    """What came of the runs of one kind; shares are in percent of the runs."""

    kind: Kind
    threshold: float
    runs: int
    covers: float
    """Of no candidate was the upper bound below its gap, whether it passed or not."""
    certified: float
    false_certificates: float
    """Certified with a bound below the gap of the policy that was returned."""
    beyond: float
    """Certified although it loses more than the threshold."""
    refuted: float
    """A candidate was refuted."""
    refuted_wrongly: float
    """A lower bound was above the gap of its candidate."""
    gap: float
    """Median true gap of the policies that were returned."""
    median_ratio: float
    """Median of bound over truth, for the policies that were returned."""
    high_ratio: float
    """90 % quantile of it."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return plain(asdict(self))


def kinds(quick: bool = False) -> Iterator[Kind]:
    """What is studied."""
    for weak in (0.01,) if quick else THRESHOLDS:
        yield from (Kind(procedure, weak) for procedure in PROCEDURES)


def count(seed: int, kind: Kind, runs: int = RUNS) -> Counts:
    """Run the procedure that often, and count."""
    return counts_of(kind, runs_of(seed, kind, runs))


def runs_of(seed: int, kind: Kind, runs: int) -> Iterator[CountedRun]:
    """Independent runs of one kind."""
    for i in range(runs):
        heard: list[Event] = []
        key = jax.random.fold_in(jax.random.key(seed), i)
        result = spota(key, rope(kind.weak), best_pulls, kind.settings, init=Pull(), listener=heard.append)
        candidates = tuple(_candidates(heard, kind.weak))
        yield CountedRun(candidates, candidates[result.iteration - 1])


def counts_of(kind: Kind, runs: Iterable[CountedRun]) -> Counts:
    """Count what the runs say against what is so."""
    runs = list(runs)
    gaps, bounds = np.array([(r.returned.gap, r.returned.certificate.ucbog) for r in runs]).T
    refuted = [any(c.certificate.verdict == "refuted" for c in r.candidates) for r in runs]
    return Counts(
        kind, kind.settings.beta, len(runs),
        covers=_percent(not any(c.too_low for c in r.candidates) for r in runs),
        certified=_percent(r.certified for r in runs),
        false_certificates=_percent(r.certified and r.returned.too_low for r in runs),
        beyond=_percent(r.beyond for r in runs),
        refuted=_percent(refuted),
        refuted_wrongly=_percent(any(c.too_high for c in r.candidates) for r in runs),
        gap=float(np.median(gaps)),
        median_ratio=float(np.median(bounds / gaps)),
        high_ratio=float(np.quantile(bounds / gaps, 0.9, method="higher")),
    )  # fmt: skip


def _candidates(heard: Iterable[Event], weak: float) -> Iterator[Candidate]:
    """Each candidate of a run with its last certificate, from what the run told."""
    pull = np.nan
    for event in heard:
        if isinstance(event, BlockFinished) and event.block == "candidate":
            pull = float(event.arrays["policy.pull"])
        elif isinstance(event, Assessed):
            yield Candidate(float(gap(pull, weak)), event.certificate)


def _percent(happened: Iterable[bool]) -> float:
    return 100 * float(np.mean(list(happened)))
