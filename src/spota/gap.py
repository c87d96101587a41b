"""Optimality gap samples, outlier rejection, and the definitions they estimate: arrays in, arrays out."""

from collections.abc import Iterable
from difflib import get_close_matches

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

RULES = ("first", "best")


def gap_samples(
    reference_returns: Float[Array, "n_G n_r n_J"], candidate_returns: Float[Array, "n_G n_r n_J"]
) -> Float[Array, "n_G n_r"]:
    """Gap Ĝ_{n_r,i}^k of the candidate against reference k on its domain ξ_i^k, eq_optgap_sample.

    Entry (k, i, j) of both arrays is rollout j on domain ξ_i^k, with the same random numbers in both.
    """
    # Differences first, then their mean: a gap of 0.01 between returns of 2000 survives float32.
    return jnp.mean(jnp.asarray(reference_returns) - jnp.asarray(candidate_returns), axis=-1)


def optimality_gap_estimate(
    optimum_returns: Float[Array, "*batch n"], candidate_returns: Float[Array, "*batch n"]
) -> Float[Array, "*batch"]:
    """Ĝ_n(θᶜ) = Ĵ_n(θ*_n) − Ĵ_n(θᶜ), eq_optgap_approx: returns of both policies on the same n domains."""
    return jnp.mean(jnp.asarray(optimum_returns) - jnp.asarray(candidate_returns), axis=-1)


def simulation_optimization_bias(sample_optima: Float[Array, " n_s"], true_optimum: float | Float[Array, ""]) -> Scalar:
    """E[max_θ Ĵ_n(θ)] − max_θ E[J(θ, ξ)], eq_SOB_def, from the optima on n_s independent sets."""
    return jnp.mean(jnp.asarray(sample_optima) - true_optimum)


class Gaps(eqx.Module):
    """Gap samples before and after outlier rejection, and what was done to each."""

    raw: Float[Array, "n_G n_r"]
    """As measured; negative where the reference lost against the candidate."""
    final: Float[Array, "n_G n_r"]
    """After replacement and clipping: non-negative, the set that is bootstrapped."""
    replaced: Bool[Array, "n_G n_r"]
    """Another reference was better here and gave its gap; if that is negative too, it was clipped as well."""
    clipped: Bool[Array, "n_G n_r"]
    """Still negative after replacement, therefore set to zero, the theoretical minimum."""

    @property
    def negative_share(self) -> Scalar:
        """Share of raw gaps that are negative: there the reference failed to improve on the candidate."""
        return jnp.mean(self.raw < 0)

    @property
    def clipped_share(self) -> Scalar:
        """Share of final gaps that are zero only by clipping; if it is 1, nothing beat the candidate."""
        return jnp.mean(self.clipped)


def reject_outliers(
    gaps: Float[Array, "n_G n_r"], cross_gaps: Float[Array, "n_G n_G n_r"], rule: str = "first"
) -> Gaps:
    """Replace negative gaps by those of other references on the same domain, then clip at zero (algo_SPOTA).

    `cross_gaps[k', k, i]` is the gap of reference k' on domain ξ_i^k, with the random numbers of
    `gaps[k, i]`. The printed algorithm compares gaps of *different* domains; the text below it, followed
    here, does not. Only entries with k' ≠ k and `gaps[k, i] < 0` are read: the others need not be evaluated
    and may hold anything, NaN included.

    `rule="first"` is the algorithm's `break`: the lowest k' with a gap *above the current one* replaces it,
    even if that is still negative and a later one would not be. `rule="best"` takes the largest over all k':
    a gap is then clipped only if every reference is worse than the candidate, as the text has it. The
    final gaps by "best" are never below those by "first".
    """
    check_choice("rule", rule, RULES)
    gaps, cross_gaps = jnp.asarray(gaps), jnp.asarray(cross_gaps)
    other = ~jnp.eye(gaps.shape[0], dtype=bool)  # k' ≠ k
    better = other[:, :, None] & (cross_gaps > gaps[None]) & (gaps < 0)[None]
    replaced = jnp.any(better, axis=0)
    chosen = jnp.argmax(better if rule == "first" else jnp.where(better, cross_gaps, -jnp.inf), axis=0)
    current = jnp.where(replaced, jnp.take_along_axis(cross_gaps, chosen[None], axis=0)[0], gaps)
    return Gaps(raw=gaps, final=jnp.maximum(current, 0.0), replaced=replaced, clipped=current < 0)


def check_choice(name: str, given: str, choices: Iterable[str]) -> None:
    """Raise a ValueError that proposes the nearest of `choices` unless `given` is one of them."""
    choices = tuple(choices)
    if given in choices:
        return
    near = get_close_matches(str(given), choices, n=1)
    hint = f"did you mean {name}={near[0]!r}?" if near else f"write {name}={choices[0]!r}."
    raise ValueError(f"{name}={given!r} is not one of {', '.join(map(repr, choices))}; {hint}")
