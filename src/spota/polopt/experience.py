"""Rollouts that explore, and what is kept of them to learn from, on pure and on host environments."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from spota.polopt.rows import Rows
from spota.sim import randomness, rollout
from spota.sim.acting import Act, without_memory
from spota.sim.env import Env
from spota.sim.host import HostEnv
from spota.sim.host_groups import group_steps

EXPLORATION_STREAM = 2


class Actor(eqx.Module):
    """The policy and how it explores: a = π(o) + exp(log_std) ε."""

    policy: Any
    log_std: Float[Array, "a"]

    def log_likelihood(self, observation: Float[Array, "d *n"], action: Float[Array, "a *n"]) -> Float[Array, "*n"]:
        """log N(a; π(o), std²)."""
        log_std = self.log_std.reshape(-1, *(1,) * (action.ndim - 1))
        z = (action - self.policy(observation)) * jnp.exp(-log_std)
        return -0.5 * (z**2 + 2 * log_std + np.log(2 * np.pi)).sum(axis=0)


class Experience(eqx.Module):
    """Exploring rollouts side by side, batch last: what the policy saw, and what there was to see."""

    observations: Float[Array, "T d n"]
    ideals: Float[Array, "T d n"]
    actions: Float[Array, "T a n"]
    rewards: Float[Array, "T n"]
    alive: Bool[Array, "T n"]
    last_ideal: Float[Array, "d n"]
    survived: Bool[Array, "n"]


def exploring(actor: Actor) -> Act:
    """Act with noise, drawn from the rollout's own key."""

    def choose(key, t, observation):
        noise = randomness.normals(key, t, EXPLORATION_STREAM, actor.log_std.shape[0])
        return actor.policy(observation) + jnp.exp(actor.log_std)[:, None] * noise

    return without_memory(choose)


def explore(env: Env, rows: Rows, actor: Actor) -> Experience:
    """Roll out with exploration."""
    words, act = randomness.words(rows.keys), exploring(actor)

    def body(world, t):
        after, step = rollout.advance(env, act, rows.domains, words, t, world)
        return after, (step.observation, world.ideal, step.action, step.reward, step.alive)

    start = rollout.begin(env, act, rows.domains, rows.keys)
    world, steps = jax.lax.scan(body, start, jnp.arange(env.max_steps))
    return Experience(*steps, world.ideal, world.alive)


def explore_on_host(env: HostEnv, rows: Rows, actors: Actor) -> Experience:
    """The same on a host environment, for P actors with rows of their own: arrays have a leading axis P."""
    steps, end = group_steps(env, exploring, actors, rows.domains, rows.keys)
    kept = steps.observation, steps.ideal, steps.action, steps.reward, steps.alive, end.ideal, end.alive
    return jax.vmap(Experience)(*map(jnp.asarray, kept))
