"""One-sided upper confidence bounds on the mean optimality gap, from gap samples [n_G, n_r].

Every method knows two resampling units. `pooled` draws from all n_G · n_r samples as if they were
independent, as in the paper; `reference` draws whole references (rows). The samples of a row share one
reference policy and are correlated, so that `pooled` is too optimistic once n_r > 1. As all rows have n_r
samples, to resample rows is to resample row means: both units become the bootstrap of the mean of a vector
x with m entries.

The functions can be jitted and vmapped; `alpha`, `n_b` and `unit` are static. Mapped over data sets with
*one* key, the weights of the resamples are drawn once and resampling is one matrix product: 20,000 data
sets take seconds.

Fewer than two units say nothing about their spread: every method then answers +inf. Equal units give their
value. No bound is below the mean of the units, which too few resamples could otherwise put it.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float, Scalar
from jaxtyping import PRNGKeyArray as Key
from scipy.special import stdtrit

from spota.text import check_choice

UNITS = ("pooled", "reference")
CHUNK = 250  # resamples drawn at once, which limits the memory


class Drawn(NamedTuple):
    """Resamples of the m units x = mean + scale · y."""

    x: Float[Array, " m"]
    mean: Scalar
    scale: Scalar
    y: Float[Array, " m"]
    shift: Float[Array, " n_b"]
    """(Ḡᴮ − Ḡ) / scale."""
    spread: Float[Array, " n_b"]
    """sᴮ / scale."""


def ucbog(
    key: Key, gaps: Float[Array, "n_G n_r"], alpha: float = 0.05, n_b: int = 1000, unit: str = "pooled"
) -> Scalar:
    """Basic-bootstrap upper bound, eq_UCBOG: 2 Ḡ − Q_α[Ḡᴮ]."""
    return _basic(_drawn(key, gaps, alpha, n_b, unit), alpha)


def _basic(d: Drawn, alpha: float) -> Scalar:
    return _bound(d.x, d.mean - d.scale * jnp.quantile(d.shift, alpha))


def percentile(
    key: Key, gaps: Float[Array, "n_G n_r"], alpha: float = 0.05, n_b: int = 1000, unit: str = "pooled"
) -> Scalar:
    """Percentile-bootstrap upper bound, Q_{1−α}[Ḡᴮ] (Efron 1979)."""
    return _percentile(_drawn(key, gaps, alpha, n_b, unit), alpha)


def _percentile(d: Drawn, alpha: float) -> Scalar:
    return _bound(d.x, d.mean + d.scale * jnp.quantile(d.shift, 1 - alpha))


def bca(key: Key, gaps: Float[Array, "n_G n_r"], alpha: float = 0.05, n_b: int = 1000, unit: str = "pooled") -> Scalar:
    """Percentile bound at a level corrected for bias z₀ and acceleration a (Efron 1987)."""
    return _bca(_drawn(key, gaps, alpha, n_b, unit), alpha)


def _bca(d: Drawn, alpha: float) -> Scalar:
    n_b = d.shift.size
    below = jnp.mean(0.5 * (d.shift < 0) + 0.5 * (d.shift <= 0))  # ties count half
    z_0 = ndtri(jnp.clip(below, 0.5 / n_b, 1 - 0.5 / n_b))
    a = jnp.sum(d.y**3) / (6 * jnp.sum(d.y**2) ** 1.5)  # the jackknife's, in closed form for a mean
    z = z_0 - ndtri(alpha)
    level = jnp.where(a * z < 1, ndtr(z_0 + z / (1 - a * z)), 1.0)  # beyond the pole: the largest resample
    return _bound(d.x, d.mean + d.scale * jnp.quantile(d.shift, level))


def studentized(
    key: Key, gaps: Float[Array, "n_G n_r"], alpha: float = 0.05, n_b: int = 1000, unit: str = "pooled"
) -> Scalar:
    """Bootstrap-t upper bound, Ḡ − s Q_α[(Ḡᴮ − Ḡ)/sᴮ].

    A resample of equal values has no t: below Ḡ it counts as −∞, the safe side, else as 0. If more than a
    share α count as −∞, because there are few units or most gaps are zero, the bound is +inf: such data
    do not hold one.
    """
    return _studentized(_drawn(key, gaps, alpha, n_b, unit), alpha)


def _studentized(d: Drawn, alpha: float) -> Scalar:
    flat = jnp.where(d.shift < 0, -jnp.inf, 0.0)
    t = jnp.where(d.spread > 0, d.shift / jnp.where(d.spread > 0, d.spread, 1.0), flat)
    # Without interpolation ("lower") −∞ stays −∞ instead of becoming NaN.
    return _bound(d.x, d.mean - d.scale * jnp.sqrt(jnp.mean(d.y**2)) * jnp.quantile(t, alpha, method="lower"))


def student_t(
    key: Key, gaps: Float[Array, "n_G n_r"], alpha: float = 0.05, n_b: int = 1000, unit: str = "pooled"
) -> Scalar:
    """Ḡ + t_{m−1,α} s/√m over the m units; with `unit="reference"` Student's t on the n_G reference means.

    Nothing is resampled: `key` and `n_b` are there because all intervals share one signature.
    """
    del key
    x = _units(gaps, alpha, n_b, unit)
    none = jnp.zeros(0)
    return _student_t(Drawn(x, *_standardised(x), none, none), alpha)


def _student_t(d: Drawn, alpha: float) -> Scalar:
    m = d.x.size
    return _bound(d.x, d.mean + d.scale * t_quantile(m - 1, alpha) * jnp.std(d.y, ddof=1) / math.sqrt(m))


Interval = Callable[..., Scalar]
"""(key, gaps, alpha, n_b, unit) → upper bound on the mean gap."""

INTERVALS: dict[str, Interval] = {
    "basic": ucbog,
    "percentile": percentile,
    "bca": bca,
    "studentized": studentized,
    "student_t": student_t,
}
"""Every method under its name; `basic` is the paper's."""


