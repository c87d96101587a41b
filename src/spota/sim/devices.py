"""Independent rows over this machine's devices; a CPU counts as one device per core.

`use_all_cores` must run before jax starts its backend; the command line calls it. Rollouts give the same returns to the
last bit on any number of devices, and so do trainings of as many problems as there are devices or more. Where devices
share the rollouts of one problem, gradients are summed in another order, and the last digits differ.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, PyTree

Tree = TypeVar("Tree", bound=PyTree)


def use_all_cores() -> None:
    """Make every core a jax device, unless jax has started already."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(RuntimeError):  # the backend runs already: we use the devices that it has
        jax.config.update("jax_num_cpu_devices", cores)


def chunks(rows: Tree, size: int) -> Iterator[tuple[Tree, int]]:
    """Cut rows (last axis) into pieces spread over all devices; yields each piece and how many of its rows count.

    Every piece has the same shape, so that it is compiled once.
    """
    n, workers = jax.tree.leaves(rows)[0].shape[-1], len(jax.devices())
    width = workers * min(size, -(-n // workers))
    for index, counting in pieces(n, width):
        yield spread(rows if width == n else _chosen(rows, jnp.asarray(index))), counting


def pieces(n: int, width: int) -> Iterator[tuple[Int[np.ndarray, "width"], int]]:
    """The places 0 … n − 1 in pieces of one width, and how many of each count: the last place fills up the last."""
    for first in range(0, n, width):
        yield np.minimum(np.arange(first, first + width), n - 1), min(width, n - first)


def spread(rows: Tree) -> Tree:
    """Distribute the last axis over all devices."""
    mesh = _mesh()
    if mesh.size == 1:
        return rows
    return jax.tree.map(
        lambda x: jax.device_put(x, NamedSharding(mesh, PartitionSpec(*[None] * (x.ndim - 1), "rows"))), rows
    )


def replicate(tree: Tree) -> Tree:
    """The same arrays on every device; what is no array stays as it is."""
    mesh = _mesh()
    if mesh.size == 1:
        return tree
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, NamedSharding(mesh, PartitionSpec())), rest)


def gather(parts: list[tuple[Tree, int]]) -> Tree:
    """Put the results of `chunks` together again on the host, without the filling."""
    trees = [jax.tree.map(lambda x, n=n: np.asarray(x)[..., :n], tree) for tree, n in parts]
    return jax.tree.map(lambda *xs: jnp.asarray(np.concatenate(xs, axis=-1)), *trees)


@jax.jit
def _chosen(rows: Tree, index: Int[Array, "width"]) -> Tree:
    """Some rows of every array; as one program, because a call for each array takes longer than a short rollout."""
    return jax.tree.map(lambda x: x[..., index], rows)


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("rows",))
