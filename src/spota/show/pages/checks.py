"""How far to trust a certificate: what to look at, and what it means."""

from collections.abc import Iterator
from dataclasses import dataclass

from spota.certify.certificate import Certificate
from spota.certify.doubts import (
    FEW_REFERENCES,
    MANY_LOSE,
    MUCH_MORE,
    MUCH_OF_THE_GAP,
    one_domain_decides,
    rare_failures_decide,
    still_improving,
)
from spota.show.pages.coverage import Measured, interval_name, measured
from spota.text import figure, percent, plural


@dataclass(frozen=True)
class Check:
    """One thing to look at before a certificate is trusted."""

    name: str
    value: str
    meaning: str
    good: bool


def checks(c: Certificate, iterations: int = 1) -> Iterator[Check]:
    """Diagnostics with their meaning; what is not good is among the certificate's warnings, too."""
    yield Check(
        "References improved by",
        figure(c.reference_improvement),
        "On their own domains, over the policy that they started from. Without improvement the gaps mean nothing.",
        c.reference_improvement > 0,
    )
    yield _effort(c)
    yield Check(
        "References that lost",
        percent(c.losing_share),
        f"On average over their own domains. More than {percent(MANY_LOSE)} are a sign of weak references.",
        c.losing_share <= MANY_LOSE,
    )
    yield Check(
        "Negative gaps",
        percent(c.negative_share),
        f"Before outlier rejection; {percent(c.clipped_share)} of all gaps were set to zero in the end. With several "
        "domains per reference, negative gaps are no weakness by themselves.",
        c.clipped_share < 1,
    )
    yield Check("References", str(c.n_G), f"Below {FEW_REFERENCES} every interval is a guess.", c.n_G >= FEW_REFERENCES)
    yield _rare(c) if c.split is not None and c.method == "split" else _largest_gap(c)
    yield _agreement(c)
    yield _coverage(c, measured(c.n_G, c.n_r))
    if iterations > 1:
        yield _tests(c, iterations)


def _rare(c: Certificate) -> Check:
    assert c.split is not None  # it decided
    rare = c.split.rare
    return Check(
        "Rare failures cost",
        figure(rare.mean),
        f"On average, and at most {figure(rare.bound)}, counted on {rare.n} unseen domains. More than the threshold "
        "would refuse the policy whatever the references do.",
        not rare_failures_decide(c),
    )


def _largest_gap(c: Certificate) -> Check:
    return Check(
        "Largest gap",
        percent(c.largest_gap_share),
        f"Of the total, by one domain. Above {percent(MUCH_OF_THE_GAP)} this domain decides.",
        not one_domain_decides(c),
    )


def _effort(c: Certificate) -> Check:
    return Check(
        "More effort gains",
        "not measured" if c.effort_gain is None else figure(c.effort_gain),
        f"{c.effort} More than {percent(MUCH_MORE)} of the mean gap would mean that references are not done.",
        c.effort_margin is not None and not still_improving(c),
    )


def _agreement(c: Certificate) -> Check:
    passing = [claim <= c.threshold for claim in c.claims.values()]
    return Check(
        "Intervals that pass",
        f"{sum(passing)} of {len(passing)}",
        "The more agree, the less the verdict depends on the choice of the interval.",
        all(passing) or not any(passing),
    )


def _coverage(c: Certificate, m: Measured) -> Check:
    return Check(
        "Measured coverage",
        m.words(c.method),
        f"How often the interval that decided ({interval_name(c.method)}; nominal {m.nominal:.0f} %) was right where "
        f"the truth is known, rare crashes included, with {m.n_G} references and {plural(m.n_r, 'domain')} each.",
        m.lowest[c.method] >= m.nominal - 5,
    )


def _tests(c: Certificate, iterations: int) -> Check:
    spent = c.spending != "none"
    meaning = (
        "Each iteration tried to pass; the confidence holds for all of them together."
        if spent
        else 'Each iteration tried to pass, and each may pass by chance; spend_alpha = "cubes" accounts for it.'
    )
    return Check("Tests", str(iterations), meaning, spent)
