"""Our policies as ONNX files: `observation` [batch, d] → `action` [batch, a], both in physical units, in float32.

The graph is written by hand with onnx.helper: scale, clip, (Gemm, Tanh)*, then the actuators' units and range. IR 8 and
opset 17 are pinned, because runtimes in the field refuse newer ones.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spota.policies.network import FNN, Linear
from spota.policies.onnx_limits import onnx_package

IR_VERSION, OPSET = 8, 17
INPUT, OUTPUT = "observation", "action"
Arrays = dict[str, np.ndarray]
Nodes = list[tuple[str, list[str], str]]
"""(operator, inputs, output); Gemm has its matrix transposed, as torch's."""


def exported(policy: FNN | Linear, papers: Mapping[str, str]) -> Any:
    """The policy as a model, with its papers in the metadata."""
    onnx = onnx_package()
    nodes, arrays = _network(policy) if isinstance(policy, FNN) else _linear(policy)
    _add_range(policy, nodes, arrays)
    made = [
        onnx.helper.make_node(op, inputs, [output], **({"transB": 1} if op == "Gemm" else {}))
        for op, inputs, output in nodes
    ]
    ends = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", size])]
        for name, size in ((INPUT, len(policy.contract.observations)), (OUTPUT, len(policy.contract.actions)))
    ]
    tensors = [onnx.numpy_helper.from_array(_float32(array), name) for name, array in arrays.items()]
    graph = onnx.helper.make_graph(made, "policy", *ends, initializer=tensors)
    opset = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="spota")
    onnx.helper.set_model_props(model, dict(papers))
    return model


def arrays_of(model: Any) -> dict[str, Any]:
    """The tensors of a model by name."""
    return {tensor.name: tensor for tensor in model.graph.initializer}


def _network(policy: FNN) -> tuple[Nodes, Arrays]:
    arrays: Arrays = {
        "scale": np.asarray(policy.contract.observation_scale),
        "one": np.ones(()),
        "minus_one": np.full((), -1.0),
    }
    nodes: Nodes = [("Mul", [INPUT, "scale"], "scaled"), ("Clip", ["scaled", "minus_one", "one"], "tanh_0")]
    for i, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True), start=1):
        arrays |= {f"weight_{i}": np.asarray(weight), f"bias_{i}": np.asarray(bias)}
        nodes.append(("Gemm", [f"tanh_{i - 1}", f"weight_{i}", f"bias_{i}"], f"layer_{i}"))
        nodes.append(("Tanh", [f"layer_{i}"], f"tanh_{i}"))
    arrays["half"] = np.asarray([(s.high - s.low) / 2 for s in policy.contract.actions])
    nodes.append(("Mul", [f"tanh_{len(policy.weights)}", "half"], "command"))
    return nodes, arrays


def _linear(policy: Linear) -> tuple[Nodes, Arrays]:
    return [("Gemm", [INPUT, "gains"], "command")], {"gains": np.asarray(policy.gains)}


def _add_range(policy: FNN | Linear, nodes: Nodes, arrays: Arrays) -> None:
    """Around the middle of the actuators' range, and within it."""
    low, high = (np.asarray([getattr(s, end) for s in policy.contract.actions]) for end in ("low", "high"))
    arrays |= {"middle": (low + high) / 2, "low": low, "high": high}
    nodes.append(("Add", ["command", "middle"], "wanted"))
    nodes.append(("Max", ["wanted", "low"], "above"))
    nodes.append(("Min", ["above", "high"], OUTPUT))


def _float32(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, np.dtype("<f4"))
