"""Run what belongs inside a compiled optimizer step."""

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from spota.polopt.rows import AXIS


def on_one_device(function: Callable) -> Callable:
    """The function as one program, with a mesh of one device around it."""
    mesh, spec = Mesh(np.array(jax.devices()[:1]), (AXIS,)), PartitionSpec()
    return eqx.filter_jit(jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
