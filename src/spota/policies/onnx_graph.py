"""The part of an ONNX file that leads from the observation to the action, as plain values: nodes, constants, weights.

A file also holds values, log probabilities and shapes that nobody asks for. What reaches the action is kept; what does
not depend on the observation is computed once, here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spota.policies.onnx_limits import array_of, count_of, shown
from spota.policies.onnx_operators import OPERATORS, constant
from spota.policies.onnx_values import MOST_SEEN, Seen, UnknownError, shape_of

MOST_COMPUTED = 20_000_000
"""Elements of all constants together that are computed when a file is read."""
LAYERS = ("Gemm", "MatMul")
"""Operators whose constants are weights, which an optimizer may move."""
UNFIT = (ValueError, TypeError, IndexError, AttributeError, KeyError, ArithmeticError, MemoryError, StopIteration)
"""What an operator may raise if its inputs are not what it takes."""


@dataclass(frozen=True)
class Tensor:
    """A constant that can be compared and hashed."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> "Tensor":
        """The numbers in little-endian order."""
        array = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
        return cls(array.dtype.str, array.shape, array.tobytes())

    @property
    def array(self) -> np.ndarray:
        """As NumPy has it."""
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Node:
    """One operator; attributes by name, in alphabetical order."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Graph:
    """From the input to one output; `shape` is the file's for one observation."""

    input: str
    shape: tuple[int, ...]
    output: str
    nodes: tuple[Node, ...]
    constants: tuple[tuple[str, Tensor], ...]
    weights: tuple[str, ...]
    """Names of the constants that are parameters, and so not among the constants."""

    def run(self, weights: Sequence[Any], observation: Any) -> Seen:
        """The output for observations [d, n], with the file's shape and then n."""
        values: dict[str, Any] = {name: tensor.array for name, tensor in self.constants}
        values |= dict(zip(self.weights, weights, strict=True))
        values[self.input] = Seen(observation.reshape(*self.shape, observation.shape[-1]))
        for node in self.nodes:
            values.update(zip(node.outputs, computed(node, values), strict=False))
        return values[self.output]


def outputs_of(model: Any) -> dict[str, tuple[int, ...]]:
    """The outputs by name, with their shapes; 0 where the file leaves it open."""
    return {o.name: tuple(d.dim_value for d in o.type.tensor_type.shape.dim) for o in model.graph.output}


def input_of(model: Any) -> tuple[str, tuple[int, ...]]:
    """The one input and its shape for one observation."""
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    if len(inputs) != 1:
        names = ", ".join(shown(i.name) for i in inputs[:5]) or "none"
        raise ValueError(
            f"it has {len(inputs)} inputs ({names}); export a network with one, the observation. If the others are a "
            "memory: that of a file which spota did not export is not carried; write the network as an object with "
            "start and step (docs/contracts.md)"
        )
    shape = tuple(d.dim_value for d in inputs[0].type.tensor_type.shape.dim)
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] > 1) or not 0 < shape[-1] <= MOST_SEEN:
        raise ValueError(f"its input {shown(inputs[0].name)} has the shape {shape}; export with one of (1, signals)")
    return inputs[0].name, (*(1 for _ in shape[:-1]), shape[-1])


def graph_of(model: Any, output: str) -> tuple[Graph, tuple[np.ndarray, ...]]:
    """The graph of one output and its weights; `UnknownError` if jax cannot run it."""
    name, shape = input_of(model)
    nodes = _cut_back([node_of(node) for node in model.graph.node if node.op_type != "Constant"], output)
    values: dict[str, Any] = {tensor.name: array_of(tensor) for tensor in model.graph.initializer}
    values |= {node.output[0]: constant(node) for node in model.graph.node if node.op_type == "Constant"}
    values[name] = Seen(jax.ShapeDtypeStruct((*shape, 1), jnp.float32))
    kept = _folded(nodes, values)
    if not isinstance(values.get(output), Seen):
        raise ValueError(f"its output {shown(output)} does not depend on the observation")
    kept = _cut_back(kept, output)
    needed = {i for node in kept for i in node.inputs}
    weights = tuple(dict.fromkeys(i for node in kept for i in _weights(node, values, kept)))
    rest = tuple(
        (n, Tensor.of(np.asarray(values[n]))) for n in sorted(needed - {*weights, "", name}) if _is_constant(values[n])
    )
    return Graph(name, shape, output, tuple(kept), rest, weights), tuple(np.asarray(values[w]) for w in weights)


