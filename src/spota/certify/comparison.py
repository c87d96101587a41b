"""Candidate against references: returns with the same random numbers, gaps, and the rejection of outliers."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from spota.files.blocks import Arrays, from_arrays, to_arrays
from spota.polopt.rows import Score
from spota.polopt.solve import Solution
from spota.sim import devices, rollout
from spota.sim.acting import acting_with
from spota.sim.domain import Domains, repeat
from spota.sim.env import Env, Platform, Policy
from spota.sim.host import HostEnv
from spota.sim.host_groups import group_returns
from spota.sim.randomness import reshaped
from spota.stats.gap import RULES, Gaps, best_known_returns, gap_samples, lost, reject_outliers
from spota.text import check_choice

FILLINGS = 8
"""How many numbers of domains there are on which all references show what they earn; each is a program of its own."""


class Solved(eqx.Module):
    """Domains, and what the solver found on them: one candidate, or n_G references with a leading axis."""

    domains: dict[str, Float[Array, "*problems n"]]
    solution: Solution

    @property
    def policy(self) -> Any:
        """The best policy that was found, or all of them."""
        return self.solution.policy

    def to_arrays(self) -> Arrays:
        """For the memo; all but the policy's arrays have names of their own."""
        s = self.solution
        figures = {"returns": s.score.returns, "survival": s.score.survival}
        start = {"start_returns": s.start.returns, "start_survival": s.start.survival}
        curves = {"curve": s.curve, "survival_curve": s.survival, "evaluated_at": s.evaluated_at}
        plain = {**figures, **start, **curves, "diverged": s.diverged}
        return {
            **to_arrays({"domain": self.domains, "policy": self.policy}),
            **{name: np.asarray(value) for name, value in plain.items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], like: Any) -> "Solved":
        """Read what `to_arrays` wrote; `like` is any policy of the same structure."""
        a = {name: jnp.asarray(value) for name, value in arrays.items()}
        domains = {name.removeprefix("domain."): value for name, value in a.items() if name.startswith("domain.")}
        score = _scores(a["returns"], a["survival"]), _scores(a["start_returns"], a["start_survival"])
        curves = a["curve"], a["survival_curve"], a["evaluated_at"]
        policy = from_arrays(arrays, {"policy": like})["policy"]
        return cls(domains, Solution(policy, *score, *curves, a["diverged"]))


class Comparison(eqx.Module):
    """Returns of candidate and references on the references' domains, with the same random numbers, and their gaps."""

    candidate_returns: Float[Array, "n_G n_r n_J"]
    reference_returns: Float[Array, "n_G n_r n_J"]
    improvement: Float[Array, "n_G"]
    """Mean gain of each reference over its start, on its own domains."""
    best_known: Float[Array, "n_G n_r n_J"]
    """Returns of the best policy known for the domains of each reference: its own, unless it lost on average."""
    gaps: Gaps

    def to_arrays(self) -> Arrays:
        """For the memo."""
        return to_arrays(self)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Comparison":
        """Read what `to_arrays` wrote."""
        a = {name: jnp.asarray(value) for name, value in arrays.items()}
        gaps = Gaps(**{name: a[f"gaps.{name}"] for name in ("raw", "final", "replaced", "clipped")})
        own = ("candidate_returns", "reference_returns", "improvement", "best_known")
        return cls(**{name: a[name] for name in own}, gaps=gaps)


def compare(
    key: Key[Array, ""],
    env: Platform,
    candidate: Policy,
    references: Solved,
    n_J: int,
    rule: str = "first",
    chunk: int | None = None,
    starts: Any = None,
) -> Comparison:
    """Gaps of the candidate on the references' domains, with synchronised seeds and outlier rejection.

    `starts` is what each reference started from, if that is not the candidate itself.
    """
    n_G, n_r = next(iter(references.domains.values())).shape
    keys = jax.random.split(key, (n_G, n_r, n_J))  # one key a rollout, for everybody: SPOTA_seed_sync_start
    candidate_returns = returns_everywhere(env, candidate, references.domains, keys)
    reference_returns = returns_of_each(env, references.policy, references.domains, keys, chunk)
    raw = gap_samples(reference_returns, candidate_returns)  # SPOTA_optgap_diff_sample
    gaps, best_known = Gaps.untouched(raw), reference_returns
    asked = _asked(raw, rule)
    if asked.any():
        cross = _cross_returns(env, references, keys, asked, chunk)
        cross_gaps = np.mean(cross - np.asarray(candidate_returns), axis=-1)
        gaps = _reject(raw, jnp.asarray(cross_gaps), rule)  # SPOTA_outlier_rejection_start
        best_known = best_known_returns(candidate_returns, reference_returns, jnp.asarray(cross))
    before = candidate_returns if starts is None else returns_of_each(env, starts, references.domains, keys, chunk)
    improvement = gap_samples(reference_returns, before).mean(axis=1)
    return Comparison(candidate_returns, reference_returns, improvement, best_known, gaps)


