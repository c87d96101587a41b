"""Bounds on the optimality gap that know of rare crashes: the gap split in two at a level of return.

A policy that crashes on one domain in a hundred loses there most of what it loses anywhere, and a few dozen domains do
not show it. With C and R the returns of the policy and of a reference, and f(x) = max(x, c) for a level c,

    E[R − C] = E[R − f(C)] + E[f(C) − C].

The first part, the *ordinary* loss, has no crash in it: few domains are enough, and it is bounded over references. The
second, the *rare* loss, is about the policy alone: 20,000 unseen domains take seconds, and as it lies in [0, c −
min_return] it has a bound that holds at any size (`bounds.betting`). α is shared between the two.

On a machine that nobody can hold the reference fails, too, and one such domain among a hundred would spread the first
part more than all others together. So R counts as max(R, d), for a floor d below c: that is at least R, and the bound
stays true.

c, d = crash_level(pilot_returns), crash_level(pilot_returns, FLOOR)  # from domains that serve nothing else
split_upper(candidate, reference, unseen, c, 0.0, 2500.0, floor=d).bound  # 24.8

Everything is float64 NumPy on the host, and takes milliseconds.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float

from spota.stats.bootstrap import check_alpha, t_quantile
from spota.stats.bounds import Samples, betting

Returns = Float[Array, "n_G n_r n_J"] | Float[np.ndarray, "n_G n_r n_J"]
"""Rollout j on domain ξ_i^k of reference k, with the same random numbers for policy and reference."""

QUANTILE = 0.05
"""The policy's returns below this quantile count as rare; on the Cart-Pole 5 to 20 % serve equally, 1 % less well."""
FLOOR = 0.01
"""References' returns below this quantile of the policy's count as equal to it. With 5 %, the level itself, they count
for 0.3 (Cart-Pole) and 5 (Ball-Balancer) more than they are on average, with 1 % for 0 and 0.1 (docs/results.md)."""
SHARE = 0.8
"""The share of α for the ordinary loss: a few references leave more open than thousands of unseen domains."""
FAILURE = 0.2
"""A policy fails on a domain if it falls short of the level by more than this share of the range of returns."""


@dataclass(frozen=True)
class Part:
    """One of the two parts of a gap."""

    mean: float
    bound: float
    n: int
    """Domains that it was measured on: those of all references, or unseen ones."""
    alpha: float
    """The probability that the bound is wrong."""


@dataclass(frozen=True)
class Split:
    """A gap in two parts, and a bound on their sum."""

    ordinary: Part
    """E[max(R, d) − f(C)]: what references gain where the policy does not fail."""
    rare: Part
    """E[f(C) − C]: what the policy loses below the level."""
    level: float
    """c: the return below which losses count as rare."""
    floor: float
    """d: what a reference's return counts as at least."""
    failing: float
    """Share of the unseen domains on which the policy fails: more than `shortfall` below the level."""
    shortfall: float
    """FAILURE of the range of returns."""
    failing_loss: float
    """What these domains contribute to the mean of the rare loss."""
    bound: float
    """On the whole gap: never on the wrong side of its mean, and within what returns can differ by."""

    @property
    def mean(self) -> float:
        """The estimate of the gap."""
        return self.ordinary.mean + self.rare.mean

    @property
    def alpha(self) -> float:
        """The probability that the bound is wrong."""
        return self.ordinary.alpha + self.rare.alpha

    @property
    def carried(self) -> float:
        """The share of the mean gap that the failures carry."""
        return min(self.failing_loss / self.mean, 1.0) if self.failing_loss > 0 and self.mean > 0 else 0.0


def crash_level(pilot_returns: Samples, quantile: float = QUANTILE) -> float:
    """The level c of a policy: a low quantile of its returns, one rollout per domain.

    The pilot's domains must serve nothing else: a level that was chosen on the data of a bound makes it too small.
    """
    if not 0 <= quantile < 1:
        raise ValueError(f"quantile={quantile}: the share of rare returns is in [0, 1[; write quantile={QUANTILE}.")
    returns = np.asarray(pilot_returns, np.float64)
    if returns.size == 0 or not np.isfinite(returns).all():
        raise ValueError(f"pilot_returns has {returns.size} values, not all finite or none at all; give about 1000.")
    return float(np.quantile(returns, quantile, method="lower"))


def split_upper(
    candidate_returns: Returns,
    reference_returns: Returns,
    unseen_returns: Samples,
    level: float,
    min_return: float,
    max_return: float,
    alpha: float = 0.05,
    share: float = SHARE,
    floor: float = -math.inf,
) -> Split:
    """Upper bound on the mean gap to the references.

    Give as `reference_returns` those of the best policy known for the domains of each reference
    (`gap.best_known_returns`): with a reference that lost against the candidate, the gap would be too small.
    `unseen_returns` are the candidate's on unseen domains, one rollout each, in the order in which they were drawn.
    """
    gains, losses = _parts(candidate_returns, reference_returns, unseen_returns, level, floor, min_return, max_return)
    alphas = _shared(alpha, share)
    most = min(float(reference_bound(gains, alphas[0])), max_return - level)  # as f(C) ≥ c
    ordinary = Part(float(gains.mean()), most, gains.size, alphas[0])
    rare = Part(float(losses.mean()), rare_bound(losses, level - min_return, alphas[1]), losses.size, alphas[1])
    bound = max(ordinary.bound + rare.bound, ordinary.mean + rare.mean, 0.0)
    return Split(ordinary, rare, level, floor, *_failures(losses, max_return - min_return), bound)


