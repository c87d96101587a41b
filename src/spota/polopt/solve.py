"""The loop around every optimizer: many problems as one compiled step, progress, best iterate, divergence.

A problem is a set of domains and an initial policy; to solve it is to maximise the mean return over them (eq_SPn).
Every optimizer returns the best policy that it saw by an evaluation on the problem's own domains with common random
numbers, its start included: a solution is never worse than its start on them. The best is the one with the highest mean
return, or, for an optimizer of the worst cases, with the highest mean of the worst returns.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Key, PyTree

from spota.polopt.checks import all_finite, refuse_another_kind
from spota.polopt.rows import AXIS, Rows, Score, all_rows, score
from spota.polopt.smoothing import smoothed
from spota.sim.checks import described
from spota.sim.domain import Domains, count
from spota.sim.env import Env
from spota.sim.rollout import check

PROBLEMS = "problems"
"""The mesh axis over groups of problems; `AXIS` is the one over shares of the rollouts."""
EVALUATION_ROWS = 400
"""Rollouts in an evaluation, about, unless an optimizer says otherwise."""


class Optimizer(abc.ABC):
    """An optimizer inside our loop: pure functions for ONE problem, which jax compiles.

    Extend it as a frozen dataclass with `iterations`, `begin`, `update` and `policy`; the rest has defaults. What is
    not written in jax is a plain function instead, see `polopt.solver`.
    """

    iterations: int
    """How many updates."""
    evaluate_every: int = 20
    """How many updates between two evaluations."""
    fresh_domains: bool = False
    """Whether every update draws new domains from the environment's distribution."""

    @abc.abstractmethod
    def begin(self, key: Key[Array, ""], env: Env, policy: Any) -> PyTree:
        """The learner's state before the first update: fresh optimizer, reset exploration."""

    @abc.abstractmethod
    def update(self, env: Env, domains: Domains, key: Key[Array, ""], state: PyTree) -> tuple[PyTree, dict]:
        """One update; returns the new state and figures to log.

        An optimizer that leaves out updates which are not finite says so by a figure `finite`; for others the loop
        looks at the parameters of the policy.
        """

    @abc.abstractmethod
    def policy(self, state: PyTree) -> Any:
        """The policy that the learner would act with; of the kind that `begin` was given."""

    def rollouts_on(self, n: int) -> tuple[int, int]:
        """Rollouts in an update and in an evaluation on n domains; in an evaluation every domain has as many, or the
        first ones have one each."""
        return n, n * evaluations_of_each(n)

    def width(self, n: int) -> float:
        """Width of the kernel around each domain of a problem of n, in standard deviations of ν; 0: none."""
        del n
        return 0.0

    @property
    def worst_share(self) -> float:
        """The share of an evaluation's rollouts, the worst ones, whose mean return says which policy is best."""
        return 1.0

    def check(self, env: Env) -> None:
        """Refuse an environment that the settings do not fit."""
        del env


