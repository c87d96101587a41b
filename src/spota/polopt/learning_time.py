"""How long an update learns on this machine, beside the simulator: the compiled passes over its experience."""

import time

import jax
import jax.numpy as jnp

from spota.policies import fnn
from spota.polopt.experience import Experience
from spota.polopt.host_steps import learners
from spota.polopt.mesh import mesh_for
from spota.polopt.ppo import PPO, learned
from spota.sim.host import HostEnv


def learning_seconds(ppo: PPO, env: HostEnv, problems: int, n: int, hidden: tuple[int, ...]) -> float:
    """Seconds of one update of so many problems with n domains each, once it is compiled.

    What is measured is the very program of a run, on experience in which nothing happens: the run need not compile it
    again, and its time does not depend on the numbers.
    """
    mesh, keys = mesh_for(ppo, problems, n), jax.random.split(jax.random.key(0), problems)
    policies = jax.vmap(lambda key: fnn(key, env, hidden))(keys)
    states, seen = learners(ppo, env, mesh, keys, policies), _blank(env, problems, ppo.rollouts_on(n)[0])
    begun = 0.0
    for _ in range(2):  # the first compiles
        begun = time.perf_counter()
        jax.block_until_ready(learned(ppo, env, mesh, keys, seen, states))
    return time.perf_counter() - begun


def _blank(env: HostEnv, P: int, R: int) -> Experience:
    """Rollouts of all problems that see, do and earn nothing."""
    T, d, a = env.max_steps, len(env.observations), len(env.actions)
    seen, done, earned = jnp.zeros((P, T, d, R)), jnp.zeros((P, T, a, R)), jnp.zeros((P, T, R))
    alive, survived = jnp.ones((P, T, R), bool), jnp.ones((P, R), bool)
    return jax.vmap(Experience)(seen, seen, done, earned, alive, jnp.zeros((P, d, R)), survived)
