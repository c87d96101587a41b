"""The steps of the loop on a pure environment: one compiled program for all problems, rollouts included."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Key, PyTree

from spota.polopt.checks import all_finite, refuse_another_kind
from spota.polopt.mesh import on_shards
from spota.polopt.optimizer import Best, Optimizer
from spota.polopt.rows import Rows, all_rows, score
from spota.polopt.smoothing import smoothed
from spota.sim.checks import described
from spota.sim.domain import Domains, count
from spota.sim.env import Env, Platform


@eqx.filter_jit
def begin(optimizer: Optimizer, env: Env, mesh: Mesh, k_begin, k_evaluate, domains, inits):
    """The learners' states, and the starts as the best so far."""

    def one(k_begin, k_evaluate, domains, init):
        rows = evaluation_rows(optimizer, env, domains, k_evaluate)
        start, objective = score(env, init, rows, optimizer.worst_share)
        return optimizer.begin(k_begin, env, init), Best(init, objective, start, start)

    return on_shards(mesh, one, k_begin, k_evaluate, domains, inits)


@eqx.filter_jit
def update(optimizer: Optimizer, env: Env, mesh: Mesh, keys, domains, states):
    """One update of every problem, and its figures."""
    return on_shards(mesh, lambda k, d, s: _updated(optimizer, env, k, d, s), keys, domains, states)


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
def evaluate(optimizer: Optimizer, env: Env, mesh: Mesh, keys, domains, states, best):
    """The best so far of every problem, and how its policy fares now."""

    def one(key, domains, state, best):
        policy = optimizer.policy(state)
        refuse_another_kind(f"policy of {type(optimizer).__name__}", policy, best.policy, "policy")
        rows = evaluation_rows(optimizer, env, domains, key)
        now, objective = score(env, policy, rows, optimizer.worst_share)
        better = objective > best.objective  # false for NaN
        found = Best(policy, objective, now, best.start)
        return jax.tree.map(lambda new, old: jnp.where(better, new, old), found, best), now

    return on_shards(mesh, one, keys, domains, states, best)


def evaluation_rows(optimizer: Optimizer, env: Platform, domains: Domains, key: Key[Array, ""]) -> Rows:
    """The same in all evaluations of a problem; smoothed as in training, or what suits few domains alone would win."""
    n = count(domains)
    rows = all_rows(domains, key, optimizer.rollouts_on(n)[1] // n)
    return smoothed(jax.random.fold_in(key, 1), env.domain, rows, optimizer.width(n))
