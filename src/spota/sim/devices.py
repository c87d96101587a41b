"""Independent rows over this machine's devices; a CPU counts as one device per core.

`use_all_cores` must run before jax starts its backend; the command line calls it. Rollouts give the same returns to the
last bit on any number of devices, and so do trainings of as many problems as there are devices or more. Where devices
share the rollouts of one problem, gradients are summed in another order, and the last digits differ.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, PyTree

Tree = TypeVar("Tree", bound=PyTree)


def usable_cores() -> int:
    """Of this machine, by this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_all_cores() -> None:
    """Make every core a jax device, unless jax has started already."""
    with contextlib.suppress(RuntimeError):  # the backend runs already: we use the devices that it has
        jax.config.update("jax_num_cpu_devices", usable_cores())


def chunks(rows: Tree, size: int) -> Iterator[tuple[Tree, int]]:
    """Cut rows (last axis) into pieces spread over all devices; yields each piece and how many of its rows count.

    Every piece has the same shape, so that it is compiled once.
    """
    n, mesh = jax.tree.leaves(rows)[0].shape[-1], _mesh()
    width = mesh.size * min(size, -(-n // mesh.size))
    for index, counting in pieces(n, width):
        yield jax.tree.map(lambda x, index=index: _placed(mesh, x, index), rows), counting


def pieces(n: int, width: int) -> Iterator[tuple[Int[np.ndarray, "width"], int]]:
    """The places 0 … n − 1 in pieces of one width, and how many of each count: the last place fills up the last."""
    for first in range(0, n, width):
        yield np.minimum(np.arange(first, first + width), n - 1), min(width, n - first)


def replicate(tree: Tree) -> Tree:
    """The same arrays on every device; what is no array stays as it is."""
    mesh = _mesh()
    if mesh.size == 1:
        return tree
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, NamedSharding(mesh, PartitionSpec())), rest)


def gather(parts: list[tuple[PyTree, int]]) -> Any:
    """Put the results of `chunks` together again on the host, as NumPy arrays, without the filling."""
    trees = [jax.tree.map(lambda x, n=n: np.asarray(x)[..., :n], tree) for tree, n in parts]
    return jax.tree.map(lambda *xs: np.concatenate(xs, axis=-1), *trees)


def _placed(mesh: Mesh, x: Array | np.ndarray, index: Int[np.ndarray, "width"]) -> Array:
    """Some rows of an array, distributed over the devices.

    The host chooses and cuts: jax would compile a program for every shape and every number of rows.
    """
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        words = np.asarray(jax.random.key_data(x))[..., index, :]
        return jax.random.wrap_key_data(_cut(mesh, words, words.ndim - 2))
    values = np.asarray(x)[..., index]
    return _cut(mesh, values, values.ndim - 1)


def _cut(mesh: Mesh, values: np.ndarray, axis: int) -> Array:
    return jax.device_put(values, NamedSharding(mesh, PartitionSpec(*[None] * axis, "rows")))


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("rows",))
