"""Sobol indices: which share of a return's variance each input accounts for (Sobol 1993).

The return of one rollout is a function of independent inputs: the domain parameters, and the start state with the noise
as one more input. First order: the share of the variance that goes away, on average, once this input is known. Total:
the share that stays if all *other* inputs are known; it holds interactions. The total share of start and noise is what
remains once the domain is known exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.sim import randomness
from spota.sim.domain import DomainDistribution, Domains, Empirical

NOISE = "start and noise"
"""The input that is no parameter: the start state and the observation noise of a rollout."""
RESAMPLES = 1000

Model = Callable[[Domains, Key[Array, "n"]], Float[np.ndarray, "n"]]
"""(domains, keys) → one return each."""
Rows = tuple[Domains, Key[Array, "n"]]


@dataclass(frozen=True)
class Indices:
    """Sobol indices of a return, with bootstrap intervals [inputs, 2]; the last input is `NOISE`.

    Shares lie between 0 and 1. The estimate of a small one can fall outside, and is moved to the nearest end.
    """

    names: tuple[str, ...]
    first: Float[np.ndarray, "inputs"]
    first_interval: Float[np.ndarray, "inputs 2"]
    total: Float[np.ndarray, "inputs"]
    total_interval: Float[np.ndarray, "inputs 2"]
    mean: float
    std: float
    """Mean and standard deviation of a rollout's return over ν."""
    confidence: float = 0.95

    @property
    def ranking(self) -> list[str]:
        """The parameters by their total index, largest first."""
        order = np.argsort(-self.total, kind="stable")
        return [self.names[i] for i in order if self.names[i] != NOISE]

    @property
    def telling(self) -> list[str]:
        """The parameters that tell something about the return for certain: the share of each alone is above zero."""
        order = np.argsort(-self.first, kind="stable")
        return [self.names[i] for i in order if self.names[i] != NOISE and self.first_interval[i, 0] > 0]

    @property
    def leading(self) -> list[str]:
        """Those of `telling` that may be the one that tells most: no other one is above them for certain."""
        low = {name: self.first_interval[self.names.index(name), 0] for name in self.telling}
        high = {name: self.first_interval[self.names.index(name), 1] for name in self.telling}
        return [name for name in self.telling if high[name] >= max(low.values())]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = {
            name: {
                "first": float(self.first[i]),
                "first_interval": self.first_interval[i].tolist(),
                "total": float(self.total[i]),
                "total_interval": self.total_interval[i].tolist(),
            }
            for i, name in enumerate(self.names)
        }
        return {"mean": self.mean, "std": self.std, "confidence": self.confidence, "inputs": rows}


def sobol(
    key: Key[Array, ""], domain: DomainDistribution, model: Model, n: int = 1000, confidence: float = 0.95
) -> Indices:
    """First-order and total indices of every parameter that varies, and of `NOISE`, from 2n (inputs + 1) rollouts.

    Two independent sets A and B of domains with keys; A_B has one input from B and the rest from A, B_A the reverse.
    The estimators are those of Azzini, Mara, Rosati (2021): an input without effect gets almost exactly 0. Intervals
    are percentiles of a bootstrap over the n rows.
    """
    if isinstance(domain, Empirical):
        raise ValueError(
            "An Empirical distribution draws whole rows, so its parameters depend on each other, and shares of the "
            "variance are not defined: they need independent parameters. Use `information`, which does not."
        )
    if n < 2:
        raise ValueError(f"n = {n}: shares of the variance need at least 2 rows, better 1000.")
    k_A, k_B, k_bootstrap = jax.random.split(key, 3)
    A, B = ((domain.sample(d, n), jax.random.split(r, n)) for d, r in map(jax.random.split, (k_A, k_B)))
    varied = [name for name, p in domain.items() if p.marginal.support[0] < p.marginal.support[1]]
    inputs = (*varied, NOISE)
    sets = [A, B, *(_swapped(A, B, i) for i in inputs), *(_swapped(B, A, i) for i in inputs)]
    rows = {name: jnp.concatenate([domains[name] for domains, _ in sets]) for name in domain}
    f = model(rows, jnp.concatenate([keys for _, keys in sets])).reshape(len(sets), n)
    first, first_interval, total, total_interval = _indices(k_bootstrap, f, confidence)
    mean, std = float(f[:2].mean()), float(f[:2].std())
    return Indices(inputs, first, first_interval, total, total_interval, mean, std, confidence)


def _swapped(rows: Rows, other: Rows, what: str) -> Rows:
    """The rows with one input from the other ones."""
    (domains, keys), (their_domains, their_keys) = rows, other
    return (domains, their_keys) if what == NOISE else ({**domains, what: their_domains[what]}, keys)


def _indices(key: Key[Array, ""], f: Float[np.ndarray, "sets n"], confidence: float) -> tuple[np.ndarray, ...]:
    """First-order and total indices, each with its interval, from returns on A, B, every A_B and every B_A."""
    n, d = f.shape[1], f.shape[0] // 2 - 1
    A, B, A_B, B_A = f[0], f[1], f[2 : 2 + d], f[2 + d :]
    main = 2 * (A - A_B) * (B_A - B)  # its mean is 4 Var(E[f | x_i])
    whole = (A - A_B) ** 2 + (B - B_A) ** 2  # 4 E[Var(f | all but x_i)]
    spread = (A - B) ** 2 + (A_B - B_A) ** 2  # 4 Var(f)
    generator = randomness.generator(key)
    weights = generator.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(float)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    result = []
    for part in (main, whole):
        resampled = _ratio(weights @ part.T, weights @ spread.T)
        result += [_ratio(part.sum(axis=1), spread.sum(axis=1)), np.quantile(resampled, tails, axis=0).T]
    return tuple(np.clip(share, 0.0, 1.0) for share in result)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Shares; of no variance, none."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
