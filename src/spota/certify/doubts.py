"""Reasons not to trust a certificate, in plain words.

A certificate keeps them, and `spota verify` computes them anew: another word here makes older runs look edited.
"""

from collections.abc import Iterator

from spota.certify.certificate import Certificate
from spota.text import figure, percent

FEW_REFERENCES = 10
MANY_LOSE = 0.1
MUCH_OF_THE_GAP = 1 / 3
ALMOST_NOTHING = 0.1
MUCH_MORE = 0.25
"""References that gain this share of the mean gap by a longer training are not done."""
HARDLY_ANYTHING = 0.02
"""A gain below this share of the threshold decides nothing."""


def doubts(c: Certificate) -> Iterator[str]:
    """Reasons not to trust a certificate, in plain words, the gravest first."""
    if c.performance and c.performance.in_range and c.performance.share_of_range < ALMOST_NOTHING:
        yield (
            f"The policy earns almost nothing on unseen domains: {figure(c.performance.mean)} on average, of at most "
            f"{figure(c.performance.high)}. References that start from it may be as weak, and then a small gap means "
            "nothing. Train it first: more iterations, or another optimizer."
        )
    if not decided_without_references(c):
        yield from _about_references(c)
    if c.n_G < FEW_REFERENCES:
        yield f"Only {c.n_G} references were compared; below {FEW_REFERENCES} every interval is a guess. Set n_G to 20."
    if c.split is not None and rare_failures_decide(c):
        yield (
            f"Rare failures alone may cost {figure(c.split.rare.bound)} on average, more than the threshold: no number "
            "of references certifies this policy. Train it on more domains, or measure more unseen ones."
        )
    if one_domain_decides(c):
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
            "platform states (min_reward, max_reward); without it there are no bounds on the performance, and no split "
            "of the loss."
        )


def decided_without_references(c: Certificate) -> bool:
    """Whether the policy reaches the largest return wherever it does not fail: then no reference can earn more."""
    return c.method == "split" and c.split is not None and c.split.level >= c.max_return


def _about_references(c: Certificate) -> Iterator[str]:
    """Signs that references are weak."""
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


def still_improving(c: Certificate) -> bool:
    """Whether a longer training gains so much that the references cannot count as the best for their domains."""
    gain = c.effort_gain or 0.0
    return gain > MUCH_MORE * c.mean_gap and gain > HARDLY_ANYTHING * c.threshold


def one_domain_decides(c: Certificate) -> bool:
    """Whether one gap carries much of the mean; the split does not take the mean of crashes from so few domains."""
    return c.method != "split" and c.largest_gap_share > MUCH_OF_THE_GAP and c.n_G * c.n_r > 1


def rare_failures_decide(c: Certificate) -> bool:
    """Whether what the policy loses below its level is too much already."""
    return c.method == "split" and c.split is not None and c.split.rare.bound > c.threshold


def repeated(c: Certificate, iteration: int) -> Iterator[str]:
    """A run tests its candidates until one passes: what that does to the confidence, unless α is spent over them."""
    if c.certified and iteration > 1 and c.spending == "none":
        each = c.alpha + c.effort_alpha
        luck = percent(min(iteration * each, 1.0))
        yield (
            f"This is the run's candidate number {iteration}; those before it were refused. Each was tested at "
            f"{percent(each)}, so that the chance of passing one of them by luck adds up to at most {luck}. "
            "spend_alpha = cubes keeps it at that of one test."
        )
