"""Rollouts inside a compiled optimizer step: every device takes its share of the rows, results are averaged."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree

from spota.sim import randomness, rollout
from spota.sim.domain import Domains, count
from spota.sim.env import Env, Policy

AXIS = "shards"
Tree = TypeVar("Tree", bound=PyTree)


class Rows(eqx.Module):
    """Domains and keys side by side, one rollout each."""

    domains: Domains
    keys: Key[Array, "n"]


class Score(eqx.Module):
    """How a policy fares on rows: mean return and the share that survived."""

    returns: Float[Array, ""]
    survival: Float[Array, ""]


def all_rows(domains: Domains, key: Key[Array, ""], rollouts: int) -> Rows:
    """`rollouts` rows per domain, each with a key of its own."""
    keys = jax.random.split(key, count(domains) * rollouts)
    return Rows({name: jnp.repeat(column, rollouts) for name, column in domains.items()}, keys)


def my_share(rows: Tree) -> Tree:
    """This device's part of the last axis."""
    shards, index = jax.lax.axis_size(AXIS), jax.lax.axis_index(AXIS)

    def cut(x):
        width = x.shape[-1] // shards
        return jax.lax.dynamic_slice_in_dim(x, index * width, width, axis=x.ndim - 1)

    return jax.tree.map(cut, rows)


def sum_over_devices(tree: Tree) -> Tree:
    """The sum over all devices, as one array: so devices wait for each other once, and not once a leaf."""
    flat, back = ravel_pytree(tree)
    return back(jax.lax.psum(flat, AXIS))


def mean_over_devices(tree: Tree) -> Tree:
    """The mean over all devices' shares."""
    return jax.tree.map(lambda total: total / jax.lax.axis_size(AXIS), sum_over_devices(tree))


def score(env: Env, policy: Policy, rows: Rows, worst_share: float) -> tuple[Score, Float[Array, ""]]:
    """Evaluate the mean policy on all rows, each device its share; and the mean return of the worst share of them."""
    mine, alive = row_returns(env, rollout.acting_with(policy), my_share(rows))
    every = jax.lax.all_gather(mine, AXIS, tiled=True)
    worst = jnp.sort(every)[: max(1, round(worst_share * every.size))]
    return Score(every.mean(), mean_over_devices(alive.astype(jnp.float32).mean())), worst.mean()


def row_returns(env: Env, act: rollout.Act, rows: Rows) -> tuple[Float[Array, "n"], Array]:
    """The undiscounted return of every row, and whether it survived; nothing else is stored."""
    words = randomness.words(rows.keys)

    def body(carry, t):
        world, total = carry
        world, step = rollout.advance(env, act, rows.domains, words, t, world)
        return (world, total + step.reward), None

    start = rollout.begin(env, rows.domains, rows.keys), jnp.zeros(rows.keys.shape)
    (world, total), _ = jax.lax.scan(body, start, jnp.arange(env.max_steps))
    return total, world.alive
