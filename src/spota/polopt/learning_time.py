"""How long a training learns on this machine, beside the simulator: compiled passes over experience, learned models."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spota.policies import fnn
from spota.polopt.experience import Experience
from spota.polopt.host_steps import learners
from spota.polopt.learned_model import Model, Scale, Seen, imagined
from spota.polopt.mesh import mesh_for
from spota.polopt.polished import Polished
from spota.polopt.polynomials import fitted
from spota.polopt.ppo import PPO, learned
from spota.polopt.reward_net import fit, new_net
from spota.polopt.rows import Rows
from spota.polopt.surrogate import Surrogate
from spota.sim.host import HostEnv

SHORT = 50
"""Imagined steps, and updates of a reward's network, that are measured; a training has more of both."""


def learning_seconds(solver: PPO, env: HostEnv, problems: int, n: int, hidden: tuple[int, ...]) -> float:
    """Seconds of a training of so many problems with n domains each, once it is compiled."""
    if not isinstance(solver, Polished):
        return solver.iterations * _update_seconds(solver, env, problems, n, hidden)
    first = 0.0 if solver.rounds == solver.iterations else learning_seconds(solver.ppo, env, problems, n, hidden)
    return first + (problems * solver.rounds * _round_seconds(solver.model, env, n, hidden) if solver.rounds else 0.0)


def _update_seconds(ppo: PPO, env: HostEnv, problems: int, n: int, hidden: tuple[int, ...]) -> float:
    """Of one update of PPO.

    What is measured is the very program of a run, on experience in which nothing happens: the run need not compile it
    again, and its time does not depend on the numbers.
    """
    mesh, keys = mesh_for(ppo, problems, n), jax.random.split(jax.random.key(0), problems)
    policies = jax.vmap(lambda key: fnn(key, env, hidden))(keys)
    states, seen = learners(ppo, env, mesh, keys, policies), _blank(env, problems, ppo.rollouts_on(n)[0])
    return _seconds(lambda: learned(ppo, env, mesh, keys, seen, states))


def _round_seconds(surrogate: Surrogate, env: HostEnv, n: int, hidden: tuple[int, ...]) -> float:
    """Of one round of one problem: the dynamics of each rollout, the reward, and the updates of the policy."""
    of, rollouts = surrogate.terms(env), surrogate.rollouts_on(n)[0]
    d, k = len(env.observations), len(env.observations) + len(env.actions)
    x = np.random.default_rng(0).normal(size=(k, env.max_steps))
    law = _seconds(lambda: fitted(of, x, x[:d], np.ones(env.max_steps, bool)))
    key, policy, net = jax.random.key(0), fnn(jax.random.key(0), env, hidden), new_net(jax.random.key(1), k)
    rewards = jax.jit(lambda x: fit(key, net, x, x[0], jnp.ones(x.shape[1]), SHORT))
    model, keys = _unknown(surrogate, env, net), jax.random.split(key, surrogate.rows)

    @jax.jit
    def slope(policy, model):
        return jax.grad(lambda policy: imagined(env, policy, model, of, keys, surrogate.barrier, SHORT).sum())(policy)

    reward = _seconds(lambda: rewards(jnp.asarray(x, jnp.float32))) * surrogate.reward_updates / SHORT
    update = _seconds(lambda: slope(policy, model)) * env.max_steps / SHORT
    return rollouts * law + reward + surrogate.updates * update


def _seconds(work: Callable[[], Any]) -> float:
    """The better of two, after a first time, which compiles."""
    found = []
    for _ in range(3):
        begun = time.perf_counter()
        jax.block_until_ready(work())
        found.append(time.perf_counter() - begun)
    return min(found[1:])


def _unknown(surrogate: Surrogate, env: HostEnv, net: Any) -> Model:
    """A model in which nothing moves."""
    d, k, n = len(env.observations), len(env.observations) + len(env.actions), surrogate.rows
    rows = Rows(env.domain.sample(jax.random.key(0), n), jax.random.split(jax.random.key(1), n))
    still, scale = jnp.zeros((len(surrogate.terms(env)), d, n)), Scale(jnp.zeros(k), jnp.ones(k))
    return Model(still, jnp.ones(n, bool), jnp.zeros((d, n)), rows, scale, Seen(-jnp.ones(d), jnp.ones(d)), net)


def _blank(env: HostEnv, P: int, R: int) -> Experience:
    """Rollouts of all problems that see, do and earn nothing."""
    T, d, a = env.max_steps, len(env.observations), len(env.actions)
    seen, done, earned = jnp.zeros((P, T, d, R)), jnp.zeros((P, T, a, R)), jnp.zeros((P, T, R))
    alive, survived = jnp.ones((P, T, R), bool), jnp.ones((P, R), bool)
    return jax.vmap(Experience)(seen, seen, done, earned, alive, jnp.zeros((P, d, R)), survived)
