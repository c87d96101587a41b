"""Our policies as ONNX files: `observation` [batch, d] → `action` [batch, a], both in physical units, in float32.

The graph is written by hand with onnx.helper: scale, clip, (Gemm, Tanh)*, then the actuators' units and range. What a
network remembers is a further input and output (`onnx_memory`). IR 8 and opset 17 are pinned, because runtimes in the
field refuse newer ones.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spota.policies.architecture import Network
from spota.policies.assembly import Stored
from spota.policies.network import FNN, Linear
from spota.policies.onnx_limits import onnx_package
from spota.policies.onnx_memory import (
    MEMORY,
    MEMORY_NEXT,
    Arrays,
    Nodes,
    memory_size,
    read_memory,
    write_memory,
)

IR_VERSION, OPSET = 8, 17
INPUT, OUTPUT = "observation", "action"
ATTRIBUTES = {"Gemm": {"transB": 1}, "Concat": {"axis": 1}, "Gather": {"axis": 1}}
"""Of operators; Gemm has its matrix transposed, as torch's."""


def exported(policy: Stored, papers: Mapping[str, str]) -> Any:
    """The policy as a model, with its papers in the metadata."""
    onnx = onnx_package()
    nodes, arrays = _linear(policy) if isinstance(policy, Linear) else _network(policy)
    _add_range(policy, nodes, arrays)
    made = [onnx.helper.make_node(op, inputs, [output], **ATTRIBUTES.get(op, {})) for op, inputs, output in nodes]
    ends = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", size]) for name, size in end]
        for end in _ends(policy)
    ]
    tensors = [onnx.numpy_helper.from_array(_little_endian(array), name) for name, array in arrays.items()]
    graph = onnx.helper.make_graph(made, "policy", *ends, initializer=tensors)
    opset = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="spota")
    onnx.helper.set_model_props(model, dict(papers))
    return model


def _ends(policy: Stored) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Inputs and outputs by name, with their sizes."""
    inputs, outputs = [(INPUT, len(policy.contract.observations))], [(OUTPUT, len(policy.contract.actions))]
    size = memory_size(policy)
    return (inputs + [(MEMORY, size)], outputs + [(MEMORY_NEXT, size)]) if size else (inputs, outputs)


def _network(policy: Network) -> tuple[Nodes, Arrays]:
    arrays: Arrays = {
        "scale": np.asarray(policy.contract.observation_scale),
        "one": np.ones(()),
        "minus_one": np.full((), -1.0),
    }
    now, action = "tanh_0" if isinstance(policy, FNN) else "now", f"tanh_{len(policy.weights)}"
    nodes: Nodes = [("Mul", [INPUT, "scale"], "scaled"), ("Clip", ["scaled", "minus_one", "one"], now)]
    if not isinstance(policy, FNN):
        _add(read_memory(policy, now, "tanh_0"), nodes, arrays)
    for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True), start=1):
        arrays |= {f"weight_{i}": np.asarray(weight), f"bias_{i}": np.asarray(bias)}
        nodes.append(("Gemm", [f"tanh_{i - 1}", f"weight_{i}", f"bias_{i}"], f"layer_{i}"))
        nodes.append(("Tanh", [f"layer_{i}"], f"tanh_{i}"))
    if not isinstance(policy, FNN):
        _add(write_memory(policy, now, action), nodes, arrays)
    arrays["half"] = np.asarray([(s.high - s.low) / 2 for s in policy.contract.actions])
    nodes.append(("Mul", [action, "half"], "command"))
    return nodes, arrays


def _linear(policy: Linear) -> tuple[Nodes, Arrays]:
    return [("Gemm", [INPUT, "gains"], "command")], {"gains": np.asarray(policy.gains)}


def _add(more: tuple[Nodes, Arrays], nodes: Nodes, arrays: Arrays) -> None:
    nodes += more[0]
    arrays |= more[1]


def _add_range(policy: Stored, nodes: Nodes, arrays: Arrays) -> None:
    """Around the middle of the actuators' range, and within it."""
    low, high = (np.asarray([getattr(s, end) for s in policy.contract.actions]) for end in ("low", "high"))
    more: Nodes = [
        ("Add", ["command", "middle"], "wanted"),
        ("Max", ["wanted", "low"], "above"),
        ("Min", ["above", "high"], OUTPUT),
    ]
    _add((more, {"middle": (low + high) / 2, "low": low, "high": high}), nodes, arrays)


def _little_endian(array: np.ndarray) -> np.ndarray:
    """Indices in 64 bits, as ONNX wants them, and all other numbers in float32."""
    return np.ascontiguousarray(array, np.dtype("<i8" if array.dtype.kind == "i" else "<f4"))
