"""Values of an ONNX graph for observations side by side: the file's shape, and the batch as last axis.

Exporters write batch 1 into their files. What depends on the observation is here the file's value for one observation,
`Seen`, with one axis more behind it; constants are as in the file. So any batch size works, and channels stay first.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spota.policies.onnx_limits import count_of

MOST_SEEN = 10_000
"""Elements of a value for one observation."""


class UnknownError(Exception):
    """An operator, or a use of one, that is not written here; onnxruntime may know it."""


class Seen(NamedTuple):
    """A value that depends on the observation: the file's shape, then the batch."""

    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """As in the file."""
        return tuple(self.array.shape[:-1])


Attributes = Mapping[str, Any]
Operator = Callable[..., Any]


def elementwise(function: Callable[..., Any]) -> Operator:
    """An operator that works number by number: the shapes are the file's, and broadcast as there."""

    def operator(attributes: Attributes, *values: Any) -> Any:
        shape = np.broadcast_shapes(*(shape_of(v) for v in values if v is not None))
        seen = any(isinstance(v, Seen) for v in values)
        count_of(shape, "a value")
        if seen:
            return Seen(function(jnp, attributes, *(lifted(v, len(shape)) for v in values)))
        xp = jnp if any(isinstance(v, jax.Array) for v in values) else np
        return function(xp, attributes, *values)

    return operator


def lifted(value: Any, rank: int) -> Any:
    """With as many axes as the result, and one for the batch."""
    if value is None:
        return None
    if isinstance(value, Seen):
        return value.array.reshape((1,) * (rank - len(value.shape)) + tuple(value.array.shape))
    value = jnp.asarray(value)
    return value.reshape((1,) * (rank - value.ndim) + value.shape + (1,))


def reshaped(value: Any, shape: tuple[int, ...]) -> Any:
    """Another shape for the same numbers."""
    if isinstance(value, Seen):
        return Seen(value.array.reshape(*shape, value.array.shape[-1]))
    return value.reshape(shape)


def shape_of(value: Any) -> tuple[int, ...]:
    """The file's shape."""
    return value.shape if isinstance(value, Seen) else np.shape(value)


def plain(value: Any) -> np.ndarray:
    """A constant, which does not depend on the observation."""
    if isinstance(value, Seen | jax.Array):
        raise UnknownError("a shape that depends on the observation")
    return np.asarray(value)