def computed(node: Node, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a node returns."""
    if node.operator not in OPERATORS:
        raise UnknownError(f"the operator {node.operator}")
    inputs = [values[i] if i else None for i in node.inputs]
    while inputs and inputs[-1] is None:
        inputs.pop()
    with np.errstate(all="ignore"):
        found = OPERATORS[node.operator](dict(node.attributes), *inputs)
    return (found,)


def node_of(node: Any) -> Node:
    """An operator of a file as a plain value."""
    attributes = tuple(sorted((a.name, _attribute(a)) for a in node.attribute))
    return Node(node.op_type, tuple(node.input), tuple(node.output), attributes)


def _attribute(attribute: Any) -> Any:
    kinds = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints"}
    if attribute.type not in kinds:
        raise UnknownError(f"the attribute {shown(attribute.name)}")
    value = getattr(attribute, kinds[attribute.type])
    if attribute.type == 4:
        return Tensor.of(array_of(value))
    if attribute.type == 1 and not np.isfinite(value):
        raise ValueError(f"the attribute {shown(attribute.name)} is not finite")
    return tuple(value) if attribute.type in (6, 7) else value


def _cut_back(nodes: Sequence[Node], output: str) -> list[Node]:
    """Only what reaches the output."""
    wanted, kept = {output}, []
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            kept.append(node)
            wanted |= set(node.inputs)
    return kept[::-1]


def _folded(nodes: Sequence[Node], values: dict[str, Any]) -> list[Node]:
    """Nodes that depend on the observation; the others become constants among the values. Sizes are checked first."""
    kept, spent = [], 0
    for node in nodes:
        missing = [i for i in node.inputs if i and i not in values]
        if missing:
            raise ValueError(f"{node.operator} uses {shown(missing[0])}, which nothing before it makes")
        seen = any(isinstance(values[i], Seen) for i in node.inputs if i)
        try:
            found = _abstract(node, values) if seen else computed(node, values)
        except UNFIT as error:
            why = " ".join(str(error).split())[:200]
            raise ValueError(f"{shown(node.operator)} cannot work on what it is given ({why})") from error
        for name, value in zip(node.outputs, found, strict=False):
            size = count_of(shape_of(value), "a value")
            spent += size
            if spent > MOST_COMPUTED or (isinstance(value, Seen) and size > MOST_SEEN):
                raise ValueError(f"{node.operator} makes {size} numbers, which is beyond any policy")
            values[name] = value
        if any(isinstance(value, Seen) for value in found):
            kept.append(node)
    return kept


def _abstract(node: Node, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Shapes and types of what depends on the observation, without a number computed; shapes themselves are numbers."""
    seen = {i: values[i] for i in node.inputs if i and isinstance(values[i], Seen)}
    fixed: list[Any] = []

    def run(arrays: dict[str, Any]) -> list[Any]:
        found = computed(node, {**values, **{name: Seen(array) for name, array in arrays.items()}})
        fixed.extend(None if isinstance(value, Seen) else value for value in found)
        return [value.array if isinstance(value, Seen) else None for value in found]

    shapes = jax.eval_shape(run, {name: value.array for name, value in seen.items()})
    return tuple(Seen(shape) if value is None else value for shape, value in zip(shapes, fixed, strict=True))


def _weights(node: Node, values: Mapping[str, Any], nodes: Sequence[Node]) -> list[str]:
    """The constants of a layer: its matrix and its bias."""
    made_by = {name: other.operator for other in nodes for name in other.outputs}
    bias = node.operator == "Add" and any(made_by.get(i) == "MatMul" for i in node.inputs)
    if not bias and node.operator not in LAYERS:
        return []
    return [i for i in node.inputs if i and _is_constant(values[i]) and np.asarray(values[i]).dtype.kind == "f"]


def _is_constant(value: Any) -> bool:
    return not isinstance(value, Seen)
