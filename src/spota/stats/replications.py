"""Gap intervals of stochastic programming: MRP (Mak, Morton, Wood 1999), I2RP, A2RP (Bayraksan, Morton 2006).

All three assume that the candidate was fixed before the replications were drawn, that every replication
draws its own n i.i.d. domains and solves the approximated problem on them to *global* optimality, and that
the sample is large enough for the central limit theorem. The gap of a replication then overestimates the
true gap in expectation (eq_optgap_final), an error on the safe side. References that are only locally
optimal break the second assumption and make every bound too small: look at the share of negative gaps
first.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from spota.stats.bootstrap import check_alpha, check_samples, t_quantile


class GapBound(eqx.Module):
    """A gap estimate with its one-sided interval [0, upper]."""

    gap: Scalar
    """Point estimate of the optimality gap."""
    variance: Scalar
    """Sample variance that the interval is built on; +inf if a single sample is all there is."""
    upper: Scalar
    """Upper end of the interval at level 1 − α; +inf if the variance is unknown."""


def mrp(gap_estimates: Float[Array, " n_G"], alpha: float = 0.05) -> GapBound:
    """Multiple replications: the mean of Ĝ_n^k (eq_optgap_approx) over k = 1 … n_G, plus t_{n_G−1,α} s/√n_G.

    Asymptotic in the number of replications (30 is customary), for any number n of domains within each.
    """
    gap_estimates = _checked("gap_estimates", gap_estimates, alpha)
    n_G = gap_estimates.size
    return _bound(gap_estimates.mean(), _variance(gap_estimates[None])[0], n_G, n_G - 1, alpha)


def i2rp(gaps: Float[Array, "2 n"], alpha: float = 0.05) -> GapBound:
    """Independent two replications: gap of the first, deviation of the second, Ĝ₁ + t_{n−1,α} s₂/√n.

    `gaps[r, i]` is the gap on domain i of replication r. If gap and deviation came from one replication, an
    optimum that happens to coincide with the candidate would make both zero, an interval without width;
    from independent ones this takes two coincidences. Asymptotic in the number n of domains.
    """
    gaps = _checked("gaps", gaps, alpha)
    n = gaps.shape[1]
    return _bound(gaps[0].mean(), _variance(gaps)[1], n, n - 1, alpha)


def a2rp(gaps: Float[Array, "2 n"], alpha: float = 0.05) -> GapBound:
    """Averaged two replications: means of both gaps and of both variances, Ĝ + t_{2(n−1),α} s/√(2n).

    Like I2RP, but every sample serves both numbers, so it is tighter. The variances are taken about each
    replication's own mean and their average has 2 (n − 1) degrees of freedom. The theory is asymptotic in n
    and holds for any quantile that tends to the normal one; this is the one that is exact for normal gaps.
    """
    gaps = _checked("gaps", gaps, alpha)
    n = gaps.shape[1]
    return _bound(gaps.mean(), _variance(gaps).mean(), 2 * n, 2 * (n - 1), alpha)


def _checked(name: str, values: Array, alpha: float) -> Array:
    """The values as an array, once the arguments are checked."""
    check_alpha(alpha)
    values = jnp.asarray(values)
    check_samples(name, values)
    return values


def _variance(gaps: Float[Array, "r n"]) -> Float[Array, " r"]:
    """Sample variance of each row; +inf where a single sample has none."""
    return jnp.var(gaps, axis=1, ddof=1) if gaps.shape[1] > 1 else jnp.full(gaps.shape[0], jnp.inf)


def _bound(gap: Scalar, variance: Scalar, n: int, dof: int, alpha: float) -> GapBound:
    """Ĝ + t_{dof,α} √(variance/n)."""
    upper = gap + t_quantile(dof, alpha) * jnp.sqrt(variance / n) if dof > 0 else jnp.asarray(jnp.inf)
    return GapBound(gap, variance, upper)