_FORMULAS = {
    "basic": _basic,
    "percentile": _percentile,
    "bca": _bca,
    "studentized": _studentized,
    "student_t": _student_t,
}


def all_intervals(
    key: Key, gaps: Float[Array, "n_G n_r"], alpha: float = 0.05, n_b: int = 1000, largest: float = math.inf
) -> dict[str, float]:
    """Upper bounds by every method and unit, named like `basic_pooled`; all see the same resamples.

    `largest` is the gap that none can exceed, max_return − min_return: no bound does.
    """
    found = {unit: _by_every_method(_drawn(key, gaps, alpha, n_b, unit), alpha) for unit in UNITS}
    return {
        f"{name}_{unit}": min(float(bound), largest)
        for unit, bounds in found.items()
        for name, bound in zip(_FORMULAS, bounds, strict=True)
    }


@partial(jax.jit, static_argnames="alpha")  # one program instead of fifty small ones
def _by_every_method(drawn: Drawn, alpha: float) -> tuple[Scalar, ...]:
    return tuple(formula(drawn, alpha) for formula in _FORMULAS.values())


def shortcomings(n_G: int, n_b: int, alpha: float) -> Iterator[str]:
    """Why these settings cannot give the confidence 1 − α, whatever the gaps are; nothing if they can."""
    check_alpha(alpha)
    enough = math.ceil(1 / alpha)
    if n_G < 2:
        yield f"n_G={n_G}: one reference says nothing about how far references spread; write n_G=20."
    if n_b < enough:
        yield (
            f"n_b={n_b}: the lowest of {n_b} resamples is no {100 * alpha:g} % quantile, which takes {enough} at "
            f"least; write n_b={max(1000, 20 * enough)}."
        )


def t_quantile(dof: int, alpha: float) -> float:
    """Upper α quantile t_{dof,α} of Student's t; +inf without degrees of freedom."""
    return -float(stdtrit(dof, alpha)) if dof > 0 else math.inf