def returns_everywhere(
    env: Platform, policy: Policy, domains: dict[str, Float[Array, "K n"]], keys: Key[Array, "K n m"]
) -> Float[Array, "K n m"]:
    """Returns of one policy on all domains."""
    K, n, m = keys.shape
    flat: Domains = {name: jnp.asarray(np.asarray(column).reshape(K * n)) for name, column in domains.items()}
    return jnp.asarray(rollout.returns(env, policy, flat, reshaped(keys, K * n, m)).returns.reshape(K, n, m))


def returns_of_each(
    env: Platform,
    policies: Any,
    domains: dict[str, Float[Array, "K n"]],
    keys: Key[Array, "K n m"],
    chunk: int | None = None,
) -> Float[Array, "K n m"]:
    """Returns of K policies, each on its own n domains with m rollouts; `chunk` policies run as one program."""
    K, n, m = keys.shape
    width = min(chunk or K, K)
    rows = repeat(domains, m), reshaped(keys, K, n * m)
    if isinstance(env, HostEnv):
        total, _ = group_returns(env, acting_with, policies, *rows)
        return jnp.asarray(total.reshape(K, n, m))
    parts = []
    for index, _ in devices.pieces(K, width):
        some, theirs = (x if width == K else _chosen(x, index) for x in (policies, rows))
        some = devices.replicate(some)
        pieces = devices.chunks(theirs, max(1, rollout.CHUNK // width))
        parts.append(devices.gather([(_row_returns(rollout.pure(env), some, d, k), size) for (d, k), size in pieces]))
    return jnp.asarray(np.concatenate(parts)[:K].reshape(K, n, m))


def _asked(raw: Float[Array, "n_G n_r"], rule: str) -> Bool[np.ndarray, "n_G n_r"]:
    """The domains on which all references must show what they earn: those of a lost one and, by domain, lost ones."""
    check_choice("rule", rule, RULES)
    of_lost = np.repeat(np.asarray(lost(raw))[:, None], raw.shape[1], axis=1)
    return of_lost if rule == "reference" else of_lost | (np.asarray(raw) < 0)


def _cross_returns(
    env: Platform,
    references: Solved,
    keys: Key[Array, "n_G n_r n_J"],
    asked: Bool[np.ndarray, "n_G n_r"],
    chunk: int | None,
) -> Float[np.ndarray, "n_G n_G n_r n_J"]:
    """[k', k, i]: the returns of reference k' on domain ξ_i^k where they are asked for; NaN elsewhere."""
    n_G = asked.shape[0]
    cross = np.full((n_G, *keys.shape), np.nan, np.float32)
    where = _filled_up(asked)
    there = {name: np.asarray(column)[where] for name, column in references.domains.items()}
    domains = {name: jnp.asarray(np.tile(column, (n_G, 1))) for name, column in there.items()}
    same_keys = keys[where]  # for every reference
    same_keys = jnp.broadcast_to(same_keys[None], (n_G, *same_keys.shape))
    cross[:, *where] = np.asarray(returns_of_each(env, references.policy, domains, same_keys, chunk))
    return cross


def _filled_up(asked: Bool[np.ndarray, "n_G n_r"]) -> tuple[np.ndarray, np.ndarray]:
    """Where it is true, the last place repeated up to a multiple of an eighth of all: few numbers, few programs."""
    k, i = np.nonzero(asked)
    step = -(-asked.size // FILLINGS)
    index, _ = next(devices.pieces(k.size, -(-k.size // step) * step))
    return k[index], i[index]


_reject = eqx.filter_jit(reject_outliers)  # one program instead of twenty small ones


@eqx.filter_jit
def _row_returns(
    env: Env, policies: Any, domains: dict[str, Float[Array, "K rows"]], keys: Key[Array, "K rows"]
) -> Float[Array, "K rows"]:
    return jax.vmap(lambda policy, d, k: rollout.summed(env, acting_with(policy), d, k)[0])(policies, domains, keys)


def _chosen(tree: Any, index: np.ndarray) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


def _scores(returns: Float[Array, "*problems"], survival: Float[Array, "*problems"]) -> Score:
    make: Callable = jax.vmap(Score) if returns.ndim else Score
    return make(returns, survival)
