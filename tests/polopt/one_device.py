"""Run what belongs inside a compiled optimizer step."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from spota.polopt.rows import AXIS


def on_one_device(function: Callable) -> Callable:
    """The function with a mesh of one device around it."""
    mesh, spec = Mesh(np.array(jax.devices()[:1]), (AXIS,)), PartitionSpec()
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
