"""ONNX files from strangers: bytes first, then structure, then numbers. A model file is data, and stays data.

A file of 200 bytes can ask for 256 GiB, and one of 64 MB can hold thirty million empty nodes. So the bytes are walked
before protobuf sees them, and no tensor is made before its size is known. Nothing is read besides the file itself.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spota.policies.onnx_wire import Budget, walk

LIMIT = 64 * 2**20
"""Bytes of the largest file that is read."""
MOST_ELEMENTS = 10_000_000
"""Of one tensor, whether it is in the file or computed."""
TYPES = {1: "<f4", 11: "<f8", 7: "<i8", 6: "<i4", 9: "|b1", 10: "<f2"}
"""ONNX's numbers of the types that a policy has."""
TYPED_DATA = {1: "float_data", 11: "double_data", 7: "int64_data", 6: "int32_data", 9: "int32_data"}
OWN_DOMAINS = ("", "ai.onnx")
GRAPH, GRAPHS, SPARSE_TENSOR, SPARSE_TENSORS = 5, 10, 11, 12
"""Types of an attribute that are refused."""
EXTERNAL = 1


def onnx_package() -> Any:
    """The package `onnx`; without it one sentence."""
    try:
        import onnx
    except ImportError as error:
        raise ValueError("ONNX files need the package onnx: pip install 'spota[onnx]'.") from error
    return onnx


def read_model(path: str | Path) -> Any:
    """The model of a file, in which nothing is left that could surprise; else a ValueError names the file."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    size = path.stat().st_size
    if size > LIMIT:
        raise ValueError(f"{path} has {size} bytes, and a policy has at most {LIMIT}.")
    try:
        return parse_model(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is refused: {str(error).rstrip('.')}.") from error


def parse_model(data: bytes) -> Any:
    """The model in these bytes, if it is harmless."""
    onnx = onnx_package()
    model = onnx.ModelProto()
    walk(memoryview(data), model.DESCRIPTOR, Budget())
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's DecodeError, which has no home of its own
        raise ValueError("it is no ONNX file, or it is damaged") from error
    _refuse_strange(model)
    for tensor in tensors_of(model.graph):
        array_of(tensor)
    return model


def array_of(tensor: Any) -> np.ndarray:
    """A tensor's numbers, if they are finite and as many as it says."""
    name = shown(tensor.name)
    if tensor.data_location == EXTERNAL or tensor.external_data:
        raise ValueError(
            f"the numbers of {name} are in another file, and no other file is read; export with external_data=False, "
            "or join both: onnx.save(onnx.load('policy.onnx'), 'whole.onnx')"
        )
    if tensor.HasField("segment") or tensor.string_data or tensor.data_type not in TYPES:
        raise ValueError(f"{name} holds no plain numbers (data type {tensor.data_type}); export in float32")
    shape = tuple(tensor.dims)
    count = count_of(shape, name)
    dtype = np.dtype(TYPES[tensor.data_type])
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != count * dtype.itemsize:
            raise ValueError(f"{name} has {len(tensor.raw_data)} bytes, which are not the numbers of shape {shape}")
        array = np.frombuffer(tensor.raw_data, dtype)
    else:
        typed = getattr(tensor, TYPED_DATA.get(tensor.data_type, "float_data"))
        if len(typed) != count:
            raise ValueError(f"{name} has {len(typed)} numbers, which do not have the shape {shape}")
        array = np.array(typed).astype(dtype)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} has numbers that are not finite, so that it cannot control anything")
    return array.reshape(shape)


def count_of(shape: tuple[int, ...], what: str) -> int:
    """The elements of a shape, if they are not too many."""
    count = 1
    for size in shape:
        if size < 0:
            raise ValueError(f"{what} has the shape {shape}, which is none")
        count *= int(size)
    if count > MOST_ELEMENTS or len(shape) > 8:
        raise ValueError(f"{what} would have {count:.3g} elements, and a policy's tensors have at most 1e7")
    return count


def tensors_of(graph: Any) -> Iterator[Any]:
    """All tensors with numbers in them."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _refuse_strange(model: Any) -> None:
    """Refuse whatever could bring code, files or other graphs along."""
    graph = model.graph
    if model.functions or model.training_info:
        raise ValueError("it defines functions of its own; export without them (torch: dynamo=False)")
    if graph.sparse_initializer:
        raise ValueError("it has sparse tensors; export plain ones")
    for node in graph.node:
        if node.domain not in OWN_DOMAINS:
            raise ValueError(
                f"it uses {shown(node.op_type)} of {shown(node.domain)}, and only operators of ONNX itself are run; "
                "export without custom operators"
            )
        for attribute in node.attribute:
            if attribute.type in (GRAPH, GRAPHS) or attribute.HasField("g") or attribute.graphs:
                raise ValueError(f"{shown(node.op_type)} holds a graph of its own; export without If, Loop and Scan")
            if attribute.type in (SPARSE_TENSOR, SPARSE_TENSORS) or attribute.HasField("sparse_tensor"):
                raise ValueError("it has sparse tensors; export plain ones")
            if attribute.ref_attr_name:
                raise ValueError("it refers to an attribute of a function; export without functions")
    names = [tensor.name for tensor in graph.initializer]
    if len(set(names)) != len(names):
        raise ValueError("it has two tensors of one name")


def shown(name: str) -> str:
    """A name from a file, short enough for a sentence."""
    return repr(name if len(name) <= 60 else f"{name[:60]}…")
