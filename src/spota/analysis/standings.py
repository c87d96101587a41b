"""Policies side by side on the same domains, and by how much one is better than another, with confidence intervals.

policies = {"pd": find("pd", env), "mine": find("runs/a", env)}
print(*compare(jax.random.key(0), env, policies, domains).differences)   # pd is worse than mine by 31 [24, 38].
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from spota.analysis.evaluate import Policies, Tell, check_request, roomy, run, within
from spota.runs.training import statistics
from spota.sim.domain import Domains, count, repeat
from spota.sim.env import Platform
from spota.sim.randomness import reshaped
from spota.sim.rollout import Outcome
from spota.stats.bootstrap import check_alpha, studentized
from spota.text import figure

RESAMPLES = 4000
"""Of the bootstrap behind an interval."""


@dataclass(frozen=True)
class Difference:
    """By how much a policy earns more than another on the same domains, with a confidence interval."""

    policy: str
    other: str
    mean: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        """In words."""
        if self.low > 0:
            return f"{self.policy} is better than {self.other} by {_interval(self.mean, self.low, self.high)}."
        if self.high < 0:
            return f"{self.policy} is worse than {self.other} by {_interval(-self.mean, -self.high, -self.low)}."
        how = _interval(self.mean, self.low, self.high)
        return f"{self.policy} and {self.other} cannot be told apart: the difference is {how}."


@dataclass(frozen=True)
class Standings:
    """Policies side by side on the same domains; differences are those of every two, in the order of the policies."""

    env: str
    max_return: float
    noise: bool
    outcomes: Mapping[str, Outcome]
    """Returns and survival [domains, rollouts] by policy."""
    differences: tuple[Difference, ...]

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """Mean, standard deviation, worst-20 % mean, 10 % quantile (each over domains) and survival by policy."""
        return {
            name: {
                **statistics(outcome),
                "quantile_10": float(np.quantile(np.asarray(outcome.returns).mean(axis=1), 0.1)),
            }
            for name, outcome in self.outcomes.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        n, m = next(iter(self.outcomes.values())).returns.shape
        head = {"env": self.env, "max_return": self.max_return, "noise": self.noise, "domains": n, "rollouts": m}
        pairs = [{**vars(d), "words": str(d)} for d in self.differences]
        return {**head, "policies": self.rows, "differences": pairs}


def compare(
    key: Key[Array, ""],
    env: Platform,
    policies: Policies,
    domains: Domains,
    rollouts: int = 1,
    confidence: float = 0.95,
    tell: Tell | None = None,
) -> Standings:
    """Run every policy on the same domains with the same keys; see `mean_interval` for the intervals."""
    check_request(policies, rollouts)
    env = roomy(env, domains)
    k_rollouts, k_bootstrap = jax.random.split(key)
    keys = jax.random.split(k_rollouts, (count(domains), rollouts))
    rows, outcomes = repeat(domains, rollouts), {}
    for i, (name, policy) in enumerate(policies.items()):
        flat = run(env, policy, rows, reshaped(keys, -1), within(tell, i, len(policies)))
        outcomes[name] = Outcome(flat.returns.reshape(keys.shape), flat.survived.reshape(keys.shape))
    differences = tuple(
        difference(k_bootstrap, a, b, outcomes[a].returns, outcomes[b].returns, confidence)
        for a, b in itertools.combinations(outcomes, 2)
    )
    return Standings(env.name, env.max_return, env.effects.noise is not None, outcomes, differences)


def difference(
    key: Key[Array, ""],
    policy: str,
    other: str,
    returns: Float[Array | np.ndarray, "n m"],
    other_returns: Float[Array | np.ndarray, "n m"],
    confidence: float = 0.95,
) -> Difference:
    """By how much `returns` exceed `other_returns`; entry (i, j) of both is rollout j on domain i, with one key."""
    samples = returns - other_returns
    low, high = mean_interval(key, samples, confidence)
    return Difference(policy, other, float(np.asarray(samples, np.float64).mean()), low, high, confidence)


def mean_interval(
    key: Key[Array, ""], samples: Float[Array | np.ndarray, "n m"], confidence: float = 0.95
) -> tuple[float, float]:
    """A two-sided interval on the mean over domains: the bootstrap-t, resampling whole domains.

    Paired returns are skewed, as a few domains fail for one policy only; docs/coverage.md has what other intervals then
    promise and do not keep. The m rollouts of a domain are one unit, because they share its parameters. An end is
    infinite if the samples do not hold one, e.g. with one domain, or if all but two or three are equal.
    """
    check_alpha(1 - confidence)
    below, above = np.asarray(_upper_ends(key, np.stack([-samples, samples]), (1 - confidence) / 2), np.float64)
    return -float(below), float(above)


@partial(jax.jit, static_argnames="alpha")  # one program instead of twenty small ones
def _upper_ends(
    key: Key[Array, ""], samples: Float[Array | np.ndarray, "sides n m"], alpha: float
) -> Float[Array, "sides"]:
    return jax.vmap(lambda some: studentized(key, some, alpha, RESAMPLES, "reference"))(samples)


def _interval(mean: float, low: float, high: float) -> str:
    return f"{figure(mean)} [{figure(low)}, {figure(high)}]"
