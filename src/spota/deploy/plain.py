"""A jax function as plain arithmetic on Python floats, for loops in which jax has no place.

jax traces the function once; what it recorded is printed as one straight Python function, number by number: a step of
the Cart-Pole is some eighty lines that take a few microseconds and allocate nothing that lasts. Arrays are taken apart
into their elements, so this is for equations and controllers, not for large networks.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from spota.deploy.primitives import ELEMENTWISE, NAMES, REDUCTIONS, SHAPES

Plain = Callable[..., tuple[float, ...]]
MOST_LINES = 50_000
INLINED = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""Under which of these names a primitive keeps the function that it calls."""


def plain(function: Callable[..., Any], arguments: int, what: str) -> Plain:
    """The function of that many scalars as one of floats; it returns the scalars of its result in one flat tuple."""
    traced = jax.make_jaxpr(lambda *values: jax.tree.leaves(function(*values)))(*[jnp.float32(0.5)] * arguments)
    inputs = [f"x{i}" for i in range(arguments)]
    printer = _Printer(what)
    results = printer.run(traced.jaxpr, traced.consts, [np.array(name, object) for name in inputs])
    flat = [str(name) for result in results for name in result.ravel()]
    body = "".join(f"    {line}\n" for line in printer.lines)
    ending = "".join(f"{name}, " for name in flat)
    source = f"def made({', '.join(inputs)}):\n{body}    return ({ending})\n"
    space = {**NAMES, "nan": math.nan, "inf": math.inf}
    exec(compile(source, f"<{what}>", "exec"), space)
    return space["made"]


class _Printer:
    """Prints a traced function; an array is a NumPy array of the names of its numbers."""

    def __init__(self, what: str):
        self.what = what
        self.lines: list[str] = []

    def run(self, jaxpr: core.Jaxpr, consts: Sequence[Any], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Print all equations; the names of the results."""
        known: dict[Any, np.ndarray] = dict(zip(jaxpr.invars, inputs, strict=True))
        known |= {var: _literal(value) for var, value in zip(jaxpr.constvars, consts, strict=True)}

        def read(atom: Any) -> np.ndarray:
            return _literal(atom.val) if isinstance(atom, core.Literal) else known[atom]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [read(atom) for atom in equation.invars])
            known |= dict(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: core.JaxprEqn, inputs: list[np.ndarray]) -> list[np.ndarray]:
        name, params = equation.primitive.name, equation.params
        inner = next((params[key] for key in INLINED if key in params), None)
        if inner is not None:
            closed = isinstance(inner, core.ClosedJaxpr)
            return self.run(inner.jaxpr if closed else inner, inner.consts if closed else (), inputs)
        if name in ELEMENTWISE:
            return [self._elementwise(ELEMENTWISE[name](params), inputs)]
        if name in REDUCTIONS:
            return [self._reduced(REDUCTIONS[name], inputs[0], params["axes"])]
        if name == "dot_general":
            return [self._product(inputs[0], inputs[1], params["dimension_numbers"])]
        if name in SHAPES:
            result = SHAPES[name](params, *inputs)
            return list(result) if isinstance(result, list) else [result]
        raise ValueError(
            f"{self.what} uses {name!r}, which cannot run outside of jax; write it with ordinary arithmetic on scalars."
        )

    def _elementwise(self, template: str, inputs: list[np.ndarray]) -> np.ndarray:
        arrays = np.broadcast_arrays(*inputs)
        result = np.empty(arrays[0].shape, object)
        for at in np.ndindex(result.shape):
            result[at] = self._name(template.format(*(array[at] for array in arrays)))
        return result

    def _reduced(self, template: str, values: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        kept = [axis for axis in range(values.ndim) if axis not in axes]
        rows = values.transpose(*kept, *axes).reshape(*(values.shape[axis] for axis in kept), -1)
        result = np.empty(rows.shape[:-1], object)
        for at in np.ndindex(result.shape):
            total = rows[at][0]
            for name in rows[at][1:]:
                total = self._name(template.format(total, name))
            result[at] = total
        return result

    def _product(self, a: np.ndarray, b: np.ndarray, dimensions: Any) -> np.ndarray:
        (over_a, over_b), (batch_a, _) = dimensions
        if batch_a:
            raise ValueError(f"{self.what} multiplies batches of matrices, which is for jax; write it for one domain.")
        free_a, free_b = ([i for i in range(m.ndim) if i not in over] for m, over in ((a, over_a), (b, over_b)))
        left = a.transpose(*free_a, *over_a).reshape([a.shape[i] for i in free_a] + [-1])
        right = b.transpose(*free_b, *over_b).reshape([b.shape[i] for i in free_b] + [-1])
        result = np.empty(left.shape[:-1] + right.shape[:-1], object)
        for i in np.ndindex(left.shape[:-1]):
            for j in np.ndindex(right.shape[:-1]):
                result[i + j] = self._name(" + ".join(f"{x} * {y}" for x, y in zip(left[i], right[j], strict=True)))
        return result

    def _name(self, expression: str) -> str:
        if len(self.lines) == MOST_LINES:
            raise ValueError(f"{self.what} has more than {MOST_LINES:,} operations, too many for a loop without jax.")
        self.lines.append(f"v{len(self.lines)} = {expression}")
        return f"v{len(self.lines) - 1}"


def _literal(value: Any) -> np.ndarray:
    """Numbers as Python writes them, in brackets where they are negative."""
    array = np.asarray(value)
    result = np.empty(array.shape, object)
    for at in np.ndindex(array.shape):
        result[at] = f"({array[at].item()!r})"
    return result
