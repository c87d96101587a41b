"""What still costs return and is not known: for a table that was fitted to recordings of one machine.

Rows of such a table are correlated, so that shares of the variance have no meaning one by one. How much of the return's
variance goes with a parameter is its correlation ratio; how much of the parameter is still unknown is its spread over
that in the platform's own table.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from spota.analysis.evaluate import run
from spota.sim.env import Platform, Policy

BINS = 10
UNKNOWN = 0.5
"""The share of its spread above which a parameter counts as not identified."""
WORTH = 0.02
"""The share of the return's variance below which nobody needs to measure anything."""


@dataclass(frozen=True)
class Unknown:
    """One parameter of a fitted table."""

    name: str
    share: float
    """Of the return's variance, what goes with it."""
    spread: float
    """Its standard deviation over that in the platform's own table."""

    @property
    def worth_measuring(self) -> bool:
        """Whether it costs return and is not identified."""
        return self.share >= WORTH and self.spread >= UNKNOWN

    def __str__(self) -> str:
        """One phrase."""
        return (
            f"{self.name} ({100 * self.share:.0f} % of the return's variance goes with it, and "
            f"{100 * self.spread:.0f} % of its spread is left)"
        )


def unknown(key: Key[Array, ""], env: Platform, policy: Policy, n: int = 1000) -> tuple[Unknown, ...]:
    """Every drawn parameter of a fitted table, the most expensive first."""
    k_domains, k_rollouts = jax.random.split(key)
    drawn = env.domain.sample(k_domains, n)
    earned = np.asarray(run(env, policy, drawn, jax.random.split(k_rollouts, n)).returns[:, 0], np.float64)
    own = {**env.optional, **env.own_domain}
    rows = []
    for name, column in drawn.items():
        values = np.asarray(column, np.float64)
        if np.ptp(values) > 0:
            before = np.std(own[name].marginal.draw(np.random.default_rng(0), 2000)) if name in own else 0.0
            rows.append(Unknown(name, _ratio(values, earned), float(values.std() / before) if before else 1.0))
    return tuple(sorted(rows, key=lambda row: -row.share))


def in_words(rows: tuple[Unknown, ...]) -> str:
    """What to measure next."""
    worth = [row for row in rows if row.worth_measuring]
    if not worth:
        return "Nothing that the recordings leave open costs this policy much return."
    return f"Measure next: {'; '.join(map(str, worth[:3]))}."


def _ratio(values: Float[np.ndarray, "n"], earned: Float[np.ndarray, "n"]) -> float:
    """The correlation ratio η², by bins of equal size, less what chance alone would give."""
    bins = np.array_split(np.argsort(values, kind="stable"), BINS)
    total = earned.var()
    if total <= 0:
        return 0.0
    between = sum(b.size * (earned[b].mean() - earned.mean()) ** 2 for b in bins) / earned.size
    n = earned.size
    return float(np.clip(1 - (1 - between / total) * (n - 1) / (n - BINS), 0.0, 1.0))