def gap_at_least(
    challenger_returns: Samples, candidate_returns: Samples, min_return: float, max_return: float, alpha: float = 0.05
) -> float:
    """Lower bound on the optimality gap G(θᶜ) itself, from one other policy on unseen domains; holds at any size.

    Entry i of both arrays is one rollout on domain i with the same random numbers. The challenger, a reference for
    instance, must have been chosen before these domains were drawn. It is not better than the optimum, so that what it
    gains is at most the gap.
    """
    gains = np.asarray(challenger_returns, np.float64) - np.asarray(candidate_returns, np.float64)
    width = max_return - min_return
    return max(betting(gains, -width, width, alpha), 0.0)


def reference_bound(gains: Float[np.ndarray, "*sets n_G n_r"], alpha: float) -> Float[np.ndarray, "*sets"]:
    """Upper bound on the mean of gains[k, i] of reference k on domain i, for skewed gains of few references.

    Student's t on the n_G reference means, with two corrections; docs/coverage.md has what each is worth.

    A long upper tail that few references did not show makes t too small. One more reference is therefore imagined, as
    far above the best as the next record of an exponential law is on average, (best − mean)/ln n_G. It counts for
    mean and spread, but is no evidence: n_G and the degrees of freedom stay.

    The domains of a reference are independent, its gains there rarely less than independent. If the means spread less
    than all n_G n_r gains say they should, this is luck: the larger of the two standard errors counts.

    A single reference has no bound: +inf.
    """
    *sets, n_G, n_r = gains.shape
    if n_G < 2:
        return np.full(sets, math.inf)
    means = gains.mean(axis=-1)
    best = means.max(axis=-1, keepdims=True)
    imagined = best + (best - means.mean(axis=-1, keepdims=True)) / math.log(n_G)
    means = np.concatenate([means, imagined], axis=-1)
    over_references = means.std(axis=-1, ddof=1) / math.sqrt(n_G)
    over_domains = gains.std(axis=(-2, -1), ddof=1) / math.sqrt(n_G * n_r)
    return np.asarray(means.mean(axis=-1) + t_quantile(n_G - 1, alpha) * np.maximum(over_references, over_domains))


def rare_bound(losses: Float[np.ndarray, " n"], largest: float, alpha: float) -> float:
    """Upper bound on the mean of losses in [0, largest]; a level at the least return leaves nothing to lose."""
    return -betting(-losses, -largest, 0.0, alpha) if largest > 0 else 0.0


def _parts(
    candidate_returns: Returns,
    reference_returns: Returns,
    unseen_returns: Samples,
    level: float,
    floor: float,
    min_return: float,
    max_return: float,
) -> tuple[Float[np.ndarray, "n_G n_r"], Float[np.ndarray, " n"]]:
    """max(R, d) − f(C) of each reference and domain, f(C) − C of each unseen domain; both of single rollouts."""
    if not min_return <= level <= max_return:
        raise ValueError(
            f"level={level} is not a return between {min_return} and {max_return}; write crash_level(pilot_returns)."
        )
    if not floor <= level:
        raise ValueError(f"floor={floor} is above level={level}; write crash_level(pilot_returns, {FLOOR}).")
    candidate, reference, unseen = (
        _within(name, returns, min_return, max_return)
        for name, returns in (
            ("candidate_returns", candidate_returns),
            ("reference_returns", reference_returns),
            ("unseen_returns", unseen_returns),
        )
    )
    gains = (np.maximum(reference, floor) - np.maximum(candidate, level)).mean(axis=-1)
    return gains, np.maximum(unseen, level) - unseen


def _failures(losses: Float[np.ndarray, " n"], width: float) -> tuple[float, float, float]:
    """Share of the domains on which the policy fails, the shortfall that this takes, and the mean loss there."""
    failed = losses > FAILURE * width
    return float(failed.mean()), FAILURE * width, float(np.where(failed, losses, 0.0).mean())


def in_range(returns: Returns | Samples, low: float, high: float) -> bool:
    """Whether returns keep to the range that was promised for them; NaN is in no range."""
    x = np.asarray(returns, np.float64)
    slack = 1e-6 * (high - low)  # a float32 return may pass the end of its range by a rounding
    return bool(np.all((x >= low - slack) & (x <= high + slack)))


def _within(name: str, returns: Returns | Samples, low: float, high: float) -> np.ndarray:
    """The returns in float64, once it is sure that they keep to their range."""
    x = np.asarray(returns, np.float64)
    if x.size == 0:
        raise ValueError(f"{name} has shape {x.shape}, no return at all; give at least one.")
    if not in_range(x, low, high):
        raise ValueError(
            f"{name} from {x.min()} to {x.max()} leave the range of returns, {low} to {high}; look for rollouts that "
            "diverged, or write the min_return and max_return that no rollout can pass."
        )
    return np.clip(x, low, high)


def _shared(alpha: float, share: float) -> tuple[float, float]:
    check_alpha(alpha)
    if not 0 < share < 1:
        raise ValueError(f"share={share}: both parts of the gap need a share of alpha; write share={SHARE}.")
    return alpha * share, alpha * (1 - share)
