"""The steps of the loop on a host environment: all problems' machines side by side."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key, PyTree

from spota.polopt.compiled_steps import evaluation_rows
from spota.polopt.mesh import on_shards
from spota.polopt.optimizer import Best, Optimizer
from spota.polopt.rows import Rows, Score
from spota.sim.acting import acting_with
from spota.sim.host import HostEnv
from spota.sim.host_groups import group_returns

ProblemDomains = dict[str, Float[Array, "P n"]]


def begin(
    optimizer: Optimizer,
    env: HostEnv,
    mesh: Mesh,
    k_begin: Key[Array, "P"],
    k_evaluate: Key[Array, "P"],
    domains: ProblemDomains,
    inits: Any,
) -> tuple[PyTree, Best]:
    """The learners' states, and the starts as the best so far."""
    start, objective = _scores(optimizer, env, k_evaluate, domains, inits)
    return learners(optimizer, env, mesh, k_begin, inits), Best(inits, objective, start, start)


def update(
    optimizer: Optimizer, env: HostEnv, mesh: Mesh, keys: Key[Array, "P"], domains: ProblemDomains, states: PyTree
) -> tuple[PyTree, dict]:
    """One update of every problem, and its figures."""
    return optimizer.update_on_host(env, mesh, keys, domains, states)


def evaluate(
    optimizer: Optimizer,
    env: HostEnv,
    mesh: Mesh,
    keys: Key[Array, "P"],
    domains: ProblemDomains,
    states: PyTree,
    best: Best,
) -> tuple[Best, Score]:
    """The best so far of every problem, and how its policy fares now."""
    policies = _policies(optimizer, mesh, states)
    now, objective = _scores(optimizer, env, keys, domains, policies)
    better = objective > best.objective  # false for NaN
    found = Best(policies, objective, now, best.start)

    def chosen(new, old):
        return jnp.where(better.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(chosen, found, best), now


def _scores(
    optimizer: Optimizer, env: HostEnv, keys: Key[Array, "P"], domains: ProblemDomains, policies: Any
) -> tuple[Score, Float[Array, "P"]]:
    """How each policy fares on its own domains, and what makes one the best."""
    rows = _evaluated_on(optimizer, env, keys, domains)
    total, survived = group_returns(env, acting_with, policies, rows.domains, rows.keys)
    worst = np.sort(total, axis=1)[:, : max(1, round(optimizer.worst_share * total.shape[1]))]
    mean, survival, objective = (jnp.asarray(x.mean(axis=1), jnp.float32) for x in (total, survived, worst))
    return jax.vmap(Score)(mean, survival), objective


@eqx.filter_jit
def _evaluated_on(optimizer: Optimizer, env: HostEnv, keys: Key[Array, "P"], domains: ProblemDomains) -> Rows:
    return jax.vmap(lambda key, own: evaluation_rows(optimizer, env, own, key))(keys, domains)


@eqx.filter_jit
def learners(optimizer: Optimizer, env: HostEnv, mesh: Mesh, keys: Key[Array, "P"], inits: Any) -> PyTree:
    """The states of all learners before the first update."""
    return on_shards(mesh, lambda key, init: optimizer.begin(key, env, init), keys, inits)


@eqx.filter_jit
def _policies(optimizer: Optimizer, mesh: Mesh, states: PyTree) -> Any:
    return on_shards(mesh, optimizer.policy, states)
