"""ONNX files with operators that are not written in jax: onnxruntime runs them on the host.

It may allocate what a file asks for, so only operators run whose results are no larger than what they are given, and
every size is known beforehand (`onnx.shape_inference`).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from spota.policies.onnx_graph import input_of, outputs_of
from spota.policies.onnx_limits import MOST_ELEMENTS, onnx_package, read_model, shown
from spota.policies.onnx_operators import OPERATORS
from spota.policies.onnx_reading import Reading, reading_of, said_about, split_words
from spota.sim.env import Platform
from spota.sim.host_policy import HostPolicy, OwnPolicy, ready

HARMLESS = frozenset(OPERATORS) | {
    "Constant", "ArgMax", "ArgMin", "Conv", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
    "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LogSoftmax", "HardSigmoid", "HardSwish", "Gelu",
    "Mish", "Swish", "ThresholdedRelu", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
    "Floor", "Ceil", "Round", "Sign", "Not", "And", "Or", "Xor", "GreaterOrEqual", "LessOrEqual", "IsNaN", "Mod",
    "Split", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceLogSumExp", "ReduceSumSquare", "CumSum", "GRU", "LSTM", "RNN",
    "Celu", "RMSNormalization", "Sum", "Mean", "Hardmax", "Shrink", "LpNormalization", "MeanVarianceNormalization",
}  # fmt: skip
"""Operators whose results cannot be sized by a number in the file."""


def on_host(source: str | Path, env: Platform, why: str) -> HostPolicy:
    """The network of a file as a policy on the host; `why` says what jax cannot run of it."""
    name, words = split_words(str(source))
    path = Path(name)
    model = read_model(path)
    inputs, shape = input_of(model)
    reading = reading_of(path, said_about(path, words), env, shape[-1], outputs_of(model))
    _refuse_large(path, model)
    run = session(path, model.SerializeToString(), inputs, reading.output, len(shape))
    found = ready(env, OwnPolicy(_acting(run, reading, env), "normalised"))
    return replace(found, note=f"{path} runs on the host, in onnxruntime: it has {why}. {reading.assumed}".rstrip())


def session(path: Path, data: bytes, inputs: str, output: str, rank: int = 2) -> Callable[[np.ndarray], np.ndarray]:
    """A function from observations [n, d] to outputs [n, …] in onnxruntime, on one thread."""
    opened = opened_in_onnxruntime(path, data)

    def run(observations: np.ndarray) -> np.ndarray:
        seen = np.ascontiguousarray(observations if rank == 2 else observations[0], np.float32)
        return np.asarray(opened.run([output], {inputs: seen})[0])

    return run


def opened_in_onnxruntime(path: Path, data: bytes) -> Any:
    """A session of onnxruntime on one thread; what it refuses is refused in one sentence."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ValueError(f"{path} needs the package onnxruntime: pip install 'spota[onnx]'.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has its own kinds of exceptions
        raise ValueError(f"{path}: onnxruntime refuses it: {' '.join(str(error).split())[:300]}.") from error


def _acting(run: Callable[[np.ndarray], np.ndarray], reading: Reading, env: Platform) -> Callable[[Any], Any]:
    """Observations [d, n], or [d], to actions as the reading says."""

    def act(observation: Any) -> Any:
        if not isinstance(observation, np.ndarray):
            raise TypeError("onnxruntime is not jax")
        columns = observation.reshape(observation.shape[0], -1)
        seen = np.asarray(reading.seen(jnp.asarray(columns)))
        found = jnp.asarray(run(seen.T).reshape(columns.shape[1], -1).T, jnp.float32)
        return np.asarray(reading.action(found, env.actions)).reshape(-1, *observation.shape[1:])

    return act


def _refuse_large(path: Path, model: Any) -> None:
    """Refuse operators that make much of little, and values whose size nobody can tell."""
    onnx = onnx_package()
    for node in model.graph.node:
        if node.op_type not in HARMLESS:
            raise ValueError(f"{path} is refused: it uses {shown(node.op_type)}, which is not run for strangers.")
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim[:-1]:
            dim.dim_value = 1
    try:
        known = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    except Exception as error:  # onnx has its own kinds of exceptions
        raise ValueError(f"{path} is refused: {' '.join(str(error).split())[:300]}.") from error
    sizes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*known.value_info, *known.output)}
    for name in (name for node in model.graph.node for name in node.output if name):
        if name not in sizes or 0 in sizes[name] or np.prod(sizes[name], dtype=float) > MOST_ELEMENTS:
            raise ValueError(f"{path} is refused: nobody can tell how large {shown(name)} is, or it is too large.")
