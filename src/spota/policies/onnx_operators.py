"""ONNX's operators in jax: those that SB3, rsl_rl, mjlab and we write, and their neighbours."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spota.policies import onnx_shapes as shapes
from spota.policies.onnx_limits import array_of
from spota.policies.onnx_values import Attributes, Operator, Seen, UnknownError, elementwise, shape_of


def gemm(attributes: Attributes, a: Any, b: Any, c: Any = None) -> Any:
    """α A B + β C, where A is one row, the observation's."""
    if not isinstance(a, Seen) or isinstance(b, Seen) or len(a.shape) != 2 or b.ndim != 2 or attributes.get("transA"):
        raise UnknownError("Gemm of other things than one row and a matrix")
    weight = jnp.asarray(b, jnp.float32) if attributes.get("transB") else jnp.asarray(b, jnp.float32).T
    product = _product(weight, a)
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    product = product if alpha == 1.0 else Seen(alpha * product.array)
    if c is None:
        return product
    return ADD({}, product, c if beta == 1.0 else MUL({}, c, np.float32(beta)))


def matmul(attributes: Attributes, a: Any, b: Any) -> Any:
    """A B, where A is one row or a vector, the observation's, or B a column."""
    del attributes
    if not isinstance(a, Seen) or isinstance(b, Seen) or b.ndim != 2:
        raise UnknownError("MatMul of other things than one row and a matrix")
    return _product(jnp.asarray(b, jnp.float32).T, a)


def _product(weight: Any, row: Seen) -> Seen:
    """W x for every observation; the batch stays last, as elsewhere."""
    *lead, size = row.shape
    if any(axis != 1 for axis in lead) or weight.shape[1] != size:
        raise UnknownError(f"a product of {row.shape} and {weight.shape[::-1]}")
    n = row.array.shape[-1]
    return Seen(jnp.tensordot(weight, row.array.reshape(size, n), 1).reshape(*lead, weight.shape[0], n))


def layer_norm(attributes: Attributes, x: Any, scale: Any, bias: Any = None) -> Any:
    """Mean zero and variance one over the last axes."""
    axis, rank = attributes.get("axis", -1), len(shape_of(x))
    if not isinstance(x, Seen):
        raise UnknownError("LayerNormalization of a constant")
    over = tuple(range(axis + rank if axis < 0 else axis, rank))
    centred = x.array - x.array.mean(over, keepdims=True)
    variance = (centred**2).mean(over, keepdims=True)
    normal = MUL({}, Seen(centred * jax.lax.rsqrt(variance + attributes.get("epsilon", 1e-5))), scale)
    return normal if bias is None else ADD({}, normal, bias)


def _clip(xp: Any, attributes: Attributes, x: Any, low: Any = None, high: Any = None) -> Any:
    low = attributes.get("min") if low is None else low
    high = attributes.get("max") if high is None else high
    x = x if low is None else xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


def _elu(xp: Any, attributes: Attributes, x: Any) -> Any:
    return xp.where(x > 0, x, attributes.get("alpha", 1.0) * xp.expm1(xp.minimum(x, 0)))


def _selu(xp: Any, attributes: Attributes, x: Any) -> Any:
    gamma, alpha = attributes.get("gamma", 1.0507010221481323), attributes.get("alpha", 1.6732631921768188)
    return gamma * xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0)))


def of_numpy(name: str) -> Operator:
    """An operator that NumPy and jax have under one name."""
    return elementwise(lambda xp, _attributes, *values: getattr(xp, name)(*values))


def of_python(function: Callable[..., Any]) -> Operator:
    """An operator of Python's own."""
    return elementwise(lambda _xp, _attributes, *values: function(*values))


def _divided(xp: Any, _attributes: Attributes, a: Any, b: Any) -> Any:
    return a / b if np.issubdtype(a.dtype, np.floating) else xp.floor_divide(a, b)


ADD, MUL = of_python(operator.add), of_python(operator.mul)
SAME_NAME = {
    "Pow": "power", "Abs": "abs", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Sin": "sin", "Cos": "cos",
    "Tanh": "tanh", "Where": "where",
}  # fmt: skip

OPERATORS: dict[str, Operator] = {
    **{name: of_numpy(theirs) for name, theirs in SAME_NAME.items()},
    "Add": ADD,
    "Mul": MUL,
    "Sub": of_python(operator.sub),
    "Div": elementwise(_divided),
    "Neg": of_python(operator.neg),
    "Reciprocal": of_python(lambda x: 1 / x),
    "Sigmoid": elementwise(lambda xp, _, x: 0.5 * (xp.tanh(0.5 * x) + 1)),
    "Relu": elementwise(lambda xp, _, x: xp.maximum(x, 0)),
    "LeakyRelu": elementwise(lambda xp, a, x: xp.where(x > 0, x, a.get("alpha", 0.01) * x)),
    "PRelu": elementwise(lambda xp, _, x, slope: xp.where(x > 0, x, slope * x)),
    "Elu": elementwise(_elu),
    "Selu": elementwise(_selu),
    "Softplus": elementwise(lambda xp, _, x: xp.logaddexp(x, 0.0)),
    "Softsign": elementwise(lambda xp, _, x: x / (1 + xp.abs(x))),
    "Erf": of_python(jax.scipy.special.erf),
    "Clip": elementwise(_clip),
    "Min": elementwise(lambda xp, _, *x: functools.reduce(xp.minimum, x)),
    "Max": elementwise(lambda xp, _, *x: functools.reduce(xp.maximum, x)),
    "Greater": of_python(operator.gt),
    "Less": of_python(operator.lt),
    "Equal": of_python(operator.eq),
    "Identity": lambda _, x: x,
    "Dropout": lambda _, x, *_rest: x,
    "Cast": shapes.cast,
    "Gemm": gemm,
    "MatMul": matmul,
    "Flatten": shapes.flatten,
    "Reshape": shapes.reshape,
    "Squeeze": shapes.squeeze,
    "Unsqueeze": shapes.unsqueeze,
    "Transpose": shapes.transpose,
    "Concat": shapes.concat,
    "Gather": shapes.take,
    "Slice": shapes.cut,
    "Shape": lambda _, x: np.asarray(shape_of(x), np.int64),
    "Expand": shapes.expand,
    "ConstantOfShape": shapes.constant_of_shape,
    "ReduceMean": shapes.reduced(lambda xp, x, **how: xp.mean(x, **how)),
    "ReduceSum": shapes.reduced(lambda xp, x, **how: xp.sum(x, **how)),
    "ReduceMax": shapes.reduced(lambda xp, x, **how: xp.max(x, **how)),
    "ReduceMin": shapes.reduced(lambda xp, x, **how: xp.min(x, **how)),
    "ReduceLogSumExp": shapes.reduced(lambda xp, x, **how: xp.log(xp.sum(xp.exp(x), **how))),
    "Softmax": shapes.softmax,
    "LayerNormalization": layer_norm,
}
"""What SB3, rsl_rl, mjlab and we write, and its neighbours; everything else is onnxruntime's."""


def constant(node: Any) -> np.ndarray:
    """The number or numbers of a Constant."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return array_of(attribute.t)
        if attribute.name in ("value_float", "value_floats"):
            return np.asarray(attribute.f if attribute.name == "value_float" else list(attribute.floats), np.float32)
        if attribute.name in ("value_int", "value_ints"):
            return np.asarray(attribute.i if attribute.name == "value_int" else list(attribute.ints), np.int64)
    raise ValueError("it has a Constant without numbers")
