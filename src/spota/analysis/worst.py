"""The worst domains of a policy: searched by the cross-entropy method, without leaving the support of ν.

A domain is written as one rank a parameter: the rank of its value among many draws of ν. Ranks between 0 and 1 are
values that ν has drawn itself, whatever its marginals are: continuous, discrete or without bounds. The first round
draws from ν; every later one draws around the worst domains so far. What the search found is then measured with random
numbers that it has not seen, because the worst of many looks worse than it is.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.analysis.evaluate import Tell, nominal, run
from spota.sim import randomness
from spota.sim.domain import DomainDistribution, Domains, Empirical, chosen, count, repeat
from spota.sim.env import Platform, Policy

POOL = 20_000
"""Draws of ν that a rank is read from: its ends lie within 0.1 % of the marginal's mass."""
ELITE = 0.1
"""Share of a round that the next one is drawn around."""
WIDEN = 1.3
"""Factor on the elite's spread, so that the search does not settle too early."""
MEASURED = 200
"""Rollouts of the closing measurement on each domain."""

Score = Callable[[Domains], Float[np.ndarray, "n"]]
"""Domains → what each of them is worth; the search looks for the lowest."""


@dataclass(frozen=True)
class WorstDomain:
    """A domain on which the policy earns little; return and survival are from rollouts that the search has not seen."""

    found: Literal["searched", "drawn"]
    """By the search, or the worst of the first draws from ν itself."""
    returns: float
    survival: float
    domain: Mapping[str, float]
    quantile: Mapping[str, float]
    """Share of ν's draws that lie below the value; 0.5 is the median."""
    recovery: Mapping[str, float]
    """What the return gains if this parameter alone goes back to its nominal value."""

    @property
    def causes(self) -> list[str]:
        """The parameters, most harmful first."""
        return sorted(self.recovery, key=lambda name: -self.recovery[name])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in vars(self).items()}


def worst_domains(
    key: Key[Array, ""],
    env: Platform,
    policy: Policy,
    domains: Domains | None = None,
    *,
    n: int = 1000,
    rounds: int = 6,
    rollouts: int = 4,
    drawn: int = 2,
    tell: Tell | None = None,
) -> tuple[WorstDomain, ...]:
    """The worst domain that a search finds, and the worst ones among ν's own draws (or among `domains`).

    Every domain has the same `rollouts` keys during the search. Rows of an `Empirical` distribution are not mixed: only
    they lie in its support, so the search then looks at n of them and no further.
    """
    k_search, k_own, k_score, k_measure = jax.random.split(key, 4)
    keys, done = jax.random.split(k_score, rollouts), itertools.count(1)

    def score(some: Domains) -> Float[np.ndarray, "n"]:
        values, _ = _means(env, policy, some, keys)
        if tell is not None:
            tell(next(done) / (rounds + 2))
        return values

    own = env.domain.sample(k_own, n) if domains is None else domains
    low = np.argsort(score(own), kind="stable")[:drawn]
    found, _ = search(k_search, env.domain, score, n, rounds)
    candidates = [("searched", _row(found, 0)), *(("drawn", _row(own, int(i))) for i in low)]
    measured = jax.random.split(k_measure, MEASURED)
    worst = [_measure(env, policy, how, row, measured) for how, row in candidates]
    return tuple(sorted(worst, key=lambda w: w.returns))


def search(
    key: Key[Array, ""], domain: DomainDistribution, score: Score, n: int = 1000, rounds: int = 6
) -> tuple[Domains, Float[np.ndarray, "_"]]:
    """The domains of the lowest score and their scores, lowest first: at most a share `ELITE` of n."""
    k_pool, k_rounds = jax.random.split(key)
    keep = max(2, round(ELITE * n))
    if isinstance(domain, Empirical):
        rows = domain.sample(k_pool, n)
        values = score(rows)
        order = np.argsort(values, kind="stable")[:keep]
        return {name: column[order] for name, column in rows.items()}, values[order]
    pool = {name: np.sort(np.asarray(column)) for name, column in domain.sample(k_pool, POOL).items()}
    elite, scores = np.zeros((0, len(pool))), np.zeros(0)
    for i in range(rounds + 1):
        generator = randomness.generator(jax.random.fold_in(k_rounds, i))
        ranks = _propose(generator, elite, n, len(pool))
        elite, scores = np.concatenate([elite, ranks]), np.concatenate([scores, score(_at(pool, ranks))])
        order = np.argsort(scores, kind="stable")[:keep]  # the worst of all rounds
        elite, scores = elite[order], scores[order]
    return _at(pool, elite), scores


def _propose(generator: np.random.Generator, elite: np.ndarray, n: int, d: int) -> Float[np.ndarray, "n d"]:
    """Ranks around the elite, reflected at 0 and 1; without an elite, draws from ν."""
    if not elite.size:
        return generator.random((n, d))
    moved = elite.mean(axis=0) + WIDEN * elite.std(axis=0) * generator.standard_normal((n, d))
    return 1 - np.abs(1 - np.abs(moved) % 2)


def _at(pool: Mapping[str, np.ndarray], ranks: Float[np.ndarray, "n d"]) -> Domains:
    """The values at those ranks: always values that ν has drawn."""
    index = np.round(ranks * (POOL - 1)).astype(int)
    return {name: jnp.asarray(column[index[:, i]]) for i, (name, column) in enumerate(pool.items())}


def _measure(env: Platform, policy: Policy, how: Any, row: Domains, keys: Key[Array, "m"]) -> WorstDomain:
    """Return, survival and causes of one domain: itself, and once more for each parameter at its nominal value."""
    usual, names = nominal(env), list(row)
    variants = {name: np.repeat(np.asarray(column), 1 + len(names)) for name, column in row.items()}
    for i, name in enumerate(names):
        variants[name][1 + i] = usual[name][0]
    returns, survival = _means(env, policy, {name: jnp.asarray(column) for name, column in variants.items()}, keys)
    pool = {name: np.asarray(column) for name, column in env.domain.sample(jax.random.key(0), POOL).items()}
    values = {name: float(column[0]) for name, column in row.items()}
    quantile = {name: float(np.mean(pool[name] < v) + np.mean(pool[name] <= v)) / 2 for name, v in values.items()}
    recovery = {name: float(returns[1 + i] - returns[0]) for i, name in enumerate(names)}
    return WorstDomain(how, float(returns[0]), float(survival[0]), values, quantile, recovery)


def _means(
    env: Platform, policy: Policy, domains: Domains, keys: Key[Array, "m"]
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Mean return and survival on each domain, with the same keys everywhere."""
    n, m = count(domains), keys.shape[0]
    outcome = run(env, policy, repeat(domains, m), randomness.chosen(keys, np.tile(np.arange(m), n)))
    returns, survived = (np.asarray(x, np.float64).reshape(n, m) for x in (outcome.returns, outcome.survived))
    return returns.mean(axis=1), survived.mean(axis=1)


def _row(domains: Domains, i: int) -> Domains:
    return chosen(domains, slice(i, i + 1))
