"""What jax's primitives are in plain Python, for `plain`."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Params = Mapping[str, Any]
NAMES = {
    name: getattr(math, name)
    for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
        "expm1", "log", "log1p", "sqrt", "fabs", "floor", "ceil", "fmod", "copysign", "erf", "isfinite", "cbrt", "exp2",
    )
}  # fmt: skip
"""The functions that printed code may use."""

_FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
              "expm1", "log", "log1p", "sqrt", "floor", "ceil", "erf", "cbrt", "exp2")  # fmt: skip
_TEMPLATES = {
    **{name: f"{name}({{0}})" for name in _FUNCTIONS},
    "add": "{0} + {1}",
    "add_any": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "abs": "abs({0})",
    "sign": "(copysign(1.0, {0}) if {0} else 0.0)",
    "square": "{0} * {0}",
    "rsqrt": "1.0 / sqrt({0})",
    "logistic": "1.0 / (1.0 + exp(-{0}))",
    "atan2": "atan2({0}, {1})",
    "pow": "{0} ** {1}",
    "rem": "fmod({0}, {1})",
    "max": "({0} if {0} >= {1} else {1})",
    "min": "({0} if {0} <= {1} else {1})",
    "clamp": "({0} if {1} < {0} else {2} if {1} > {2} else {1})",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "(not {0})",
    "is_finite": "isfinite({0})",
    "select_n": "({2} if {0} else {1})",
    "stop_gradient": "{0}",
    "copy": "{0}",
    "copy_p": "{0}",
    "reduce_precision": "{0}",
}


def _converted(params: Params) -> str:
    kind = np.dtype(params["new_dtype"]).kind
    return {"f": "float({0})", "b": "bool({0})"}.get(kind, "int({0})")


def _power(params: Params) -> str:
    return f"{{0}} ** {params['y']}"


def _same(template: str) -> Callable[[Params], str]:
    return lambda _: template


ELEMENTWISE: dict[str, Callable[[Params], str]] = {name: _same(template) for name, template in _TEMPLATES.items()}
ELEMENTWISE |= {"convert_element_type": _converted, "integer_pow": _power}
"""Primitives that treat number by number: parameters → the expression, with {0}, {1}, … for the inputs."""

REDUCTIONS = {
    "reduce_sum": "{0} + {1}",
    "reduce_prod": "{0} * {1}",
    "reduce_max": _TEMPLATES["max"],
    "reduce_min": _TEMPLATES["min"],
    "reduce_and": "{0} & {1}",
    "reduce_or": "{0} | {1}",
}


def _broadcast(params: Params, values: np.ndarray) -> np.ndarray:
    shape = [1] * len(params["shape"])
    for at, size in zip(params["broadcast_dimensions"], values.shape, strict=True):
        shape[at] = size
    return np.broadcast_to(values.reshape(shape), params["shape"])


def _sliced(params: Params, values: np.ndarray) -> np.ndarray:
    steps = params["strides"] or (1,) * values.ndim
    cuts = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return values[tuple(slice(*cut) for cut in cuts)]


def _split(params: Params, values: np.ndarray) -> list[np.ndarray]:
    return np.split(values, np.cumsum(params["sizes"])[:-1].tolist(), axis=params["axis"])


SHAPES: dict[str, Callable[..., np.ndarray | list[np.ndarray]]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda params, values: values.reshape(params["new_sizes"]),
    "squeeze": lambda params, values: values.squeeze(tuple(params["dimensions"])),
    "expand_dims": lambda params, values: np.expand_dims(values, params["dimensions"]),
    "transpose": lambda params, values: values.transpose(params["permutation"]),
    "slice": _sliced,
    "split": _split,
    "concatenate": lambda params, *values: np.concatenate(values, axis=params["dimension"]),
    "stack": lambda params, *values: np.stack(values, axis=params["axis"]),
    "rev": lambda params, values: np.flip(values, params["dimensions"]),
    "unstack": lambda params, values: [np.asarray(v, object) for v in np.moveaxis(values, params["axis"], 0)],
}
"""Primitives that only move numbers."""
