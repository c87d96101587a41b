"""Rollouts inside a compiled optimizer step: every device takes its share of the rows, results are averaged."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key, PyTree

from spota.sim import rollout
from spota.sim.acting import Act, acting_with
from spota.sim.domain import Domains, count, repeat
from spota.sim.env import Env, Policy
from spota.stats.bounds import worst_mean

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
    return Rows(repeat(domains, rollouts), keys)


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
    """Evaluate the mean policy on all rows; and the mean return of the worst share of them."""
    every, survival = returns_of_all(env, acting_with(policy), rows)
    return Score(every.mean(), survival), worst_mean(every, worst_share)


def returns_of_all(env: Env, act: Act, rows: Rows) -> tuple[Float[Array, "n"], Float[Array, ""]]:
    """The return of every row and the share that survived: each device runs its share and hears of all."""
    mine = my_share(rows)
    total, alive = rollout.summed(env, act, mine.domains, mine.keys)
    return jax.lax.all_gather(total, AXIS, tiled=True), mean_over_devices(alive.astype(jnp.float32).mean())
