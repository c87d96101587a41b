"""Are the references strong enough? Some of them train several times as long, and what they gain more is bounded.

References that stop too early make the gap, and so its upper bound, too small, and nothing in the gaps shows it. As
their domains are drawn independently, the first m references say what a longer training would gain on average:

    E[gap to longer references] = E[gap] + E[gain],  gain_j = J(longer_j) − J(usual_j) on the domains of reference j.

A longer training that lost on its own domains shows no weakness of its reference: there the gain counts as zero, which
is the gain of the better of the two, or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from spota.certify.comparison import Solved, returns_of_each
from spota.polopt.solve import Watch
from spota.polopt.solver import Solver
from spota.sim.env import Platform
from spota.stats.bootstrap import t_quantile


@dataclass(frozen=True)
class Effort:
    """What some references gained by a longer training; no gains at all mean that the solver is exact."""

    gains: Float[np.ndarray, "m"]
    """Mean over the domains of each reference, on random numbers that no training has seen."""
    factor: int
    """How many times as long."""

    @property
    def gain(self) -> float:
        """The mean gain."""
        return float(self.gains.mean()) if self.gains.size else 0.0

    def margin(self, alpha: float) -> float:
        """Upper confidence bound on the expected gain by Student's t, never below the mean gain nor below zero."""
        m = self.gains.size
        if m == 0:
            return 0.0
        if m == 1:
            return float("inf")
        reach = t_quantile(m - 1, alpha) * float(self.gains.std(ddof=1)) / m**0.5
        return max(self.gain + max(reach, 0.0), 0.0)


@dataclass(frozen=True)
class Longer:
    """Returns on the domains of some references, rollout by rollout: of their longer trainings, and of themselves."""

    longer: Float[np.ndarray, "m n_r n_J"]
    usual: Float[np.ndarray, "m n_r n_J"]
    factor: int
    """How many times as long."""

    def above(self, floor: float = -np.inf) -> Effort:
        """What each gained, or zero; returns below the floor count as equal to it (`stats.split` says why)."""
        gains = np.maximum(self.longer, floor) - np.maximum(self.usual, floor)
        return Effort(np.maximum(gains.mean(axis=(1, 2)), 0.0), self.factor)


NO_LONGER = Longer(np.zeros((0, 1, 1)), np.zeros((0, 1, 1)), 1)
"""Nothing is gained by more effort than an exact solver has."""
EXACT = NO_LONGER.above()


def joined(parts: Sequence[Longer]) -> Longer:
    """Those of several looks as one."""
    longer, usual = (np.concatenate([getattr(part, name) for part in parts]) for name in ("longer", "usual"))
    return Longer(longer, usual, parts[0].factor)


def train_longer(
    key: Key[Array, ""],
    env: Platform,
    solver: Solver,
    references: Solved,
    starts: Any,
    m: int,
    watch: Watch | None = None,
) -> Solved:
    """The first m references once more, on the same domains and from the same starts, by a solver with more effort."""
    domains = {name: column[:m] for name, column in references.domains.items()}
    first = jax.tree.map(lambda x: x[:m], starts)
    return Solved(domains, solver(jax.random.split(key, m), env, domains, first, watch))


def longer_returns(
    key: Key[Array, ""], env: Platform, longer: Solved, references: Solved, n_J: int, chunk: int | None = None
) -> tuple[Float[np.ndarray, "m n_r n_J"], Float[np.ndarray, "m n_r n_J"]]:
    """Of each longer training and of its reference on their own domains, with the same new random numbers for both."""
    m, n_r = next(iter(longer.domains.values())).shape
    usual = jax.tree.map(lambda x: x[:m], references.policy)
    keys = jax.random.split(key, (m, n_r, n_J))
    first, second = (returns_of_each(env, policies, longer.domains, keys, chunk) for policies in (longer.policy, usual))
    return np.asarray(first, np.float64), np.asarray(second, np.float64)
