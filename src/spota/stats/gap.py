"""Optimality gap samples and outlier rejection: arrays in, arrays out."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from spota.text import check_choice

RULES = ("first", "best", "reference")


def gap_samples(
    reference_returns: Float[Array, "n_G n_r n_J"], candidate_returns: Float[Array, "n_G n_r n_J"]
) -> Float[Array, "n_G n_r"]:
    """Gap Ĝ_{n_r,i}^k of the candidate against reference k on its domain ξ_i^k, eq_optgap_sample, eq_optgap_approx.

    Entry (k, i, j) of both arrays is rollout j on domain ξ_i^k, with the same random numbers in both.
    """
    # Differences first, then their mean: a gap of 0.01 between returns of 2000 survives float32.
    return jnp.mean(jnp.asarray(reference_returns) - jnp.asarray(candidate_returns), axis=-1)


class Gaps(eqx.Module):
    """Gap samples before and after outlier rejection, and what was done to each."""

    raw: Float[Array, "n_G n_r"]
    """As measured; negative where the reference lost against the candidate."""
    final: Float[Array, "n_G n_r"]
    """After replacement and clipping: the set that is bootstrapped. Non-negative, by "reference" each row's mean."""
    replaced: Bool[Array, "n_G n_r"]
    """Another reference was better here and gave its gap; if that is negative too, it was clipped as well."""
    clipped: Bool[Array, "n_G n_r"]
    """Still negative after replacement, therefore set to zero, the theoretical minimum."""

    @classmethod
    def untouched(cls, raw: Float[Array, "n_G n_r"]) -> "Gaps":
        """Gaps of which none had to be replaced or clipped."""
        nowhere = jnp.zeros(raw.shape, bool)
        return cls(raw, raw, nowhere, nowhere)

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
    """Replace the gaps of references that lost by those of other references, then clip at zero (algo_SPOTA).

    `cross_gaps[k', k, i]` is the gap of reference k' on domain ξ_i^k, with the random numbers of
    `gaps[k, i]`. The printed algorithm compares gaps of *different* domains; the text below it, followed
    here, does not.

    "first" and "best" judge domain by domain, and read only entries with k' ≠ k and `gaps[k, i] < 0`. By
    "first", the algorithm's `break`, the lowest k' with a gap *above the current one* replaces it, even if that
    is still negative and a later one would not be. By "best" it is the largest over all k': a gap is then
    clipped only if every reference is worse than the candidate, as the text has it. The final gaps by "best"
    are never below those by "first".

    "reference" judges a reference by its mean over its own domains, see `stand_ins`, and reads only `cross_gaps[:, k]`
    of `lost` references k. The optimum of several domains need not win on each of them: what it loses on some
    belongs to its mean, and to lift these gaps one by one makes the mean too large.

    What is not read need not be evaluated and may hold anything, NaN included.
    """
    check_choice("rule", rule, RULES)
    gaps, cross_gaps = jnp.asarray(gaps), jnp.asarray(cross_gaps)
    return _judged_by_reference(gaps, cross_gaps) if rule == "reference" else _judged_by_domain(gaps, cross_gaps, rule)


def lost(gaps: Float[Array, "n_G n_r"]) -> Bool[Array, "n_G"]:
    """Which references earned less than the candidate on average over their own domains."""
    return jnp.mean(jnp.asarray(gaps), axis=1) < 0


def stand_ins(gaps: Float[Array, "n_G n_r"], cross_gaps: Float[Array, "n_G n_G n_r"]) -> Int[Array, "n_G"]:
    """Who is the best policy known for the domains of each reference k, by its mean over them.

    It is k itself unless k lost against the candidate. Then it is the best other reference k' there or, if all of
    them lost, n_G, which means the candidate: the optimum of a set is at least as good as any policy. Only
    `cross_gaps[:, k]` of lost references is read.
    """
    gaps, cross_gaps = jnp.asarray(gaps), jnp.asarray(cross_gaps)
    n_G = gaps.shape[0]
    others = jnp.where(jnp.eye(n_G, dtype=bool), -jnp.inf, jnp.mean(cross_gaps, axis=-1))  # [k', k]
    nobody = jnp.max(others, axis=0) <= 0
    return jnp.where(lost(gaps), jnp.where(nobody, n_G, jnp.argmax(others, axis=0)), jnp.arange(n_G))


@jax.jit
def best_known_returns(
    candidate_returns: Float[Array, "n_G n_r n_J"],
    reference_returns: Float[Array, "n_G n_r n_J"],
    cross_returns: Float[Array, "n_G n_G n_r n_J"],
) -> Float[Array, "n_G n_r n_J"]:
    """The returns on the domains of each reference of the policy that `stand_ins` names.

    `cross_returns[k', k]` are those of reference k' on the domains of k; only those of `lost` references k are read.
    """
    cross_gaps = jnp.mean(cross_returns - candidate_returns[None], axis=-1)
    chosen = stand_ins(gap_samples(reference_returns, candidate_returns), cross_gaps)
    k = jnp.arange(chosen.size)
    everyone = jnp.concatenate([cross_returns.at[k, k].set(reference_returns), candidate_returns[None]])
    return everyone[chosen, k]


def _judged_by_reference(gaps: Float[Array, "n_G n_r"], cross_gaps: Float[Array, "n_G n_G n_r"]) -> Gaps:
    n_G, k = gaps.shape[0], jnp.arange(gaps.shape[0])
    chosen = stand_ins(gaps, cross_gaps)
    everyone = jnp.concatenate([cross_gaps.at[k, k].set(gaps), jnp.zeros_like(gaps)[None]])  # the candidate's are zero
    replaced, clipped = (jnp.repeat(which[:, None], gaps.shape[1], axis=1) for which in (chosen != k, chosen == n_G))
    return Gaps(raw=gaps, final=everyone[chosen, k], replaced=replaced & ~clipped, clipped=clipped)


def _judged_by_domain(gaps: Float[Array, "n_G n_r"], cross_gaps: Float[Array, "n_G n_G n_r"], rule: str) -> Gaps:
    other = ~jnp.eye(gaps.shape[0], dtype=bool)  # k' ≠ k
    better = other[:, :, None] & (cross_gaps > gaps[None]) & (gaps < 0)[None]
    replaced = jnp.any(better, axis=0)
    chosen = jnp.argmax(better if rule == "first" else jnp.where(better, cross_gaps, -jnp.inf), axis=0)
    current = jnp.where(replaced, jnp.take_along_axis(cross_gaps, chosen[None], axis=0)[0], gaps)
    return Gaps(raw=gaps, final=jnp.maximum(current, 0.0), replaced=replaced, clipped=current < 0)