def check_alpha(alpha: float) -> None:
    """Raise a ValueError unless 0 < alpha < 1."""
    if not 0 < alpha < 1:
        hint = min(alpha, 100 - alpha) / 100 if 1 < alpha < 100 else 0.05  # 95 and 5 both mean 0.05
        raise ValueError(f"alpha={alpha}: alpha is a probability of error, between 0 and 1; write alpha={hint:g}.")


def check_samples(name: str, values: Array) -> None:
    """Raise a ValueError if there are no values or some are not finite; a traced array hides the latter."""
    if values.size == 0:
        raise ValueError(f"{name} has shape {values.shape}, no sample at all; give at least one.")
    bad = 0 if isinstance(values, Tracer) else int(np.sum(~np.isfinite(np.asarray(values))))
    if not bad:
        return
    raise ValueError(
        f"{name} has {bad} NaN or infinite of {values.size} samples, and their mean has no bound; look for "
        f"rollouts that diverged, or write jnp.where(jnp.isfinite({name}), {name}, largest_possible_gap)."
    )


def _units(gaps: Float[Array, "n_G n_r"], alpha: float, n_b: int, unit: str) -> Float[Array, " m"]:
    """Check the arguments and return the m values that are resampled."""
    check_alpha(alpha)
    check_choice("unit", unit, UNITS)
    if n_b < 1:
        raise ValueError(f"n_b={n_b}: a bootstrap needs at least one resample; write n_b=1000.")
    gaps = jnp.asarray(gaps)
    check_samples("gaps", gaps)
    return gaps.reshape(-1) if unit == "pooled" else gaps.mean(axis=1)


def _drawn(key: Key, gaps: Float[Array, "n_G n_r"], alpha: float, n_b: int, unit: str) -> Drawn:
    """Check the arguments and resample."""
    x = _units(gaps, alpha, n_b, unit)
    mean, scale, y = _standardised(x)
    return Drawn(x, mean, scale, y, *_resample(key, y, n_b))


def _standardised(x: Float[Array, " m"]) -> tuple[Scalar, Scalar, Float[Array, " m"]]:
    """Mean, scale and y with x = mean + scale · y, |y| ≤ 1: no power of y overflows in float32."""
    mean = x.mean()
    largest = jnp.max(jnp.abs(x - mean))
    scale = jnp.where(largest > 0, largest, 1.0)
    return mean, scale, (x - mean) / scale


@partial(jax.jit, static_argnames="n_b")
def _resample(key: Key, y: Float[Array, " m"], n_b: int) -> tuple[Float[Array, " {n_b}"], Float[Array, " {n_b}"]]:
    """Mean and standard deviation (divisor m) of each of n_b resamples of y; a larger n_b adds to them."""
    powers = jnp.stack([y, y**2], axis=1)

    def moments(chunk):
        counts = _counts(jax.random.fold_in(key, chunk), y.size)
        return jnp.matmul(counts, powers, precision="highest") / y.size

    chunks = jax.lax.map(moments, jnp.arange(math.ceil(n_b / CHUNK)))
    first, second = chunks.reshape(-1, 2)[:n_b].T
    variance = second - first**2
    return first, jnp.sqrt(jnp.where(variance > 1e-5 * second, variance, 0.0))  # less is rounding


def _counts(key: Key, m: int) -> Float[Array, "CHUNK {m}"]:
    """How often each of m values occurs in each of CHUNK resamples."""
    drawn = (jax.random.bits(key, (CHUNK, m)) % m).astype(int)  # off uniform by m/2³²
    return jnp.zeros((CHUNK, m)).at[jnp.arange(CHUNK)[:, None], drawn].add(1.0)


def _bound(x: Float[Array, " m"], bound: Scalar) -> Scalar:
    """The bound, at least the mean; +inf for one unit, and the value of equal ones."""
    if x.size < 2:
        return jnp.asarray(jnp.inf)
    return jnp.where(jnp.max(x) == jnp.min(x), x[0], jnp.maximum(bound, x.mean()))
