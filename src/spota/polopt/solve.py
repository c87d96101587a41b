"""The loop around every optimizer: many problems side by side, progress, best iterate, divergence.

A problem is a set of domains and an initial policy; to solve it is to maximise the mean return over them (eq_SPn).
Every optimizer returns the best policy that it saw by an evaluation on the problem's own domains with common random
numbers, its start included: a solution is never worse than its start on them. The best is the one with the highest mean
return, or, for an optimizer of the worst cases, with the highest mean of the worst returns.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.polopt import compiled_steps, host_steps
from spota.polopt.mesh import mesh_for
from spota.polopt.optimizer import Best, Optimizer, Progress, Solution, Watch, refuse_host
from spota.polopt.rows import Score
from spota.sim.domain import Domains
from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.rollout import check


def solve(
    optimizer: Optimizer, key: Key[Array, ""], env: Platform, domains: Domains, init: Any, watch: Watch | None = None
) -> Solution:
    """Solve one problem: the domains [n], from the policy `init`."""
    problems = {name: column[None] for name, column in domains.items()}
    inits = jax.tree.map(lambda x: x[None], init)
    many = solve_many(optimizer, key[None], env, problems, inits, watch)
    return Solution(**{k: v if k == "evaluated_at" else jax.tree.map(lambda x: x[0], v) for k, v in vars(many).items()})


def solve_many(
    optimizer: Optimizer,
    keys: Key[Array, "problems"],
    env: Platform,
    domains: dict[str, Float[Array, "problems n"]],
    inits: Any,
    watch: Watch | None = None,
) -> Solution:
    """Solve several problems of n domains each as one program; a problem's result does not depend on the others."""
    refuse_host(optimizer, env)
    optimizer.check(env)
    for problem in range(keys.shape[0]):
        check(env, {name: column[problem] for name, column in domains.items()})
    k_begin, k_update, k_evaluate, k_fresh = (jnp.stack(k) for k in zip(*(_streams(k) for k in keys), strict=True))
    steps: Any = host_steps if isinstance(env, HostEnv) else compiled_steps
    setting = optimizer, env, mesh_for(optimizer, keys.shape[0], _size(domains))
    states, best = steps.begin(*setting, k_begin, k_evaluate, domains, inits)
    _refuse_nan(env, best.score)
    history, at = [best.score], [0]
    diverged = np.zeros(keys.shape[0], bool)
    for iteration in range(1, optimizer.iterations + 1):
        training = _fresh(env, k_fresh, iteration, domains) if optimizer.fresh_domains else domains
        states, metrics = steps.update(*setting, _fold(k_update, iteration), training, states)
        diverged |= ~np.asarray(metrics["finite"], bool)
        if iteration % optimizer.evaluate_every == 0 or iteration == optimizer.iterations:
            best, now = steps.evaluate(*setting, k_evaluate, domains, states, best)
            history.append(now)
            at.append(iteration)
        if watch is not None:
            watch(_progress(optimizer, env, domains, iteration, history[-1], best, metrics))
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


def _fresh(env: Platform, keys: Key[Array, "problems"], iteration: int, like: dict[str, Array]) -> dict[str, Array]:
    """New domains for every problem, as many as it has."""
    drawn = [env.domain.sample(k, _size(like)) for k in _fold(keys, iteration)]
    return {name: jnp.stack([d[name] for d in drawn]) for name in like}


def _size(domains: dict[str, Array]) -> int:
    """How many domains a problem has."""
    return next(iter(domains.values())).shape[-1]


def _refuse_nan(env: Platform, start: Score):
    if not np.isfinite(start.returns).all():
        bad = int(np.argmin(np.isfinite(start.returns)))
        raise ValueError(
            f"The initial policy of problem {bad} has a return of {float(start.returns[bad])} on {env.name}; "
            "look for NaN in its parameters, or in the environment's rewards."
        )


def _progress(
    optimizer: Optimizer, env: Platform, domains: dict, iteration: int, now: Score, best: Best, metrics: dict
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
