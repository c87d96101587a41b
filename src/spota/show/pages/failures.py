"""The machines on which a policy fails: how many there are, what sets them apart, and which of them to show.

A policy fails on a machine by the certificate's own definition: its return is more than `FAILURE` of the range of
returns below a level that 95 % of the machines reach. A parameter sets the failing machines apart if their ranks among
all draws differ from those of the others by more than chance (Mann-Whitney). The same test on the distance from the
middle rank finds parameters that do harm at both ends.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from jaxtyping import Bool, Float

ERROR = 0.01
"""The probability that chance names any parameter at all; the tests of all parameters share it."""
FEWEST = 10
"""With fewer failing machines nothing is said about what they have in common."""
PLACED = 200
"""Failing machines whose places a figure shows."""

Values = Float[np.ndarray, " n"]
Failed = Bool[np.ndarray, " n"]


@dataclass(frozen=True)
class Trait:
    """A parameter that sets the failing machines apart."""

    name: str
    where: str
    """Where its values lie on failing machines: high, low, at both ends, one more than the other, or in the middle."""
    quantile: float
    """Share of all draws that lie below the failing machines' median."""
    failing: tuple[float, float]
    everywhere: tuple[float, float]
    """The middle half of its values, on the failing machines and on all."""
    places: tuple[float, ...]
    """Ranks of failing machines, from 0, the smallest value that was drawn, to 1."""
    strength: float
    """By how much a failing machine is more likely than not to lie further in that direction; 0.5 is always."""


@dataclass(frozen=True)
class Failures:
    """How often a policy fails on random machines, and what these have in common."""

    n: int
    """Machines that were tried, with one rollout each."""
    count: int
    """Machines on which it failed."""
    level: float
    shortfall: float
    """It fails if its return is more than `shortfall` below `level`."""
    rare: bool
    """Whether there can be such returns; if not, the level itself is a failure, on one machine in twenty or more."""
    traits: tuple[Trait, ...]
    """The strongest first."""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Failures":
        """Read what `dataclasses.asdict` made of it."""
        pairs = ("failing", "everywhere", "places")
        traits = [Trait(**{**trait, **{name: tuple(trait[name]) for name in pairs}}) for trait in document["traits"]]
        return cls(**{**document, "traits": tuple(traits)})


def traits(drawn: Mapping[str, Values], failed: Failed) -> tuple[Trait, ...]:
    """The parameters that set failing machines apart, the strongest first; none if too few failed, or all did."""
    if failed.sum() < FEWEST or failed.all():
        return ()
    found = [_trait(name, values, failed, ERROR / (2 * len(drawn))) for name, values in drawn.items()]
    return tuple(sorted((trait for trait in found if trait is not None), key=lambda trait: -trait.strength))


def examples(returns: Values, failed: Failed) -> list[int]:
    """Three failing machines, from a mild failure to a severe one: the quartiles by return; fewer if few failed."""
    order = np.flatnonzero(failed)[np.argsort(-returns[failed], kind="stable")]
    places = sorted({int(q * order.size) for q in (0.25, 0.5, 0.75)}) if order.size else []
    return [int(order[i]) for i in places]


def shift(ranks: Values, failed: Failed) -> tuple[float, float]:
    """Mann-Whitney: P(a failing machine lies higher than another one) − ½, ties halved, and its two-sided p-value."""
    n, n_failed = ranks.size, int(failed.sum())
    excess = float(ranks[failed].mean() - ranks.mean())
    spread = math.sqrt(ranks.var() / n_failed * (n - n_failed) / (n - 1))
    p = 2 * float(scipy.special.ndtr(-abs(excess) / spread)) if spread > 0 else 1.0
    return excess * n / (n - n_failed), p


def ranks(values: Values) -> Values:
    """The share of draws below each value, half of the equal ones included."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ((np.cumsum(counts) - counts / 2) / values.size)[which]


def _trait(name: str, values: Values, failed: Failed, error: float) -> Trait | None:
    """What the stronger of the two tests says, unless chance would say it, too."""
    place = ranks(values)
    tests = {"shift": shift(place, failed), "spread": shift(ranks(np.abs(place - 0.5)), failed)}
    certain = {test: strength for test, (strength, p) in tests.items() if p < error}
    if not certain:
        return None
    return Trait(
        name=name,
        where=_where(certain),
        quantile=float(np.median(place[failed])),
        failing=_middle(values[failed]),
        everywhere=_middle(values),
        places=tuple(place[failed][:PLACED].tolist()),
        strength=max(map(abs, certain.values())),
    )


def _where(certain: Mapping[str, float]) -> str:
    """Where the failing machines lie, in words, by the tests that are certain."""
    shifted, spread = certain.get("shift", 0.0), certain.get("spread", 0.0)
    end, other = ("high", "low") if shifted > 0 else ("low", "high")
    if abs(shifted) >= abs(spread):
        return end
    if spread < 0:
        return "in the middle"
    return f"{end}, sometimes {other}" if shifted else "at both ends"


def _middle(values: Values) -> tuple[float, float]:
    low, high = np.quantile(values, (0.25, 0.75))
    return float(low), float(high)
