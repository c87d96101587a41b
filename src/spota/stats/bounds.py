"""Lower confidence bounds on the mean, and on the mean of the worst share, that hold for every sample size.

The bootstrap and Student's t hold approximately. These hold exactly: P(bound ≤ truth) ≥ 1 − α for any n and
any distribution on [low, high], provided that the samples are i.i.d. and that the range was known *before*
they were seen. Returns have one: with rewards in ]0, 1] and T steps it is [0, T]. All arithmetic is float64
on the host.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from spota.stats.bootstrap import check_alpha

Samples = Float[Array, " n"] | Float[np.ndarray, " n"]
"""One-dimensional floats, of JAX or NumPy."""


def betting(samples: Samples, low: float, high: float, alpha: float = 0.05) -> float:
    """Largest mean that a gambler refutes by growing rich (Waudby-Smith, Ramdas 2023, one-sided).

    If the mean is at most m, the capital K_t(m) = Π_{s≤t} (1 + λ_s (X_s − m)), with every stake λ_s ≥ 0
    chosen before X_s is seen, is a non-negative supermartingale from 1 and ever reaches 1/α with
    probability at most α (Ville). Each m for which it does is rejected.

    The gambler sees one sample after the other: give them as they were drawn, never sorted.
    """
    x = _unit_range(samples, low, high, alpha)
    stakes = _stakes(x, alpha)
    rejected, kept = 0.0, 1.0  # the capital falls with m: the rejected means are an interval, bisect its end
    for _ in range(40):
        middle = (rejected + kept) / 2
        if _log_capital(middle, x, stakes) >= math.log(1 / alpha):
            rejected = middle
        else:
            kept = middle
    return _from_unit(rejected, low, high)


def worst_mean(values: Samples, share: float) -> Float[Any, ""]:
    """The mean of the lowest share of the values, one of them at least; in the values' own library and precision."""
    lowest = values.__array_namespace__().sort(values)[: max(1, round(share * values.size))]
    return lowest.mean()


def worst_share_mean(samples: Samples, low: float, high: float, epsilon: float, alpha: float = 0.05) -> float:
    """Lower bound on CVaR_ε = 1/ε ∫₀^ε Q(u) du, the mean of the lowest share ε; Q is the quantile function.

    With probability 1 − α the distribution function is nowhere more than δ = √(ln(1/α)/(2n)) above the
    empirical one (Dvoretzky, Kiefer, Wolfowitz; Massart 1990). Then Q(u) ≥ Q_n(u − δ) for u > δ, and Q ≥
    `low` elsewhere: a share δ of the weight moves from the upper end of the worst share down to `low`.
    Thomas and Learned-Miller (2019) bound losses from above in this way. If ε ≤ δ only `low` is known: take
    more than ln(1/α)/(2ε²) samples.
    """
    if not 0 < epsilon <= 1:
        raise ValueError(f"epsilon={epsilon}: the worst share is in ]0, 1]; write epsilon=0.1.")
    x = np.sort(_unit_range(samples, low, high, alpha))
    n = x.size
    delta = math.sqrt(math.log(1 / min(alpha, 0.5)) / (2 * n))  # one-sided, proved for α ≤ 1/2
    weights = np.clip(n * (epsilon - delta) - np.arange(n), 0.0, 1.0) / n  # of the order statistics
    return _from_unit(float(weights @ x) / epsilon, low, high)


def _stakes(x: np.ndarray, alpha: float) -> np.ndarray:
    """λ_t = √(2 ln(1/α)/(n σ̂²_{t−1})), best for n samples; σ̂² starts from 1/4, its maximum on [0, 1]."""
    t = np.arange(1, x.size + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    return np.sqrt(2 * math.log(1 / alpha) / (x.size * np.append(0.25, variance[:-1])))


def _log_capital(m: float, x: np.ndarray, stakes: np.ndarray) -> float:
    """max_t ln K_t(m); stakes are cut to 3/(4m), so that a sample of 0 leaves a quarter of the capital."""
    return np.cumsum(np.log1p(np.minimum(stakes, 0.75 / m) * (x - m))).max()


def _unit_range(samples: Samples, low: float, high: float, alpha: float) -> np.ndarray:
    """Check the arguments and map the samples from [low, high] to [0, 1]."""
    check_alpha(alpha)
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"low={low}, high={high} is no range; write the least and the largest possible value, finite.")
    x = np.asarray(samples, dtype=np.float64)
    if x.size == 0:
        raise ValueError("samples is empty; a bound needs at least one sample.")
    slack = 1e-6 * (high - low)  # a float32 return may pass the end of its range by a rounding
    if not np.all((x >= low - slack) & (x <= high + slack)):  # NaN is in no range
        raise ValueError(
            f"samples from {x.min()} to {x.max()} leave the promised range low={low}, high={high}; "
            "write the range that the variable cannot leave, not the one observed."
        )
    return np.clip((x - low) / (high - low), 0.0, 1.0)


def _from_unit(bound: float, low: float, high: float) -> float:
    """Map a bound from the unit range back; no mean is below `low`."""
    return float(low + (high - low) * max(bound, 0.0))
