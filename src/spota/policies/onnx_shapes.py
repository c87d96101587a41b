"""ONNX's operators that move numbers about, on values with the batch as last axis, and those over axes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spota.policies.onnx_limits import TYPES, count_of
from spota.policies.onnx_values import (
    MOST_SEEN,
    Attributes,
    Operator,
    Seen,
    UnknownError,
    lifted,
    plain,
    reshaped,
    shape_of,
)


def flatten(attributes: Attributes, x: Any) -> Any:
    """Two axes."""
    axis = attributes.get("axis", 1)
    shape = shape_of(x)
    axis = axis + len(shape) if axis < 0 else axis
    return reshaped(x, (int(np.prod(shape[:axis], dtype=int)), int(np.prod(shape[axis:], dtype=int))))


def reshape(attributes: Attributes, x: Any, shape: Any = None) -> Any:
    """A shape that the file gives; 0 keeps an axis, −1 is the rest."""
    wanted = [int(s) for s in plain(attributes.get("shape") if shape is None else shape)]
    old = shape_of(x)
    if not attributes.get("allowzero"):
        wanted = [old[i] if s == 0 else s for i, s in enumerate(wanted)]
    if wanted.count(-1) == 1:
        known = int(np.prod([s for s in wanted if s != -1], dtype=int))
        wanted = [int(np.prod(old, dtype=int)) // max(known, 1) if s == -1 else s for s in wanted]
    return reshaped(x, tuple(wanted))


def squeeze(attributes: Attributes, x: Any, axes: Any = None) -> Any:
    """Without axes of length one."""
    shape = shape_of(x)
    gone = _axes(attributes, axes, len(shape), [i for i, s in enumerate(shape) if s == 1])
    return reshaped(x, tuple(s for i, s in enumerate(shape) if i not in gone))


def unsqueeze(attributes: Attributes, x: Any, axes: Any = None) -> Any:
    """With more axes of length one."""
    given: Any = attributes.get("axes") if axes is None else plain(axes)
    rank = len(shape_of(x)) + len(given)
    new, old = _axes({}, np.asarray(given), rank, []), iter(shape_of(x))
    return reshaped(x, tuple(1 if i in new else next(old) for i in range(rank)))


def transpose(attributes: Attributes, x: Any) -> Any:
    """Axes in another order; the batch stays last."""
    rank = len(shape_of(x))
    order = tuple(attributes.get("perm", range(rank)[::-1]))
    return Seen(x.array.transpose(*order, rank)) if isinstance(x, Seen) else x.transpose(order)


def concat(attributes: Attributes, *values: Any) -> Any:
    """One behind the other."""
    axis, rank = attributes.get("axis", 0), len(shape_of(values[0]))
    axis = axis + rank if axis < 0 else axis
    count_of((sum(int(np.prod(shape_of(v))) for v in values),), "a value")
    if not any(isinstance(v, Seen) for v in values):
        return np.concatenate([plain(v) for v in values], axis)
    n = next(v.array.shape[-1] for v in values if isinstance(v, Seen))
    parts = [lifted(v, rank) for v in values]
    return Seen(jnp.concatenate([jnp.broadcast_to(p, (*p.shape[:-1], n)) for p in parts], axis))


def take(attributes: Attributes, x: Any, indices: Any) -> Any:
    """Some entries of an axis."""
    axis, rank, index = attributes.get("axis", 0), len(shape_of(x)), plain(indices)
    axis = axis + rank if axis < 0 else axis
    size = shape_of(x)[axis]
    if index.size > MOST_SEEN or not ((index >= -size) & (index < size)).all():
        raise ValueError("it takes entries that are not there")
    index = np.where(index < 0, index + size, index)
    return Seen(jnp.take(x.array, index, axis)) if isinstance(x, Seen) else np.take(plain(x), index, axis)


def cut(attributes: Attributes, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None):
    """A piece of some axes."""
    given = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    found: dict[str, Any] = {k: attributes.get(k) if v is None else plain(v).tolist() for k, v in given.items()}
    rank, which = len(shape_of(x)), [slice(None)] * len(shape_of(x))
    axes_, steps_ = found["axes"] or range(len(found["starts"])), found["steps"] or [1] * len(found["starts"])
    for axis, a, b, step in zip(axes_, found["starts"], found["ends"], steps_, strict=True):
        which[axis + rank if axis < 0 else axis] = slice(a, None if step < 0 and b < -(2**31) else b, step)
    return Seen(x.array[tuple(which)]) if isinstance(x, Seen) else plain(x)[tuple(which)]


def expand(attributes: Attributes, x: Any, shape: Any) -> Any:
    """Repeated until it has the shape."""
    del attributes
    wanted = np.broadcast_shapes(shape_of(x), tuple(int(s) for s in plain(shape)))
    count_of(wanted, "a value")
    if isinstance(x, Seen):
        return Seen(jnp.broadcast_to(lifted(x, len(wanted)), (*wanted, x.array.shape[-1])))
    return np.broadcast_to(plain(x), wanted).copy()


def constant_of_shape(attributes: Attributes, shape: Any) -> Any:
    """One number everywhere."""
    wanted = tuple(int(s) for s in plain(shape))
    count_of(wanted, "a value")
    value = attributes["value"].array if "value" in attributes else np.zeros(1, np.float32)
    return np.full(wanted, value.reshape(-1)[0])


def reduced(function: Callable[..., Any]) -> Operator:
    """An operator that sums up over axes."""

    def operator(attributes: Attributes, x: Any, axes: Any = None) -> Any:
        rank = len(shape_of(x))
        over = tuple(_axes(attributes, axes, rank, list(range(rank))))
        keep = bool(attributes.get("keepdims", 1))
        if isinstance(x, Seen):
            return Seen(function(jnp, x.array, axis=over, keepdims=keep))
        return function(np, plain(x), axis=over, keepdims=keep)

    return operator


def softmax(attributes: Attributes, x: Any) -> Any:
    """Shares that sum to one."""
    axis, rank = attributes.get("axis", -1), len(shape_of(x))
    if not isinstance(x, Seen):
        raise UnknownError("Softmax of a constant")
    return Seen(jax.nn.softmax(x.array, axis + rank if axis < 0 else axis))


def cast(attributes: Attributes, x: Any) -> Any:
    """Another type; jax has 32 bits."""
    if attributes.get("to") not in TYPES:
        raise UnknownError(f"Cast to the type {attributes.get('to')}")
    dtype = np.dtype(TYPES[attributes["to"]])
    if isinstance(x, Seen):
        return Seen(x.array.astype(jax.dtypes.canonicalize_dtype(dtype)))
    return plain(x).astype(dtype)


def _axes(attributes: Attributes, given: Any, rank: int, usual: list[int]) -> list[int]:
    found = attributes.get("axes") if given is None else plain(given).reshape(-1).tolist()
    axes = [a + rank if a < 0 else a for a in found] if found is not None and len(found) else usual
    if any(not 0 <= a < rank for a in axes):
        raise ValueError(f"it names the axes {axes} of a value that has {rank}")
    return axes
