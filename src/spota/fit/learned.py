"""What a fit has learned: parameter by parameter, and in combinations that only occur together."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

KNOWN = 0.5
"""A parameter is identified if its spread is at most this share of what it was."""
PART = 0.35
"""A parameter belongs to a combination if its part in it is at least this."""
EDGE = 0.03
"""Of the prior's range: where a quarter of the rows are nearer to its end than this, the end holds them back."""


@dataclass(frozen=True)
class Learned:
    """One parameter before and after."""

    name: str
    unit: str
    prior_mean: float
    prior_std: float
    mean: float
    std: float
    low: float
    high: float
    """The middle 90 % of the rows."""
    at_edge: str
    """Which end of the prior holds it back: lower, upper, or nothing."""

    @property
    def ratio(self) -> float:
        """Its spread over what it was; 1 is nothing learned."""
        return self.std / self.prior_std if self.prior_std > 0 else 0.0

    def held_back(self, possible: tuple[float, float]) -> bool:
        """Whether the prior's end holds it back, and not the end of what is physically possible."""
        room = self.low - possible[0] if self.at_edge == "lower" else possible[1] - self.high
        return bool(self.at_edge) and room > EDGE * self.prior_std

    @property
    def identified(self) -> bool:
        """Whether it is known much better than before."""
        return self.ratio <= KNOWN


@dataclass(frozen=True)
class Combination:
    """Parameters that are known together and not alone."""

    parts: tuple[tuple[str, float], ...]
    """Names and weights, in prior standard deviations; the largest first."""
    ratio: float
    """The spread of the combination over what it was."""

    def __str__(self) -> str:
        """In words."""
        lead = self.parts[0][1]
        named = [f"{name} ({'+' if weight * lead > 0 else '−'})" for name, weight in self.parts]
        return f"{', '.join(named)}: known together to {100 * self.ratio:.0f} % of the prior's spread"


def learned(
    names: tuple[str, ...],
    units: dict[str, str],
    before: Float[np.ndarray, "p m"],
    after: Float[np.ndarray, "p draws"],
    ends: dict[str, tuple[float, float]],
) -> tuple[Learned, ...]:
    """Every parameter, the best known first."""
    rows = []
    for j, name in enumerate(names):
        low, high = np.quantile(after[j], [0.05, 0.95])
        rows.append(
            Learned(name, units[name], float(before[j].mean()), float(before[j].std()), float(after[j].mean()),
                    float(after[j].std()), float(low), float(high), _edge(after[j], ends[name]))
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: row.ratio))


def combinations(names: tuple[str, ...], z: Float[np.ndarray, "draws p"]) -> tuple[Combination, ...]:
    """Directions of the coordinates, in which the prior is N(0, I), that are known much better than before."""
    values, vectors = np.linalg.eigh(np.cov(z.T))
    found = []
    for value, vector in zip(values, vectors.T, strict=True):
        ratio = float(np.sqrt(max(value, 0.0)))
        parts = [(names[j], float(vector[j])) for j in np.argsort(-np.abs(vector)) if abs(vector[j]) >= PART]
        if ratio <= KNOWN and len(parts) > 1:
            found.append(Combination(tuple(parts), ratio))
    return tuple(found)


def _edge(values: np.ndarray, ends: tuple[float, float]) -> str:
    low, high = ends
    margin = EDGE * (high - low)
    if np.mean(values < low + margin) > 0.25:
        return "lower"
    return "upper" if np.mean(values > high - margin) > 0.25 else ""
