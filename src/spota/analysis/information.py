"""Measure this first: what is it worth to know a parameter exactly before a policy is put on the machine?

A *fixed* policy earns E[J] on average with or without that knowledge: only its return can be predicted better, and its
variance, given ξ_i, is smaller by the first-order share (`sobol`). Knowledge earns something where it changes a
decision. With policies k = 1 … K to choose from, as a run of SPOTA leaves them (the candidate, and references that were
trained on few domains), it is worth the expected value of partial perfect information (Howard 1966),

    EVPPI_i = E_ξi[ max_k E[J_k | ξ_i] ] − max_k E[J_k] ≥ 0.

Training anew for the measured value may earn more; this is what the policies that exist can earn. The maximum over
noisy estimates looks better than it is, for the reason for which the simulation optimization bias exists. Therefore the
rule ξ_i → k is found on some domains and its gain is measured on others: an estimate that errs downwards, and may
come out below zero where there is nothing to gain. Parameters may depend on each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.analysis.standings import mean_interval
from spota.sim.domain import Domains

FOLDS = 5
DEGREE = 3
"""Of the polynomial in the rank of a parameter that predicts a policy's advantage."""
FEWEST = 50
"""Domains below which no rule can be found."""


@dataclass(frozen=True)
class Gain:
    """What a rule earns over the best single policy, on domains that it was not found on."""

    mean: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0


@dataclass(frozen=True)
class Information:
    """The value of knowing one parameter exactly, for a choice among policies."""

    policies: tuple[str, ...]
    best: str
    """The policy that earns most without any knowledge."""
    gains: Mapping[str, Gain]
    """By parameter."""
    everything: Gain
    """If all parameters were known."""
    confidence: float = 0.95

    @property
    def ranking(self) -> list[str]:
        """The parameters by their gain, largest first."""
        return sorted(self.gains, key=lambda name: -self.gains[name].mean)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        gains = {name: vars(gain) for name, gain in self.gains.items()}
        head = {"policies": list(self.policies), "best": self.best, "confidence": self.confidence}
        return {**head, "gains": gains, "everything": vars(self.everything)}


def information(
    key: Key[Array, ""],
    names: Sequence[str],
    returns: Float[np.ndarray, "policies n m"],
    domains: Domains,
    confidence: float = 0.95,
) -> Information:
    """What knowing each parameter would earn; entry (k, i, j) is rollout j of policy k on domain i, with one key.

    For each parameter, E[J_k − J_best | ξ_i] is a cubic in the rank of ξ_i, fitted on four fifths of the domains; there
    another policy is chosen where its advantage exceeds its standard error. The gain is that on the last fifth, for
    each fifth in turn. It takes at least two rollouts per domain to say what it is worth to know everything.
    """
    values = np.asarray(returns, np.float64)
    if values.shape[1] < FEWEST:
        raise ValueError(f"{values.shape[1]} domains are too few to find a rule; take at least {FEWEST}, better 1000.")
    if values.shape[2] < 2:
        raise ValueError(
            "information needs 2 rollouts per domain or more: one chooses a policy, the other measures it."
        )
    Y = values.mean(axis=2).T
    varied = {name: np.asarray(x) for name, x in domains.items() if np.ptp(np.asarray(x)) > 0}
    gains = {name: _gain(key, _cross_fitted(x, Y), confidence) for name, x in varied.items()}
    halves = values[:, :, 0::2].mean(axis=2), values[:, :, 1::2].mean(axis=2)
    perfect = np.mean([_chosen_gain(a, b) for a, b in (halves, halves[::-1])], axis=0)
    best = names[int(Y.mean(axis=0).argmax())]
    return Information(tuple(names), best, gains, _gain(key, perfect, confidence), confidence)


def _cross_fitted(x: Float[np.ndarray, "n"], Y: Float[np.ndarray, "n policies"]) -> Float[np.ndarray, "n"]:
    """The gain on each domain, by a rule that was found on the other folds."""
    from scipy.stats import rankdata  # slow to import

    ranks = 2 * rankdata(x) / x.size - 1
    features = np.polynomial.legendre.legvander(ranks, min(DEGREE, np.unique(x).size - 1))
    fold, gain = np.arange(x.size) % FOLDS, np.zeros(x.size)
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        best = Y[train].mean(axis=0).argmax()
        advantage = _cautious(features[train], Y[train] - Y[train][:, [best]], features[test])
        gain[test] = Y[test, advantage.argmax(axis=1)] - Y[test, best]
        gain[test] = np.where(advantage.max(axis=1) > 0, gain[test], 0.0)
    return gain


def _cautious(
    features: Float[np.ndarray, "n p"], advantage: Float[np.ndarray, "n policies"], at: Float[np.ndarray, "t p"]
) -> Float[np.ndarray, "t policies"]:
    """The fitted advantage, less its standard error, at other features."""
    inverse = np.linalg.pinv(features.T @ features)
    fit = inverse @ features.T @ advantage
    degrees = max(1, features.shape[0] - features.shape[1])
    variance = ((advantage - features @ fit) ** 2).sum(axis=0) / degrees
    leverage = np.einsum("tp,pq,tq->t", at, inverse, at)
    return at @ fit - np.sqrt(np.outer(leverage, variance))


def _chosen_gain(seen: Float[np.ndarray, "policies n"], measured: Float[np.ndarray, "policies n"]) -> np.ndarray:
    """The gain on each domain if the policy that was best there in some rollouts is taken in others."""
    chosen = np.take_along_axis(measured, seen.argmax(axis=0)[None], axis=0)[0]
    return chosen - measured[seen.mean(axis=1).argmax()]


def _gain(key: Key[Array, ""], gains: Float[np.ndarray, "n"], confidence: float) -> Gain:
    low, high = mean_interval(key, jnp.asarray(gains[:, None], jnp.float32), confidence)
    return Gain(float(gains.mean()), low, high)