def evaluations_of_each(n: int) -> int:
    """Rollouts on each of n domains in an evaluation, unless an optimizer says otherwise."""
    return -(-EVALUATION_ROWS // n)


class Best(eqx.Module):
    """The best policy so far, what makes it the best, its score on its own domains, and the start's."""

    policy: Any
    objective: Float[Array, "*problems"]
    score: Score
    start: Score


class Solution(eqx.Module):
    """What an optimizer found. Leaves have a leading axis over problems when several were solved together."""

    policy: Any
    score: Score
    start: Score
    curve: Float[Array, "*problems evaluations"]
    survival: Float[Array, "*problems evaluations"]
    evaluated_at: Float[Array, "evaluations"]
    diverged: Bool[Array, "*problems"]


@dataclass(frozen=True)
class Progress:
    """A word about how it goes after an update; figures have one entry a problem, `policy` is the best so far."""

    iteration: int
    iterations: int
    returns: np.ndarray
    survival: np.ndarray
    best: np.ndarray
    policy: Any
    steps: int
    metrics: dict[str, np.ndarray]


Report = Callable[[Progress], None]


def solve(
    optimizer: Optimizer, key: Key[Array, ""], env: Env, domains: Domains, init: Any, report: Report | None = None
) -> Solution:
    """Solve one problem: the domains [n], from the policy `init`."""
    problems = {name: column[None] for name, column in domains.items()}
    inits = jax.tree.map(lambda x: x[None], init)
    many = solve_many(optimizer, key[None], env, problems, inits, report)
    return Solution(**{k: v if k == "evaluated_at" else jax.tree.map(lambda x: x[0], v) for k, v in vars(many).items()})


def solve_many(
    optimizer: Optimizer,
    keys: Key[Array, "problems"],
    env: Env,
    domains: dict[str, Float[Array, "problems n"]],
    inits: Any,
    report: Report | None = None,
) -> Solution:
    """Solve several problems of n domains each as one program; a problem's result does not depend on the others."""
    optimizer.check(env)
    for problem in range(keys.shape[0]):
        check(env, {name: column[problem] for name, column in domains.items()})
    k_begin, k_update, k_evaluate, k_fresh = (jnp.stack(k) for k in zip(*(_streams(k) for k in keys), strict=True))
    setting = optimizer, env, _mesh(optimizer, keys.shape[0], _size(domains))
    states, best = _begin(*setting, k_begin, k_evaluate, domains, inits)
    _refuse_nan(env, best.score)
    history, at = [best.score], [0]
    diverged = np.zeros(keys.shape[0], bool)
    for iteration in range(1, optimizer.iterations + 1):
        training = _fresh(env, k_fresh, iteration, domains) if optimizer.fresh_domains else domains
        states, metrics = _update(*setting, _fold(k_update, iteration), training, states)
        diverged |= ~np.asarray(metrics["finite"], bool)
        if iteration % optimizer.evaluate_every == 0 or iteration == optimizer.iterations:
            best, now = _evaluate(*setting, k_evaluate, domains, states, best)
            history.append(now)
            at.append(iteration)
        if report is not None:
            report(_progress(optimizer, env, domains, iteration, history[-1], best, metrics))
    curve, survival = (np.stack([np.asarray(getattr(s, f)) for s in history], -1) for f in ("returns", "survival"))
    return Solution(
        best.policy,
        best.score,
        best.start,
        jnp.asarray(curve),
        jnp.asarray(survival),
        jnp.asarray(at, jnp.float32),
        jnp.asarray(diverged),
    )


def _streams(key: Key[Array, ""]) -> Key[Array, "4"]:
    """Beginning, updates, evaluation and fresh domains never share a key."""
    return jax.random.split(key, 4)


def _fold(keys: Key[Array, "problems"], iteration: int) -> Key[Array, "problems"]:
    return jax.vmap(lambda k: jax.random.fold_in(k, iteration))(keys)


def _fresh(env: Env, keys: Key[Array, "problems"], iteration: int, like: dict[str, Array]) -> dict[str, Array]:
    """New domains for every problem, as many as it has."""
    drawn = [env.domain.sample(k, _size(like)) for k in _fold(keys, iteration)]
    return {name: jnp.stack([d[name] for d in drawn]) for name in like}


def _size(domains: dict[str, Array]) -> int:
    """How many domains a problem has."""
    return next(iter(domains.values())).shape[-1]


def _mesh(optimizer: Optimizer, problems: int, n: int) -> Mesh:
    """Devices for groups of problems, which never meet, and within a group for shares of the rollouts.

    As many as divide the problems evenly, then the rollouts of an update and of an evaluation.
    """
    devices = len(jax.devices())
    groups = _most(devices, problems)
    shards = _most(devices // groups, *optimizer.rollouts_on(n))
    return Mesh(np.array(jax.devices()[: groups * shards]).reshape(groups, shards), (PROBLEMS, AXIS))


def _most(limit: int, *amounts: int) -> int:
    """The largest number up to the limit that divides all amounts."""
    return max(d for d in range(1, limit + 1) if all(amount % d == 0 for amount in amounts))


def _on_shards(mesh: Mesh, function: Callable, *arguments: PyTree) -> PyTree:
    """Run a function of one problem on all problems, wherever the mesh puts them."""
    spec = PartitionSpec(PROBLEMS)
    mapped = jax.shard_map(jax.vmap(function), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return mapped(*arguments)


@eqx.filter_jit
def _begin(optimizer: Optimizer, env: Env, mesh: Mesh, k_begin, k_evaluate, domains, inits):
    def one(k_begin, k_evaluate, domains, init):
        rows = _evaluation_rows(optimizer, env, domains, k_evaluate)
        start, objective = score(env, init, rows, optimizer.worst_share)
        return optimizer.begin(k_begin, env, init), Best(init, objective, start, start)

    return _on_shards(mesh, one, k_begin, k_evaluate, domains, inits)


@eqx.filter_jit
def _update(optimizer: Optimizer, env: Env, mesh: Mesh, keys, domains, states):
    return _on_shards(mesh, lambda k, d, s: _updated(optimizer, env, k, d, s), keys, domains, states)


def _updated(optimizer: Optimizer, env: Env, key: Key[Array, ""], domains: Domains, state: PyTree):
    """One update of one problem; whether it is finite is among its figures in any case."""
    found, who = optimizer.update(env, domains, key, state), f"update of {type(optimizer).__name__}"
    if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict)):
        raise ValueError(
            f"{who} returned {described(found)}; return the new state and a dictionary of figures to log, e.g. "
            "return state, {}."
        )
    moved, figures = found
    refuse_another_kind(who, moved, state, "state")
    return moved, figures if "finite" in figures else {**figures, "finite": all_finite(optimizer.policy(moved))}


@eqx.filter_jit
def _evaluate(optimizer: Optimizer, env: Env, mesh: Mesh, keys, domains, states, best):
    def one(key, domains, state, best):
        policy = optimizer.policy(state)
        refuse_another_kind(f"policy of {type(optimizer).__name__}", policy, best.policy, "policy")
        rows = _evaluation_rows(optimizer, env, domains, key)
        now, objective = score(env, policy, rows, optimizer.worst_share)
        better = objective > best.objective  # false for NaN
        found = Best(policy, objective, now, best.start)
        return jax.tree.map(lambda new, old: jnp.where(better, new, old), found, best), now

    return _on_shards(mesh, one, keys, domains, states, best)


def _evaluation_rows(optimizer: Optimizer, env: Env, domains: Domains, key: Key[Array, ""]) -> Rows:
    """The same in all evaluations of a problem; smoothed as in training, or what suits few domains alone would win."""
    n = count(domains)
    rollouts = optimizer.rollouts_on(n)[1]
    first = {name: column[:rollouts] for name, column in domains.items()}  # all, unless they are more
    rows = all_rows(first, key, rollouts // count(first))
    return smoothed(jax.random.fold_in(key, 1), env.domain, rows, optimizer.width(n))


def _refuse_nan(env: Env, start: Score):
    if not np.isfinite(start.returns).all():
        bad = int(np.argmin(np.isfinite(start.returns)))
        raise ValueError(
            f"The initial policy of problem {bad} has a return of {float(start.returns[bad])} on {env.name}; "
            "look for NaN in its parameters, or in the environment's rewards."
        )


def _progress(
    optimizer: Optimizer, env: Env, domains: dict, iteration: int, now: Score, best: Best, metrics: dict
) -> Progress:
    problems, n = next(iter(domains.values())).shape
    return Progress(
        iteration,
        optimizer.iterations,
        np.asarray(now.returns),
        np.asarray(now.survival),
        np.asarray(best.score.returns),
        best.policy,
        problems * optimizer.rollouts_on(n)[0] * env.max_steps,
        {name: np.asarray(value) for name, value in metrics.items()},
    )
