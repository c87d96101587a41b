"""Problems over devices: a function of one problem runs on all of them, wherever the mesh puts them."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import PyTree

from spota.polopt.optimizer import Optimizer
from spota.polopt.rows import AXIS

PROBLEMS = "problems"
"""The mesh axis over groups of problems; `AXIS` is the one over shares of the rollouts."""


def mesh_for(optimizer: Optimizer, problems: int, n: int) -> Mesh:
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


def on_shards(mesh: Mesh, function: Callable, *arguments: PyTree) -> PyTree:
    """Run a function of one problem on all problems, wherever the mesh puts them."""
    spec = PartitionSpec(PROBLEMS)
    mapped = jax.shard_map(jax.vmap(function), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return mapped(*arguments)
