"""Files as an accident or an enemy would leave them, thousands of each kind, and what becomes of them.

python tests/crafted.py DIRECTORY HOW_MANY reads them in a process of its own, whose memory is limited.
"""

import copy
import io
import json
import resource
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tomli_w

from point_mass import PointMass
from spota import policies
from spota.certify.certificate import Certificate
from spota.envs import make
from spota.files.documents import read_json
from spota.runs import plan
from spota.sim import domain_set
from spota.sim.acting import stepping
from three_signals import ThreeSignals

GIGABYTE = 2**30
ENV, CART_POLE = make("catapult"), make("cart-pole")
MASS, THREE = PointMass(), ThreeSignals()
NONSENSE = (
    None, True, -1, 0, 1e308, 1e999, float("nan"), 2**70, 10**400, "", "x", "inf", "NaN", "\n", [], [[]], {}, {"a": 1},
    [float("nan")], ["x"], "FNN", "\ud800", -0.5, 3.5, "numpyro.Gamma", "numpyro.LKJ",
)  # fmt: skip


def deep(n: int = 20_000) -> str:
    return "[" * n + "]" * n


# What there is to spoil.


def policy_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as here:
        return policies.save(policies.fnn(jax.random.key(0), ENV, (2,)), Path(here) / "p.npz").read_bytes()


def domain_document() -> dict[str, Any]:
    return domain_set.draw(jax.random.key(0), CART_POLE, 5, 0).to_dict()


def settings_document() -> dict[str, Any]:
    return plan.resolve(None, {"env": "cart-pole", "solver": "ppo"}).table()


def certificate_document() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "data" / "certificate-format-1.json").read_text())


# How it is spoilt.


def torn(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes that are flipped, cut off, doubled or left out."""
    spoilt = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        a, b = sorted(rng.integers(0, len(spoilt) + 1, 2))
        how = rng.integers(5)
        if how == 0 and a < len(spoilt):
            spoilt[a] = rng.integers(256)
        elif how == 1:
            del spoilt[b:]
        elif how == 2:
            spoilt[a:a] = spoilt[a : a + 50]
        elif how == 3:
            del spoilt[a : a + 5]
        else:
            spoilt[a : a + 4] = struct.pack("<I", rng.choice([0, 1, 2**31, 2**32 - 1]))
    return bytes(spoilt)


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a document, as what holds it and under which name."""
    if not isinstance(document, dict | list):
        return []
    keys = list(document) if isinstance(document, dict) else range(len(document))
    return [place for k in keys for place in [(document, k), *places(document[k])]]


def twisted(rng: np.random.Generator, document: Any) -> Any:
    """A document with some values that are nonsense, missing, or under another name."""
    twisted = copy.deepcopy(document)
    for _ in range(rng.integers(1, 3)):
        there = places(twisted)
        holder, key = there[rng.integers(len(there))]
        how = rng.integers(4)
        if how == 0 and isinstance(holder, dict):
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[f"{key}_"] = holder.pop(key)
        else:
            holder[key] = copy.deepcopy(NONSENSE[rng.integers(len(NONSENSE))])
    return twisted


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def as_toml(document: Any) -> bytes:
    try:
        return tomli_w.dumps(document).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):  # TOML has no null
        return repr(document).encode("utf-8", "surrogatepass")


# Policy files by hand, below what NumPy and zipfile would write.


def npy(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    size = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + size + header.encode() + data


def header(descr: str = "'<f4'", shape: str = "(2,)", fortran: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def arrays_of(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data)) as file:
        return dict(file)


def saved(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def with_about(data: bytes, about: Any) -> bytes:
    text = about if isinstance(about, str) else json.dumps(about)
    return saved({**arrays_of(data), "about": np.array(text)})


def flagged(data: bytes, offset: int, value: int) -> bytes:
    """The archive with one field changed in every local header and in the directory."""
    spoilt = bytearray(data)
    for mark, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        at = spoilt.find(mark)
        while at >= 0:
            spoilt[at + offset + shift : at + offset + shift + 2] = struct.pack("<H", value)
            at = spoilt.find(mark, at + 4)
    return bytes(spoilt)


def crafted_policies() -> dict[str, bytes]:
    """One of each trick that has ever worked."""
    good = policy_bytes()
    members, arrays = members_of(good), arrays_of(good)
    about = json.loads(str(arrays["about"]))

    def first(data: bytes) -> bytes:
        return archive({**members, "array_0.npy": data})

    def contract(**changes: Any) -> bytes:
        return with_about(good, {**about, "contract": {**about["contract"], **changes}})

    signal = about["contract"]["observations"][0]
    return {
        "structured": first(npy(header("[('a', '<f4'), ('b', '<f4')]"), bytes(16))),
        "subarray": first(npy(header("('<f4', (2,))"), bytes(16))),
        "objects": first(npy(header("'|O'"), bytes(16))),
        "void": first(npy(header("'|V8'"), bytes(16))),
        "dates": first(npy(header("'<M8[s]'"), bytes(16))),
        "400 GB": first(npy(header(shape="(100000000000,)"), bytes(8))),
        "a long text": first(npy(header("'<U100000000'"), bytes(8))),
        "beyond all sizes": first(npy(header(shape=f"({10**30},)"), bytes(8))),
        "nothing, endlessly": first(npy(header(shape=f"(0, {10**30})"))),
        "negative": first(npy(header(shape="(-2,)"), bytes(8))),
        "no shape": first(npy(header(shape="'x'"), bytes(8))),
        "deep header": first(npy(header(shape=deep(2000)), bytes(8))),
        "deeper header": first(npy(header(shape=deep()), bytes(8), (2, 0))),
        "unknown type": first(npy(header("'<q9'"), bytes(8))),
        "other version": first(npy(header(), bytes(8), (9, 0))),
        "empty member": first(b""),
        "text weights": saved({**arrays, "array_0": np.full((2, 1), "x")}),
        "complex weights": saved({**arrays, "array_0": np.ones((2, 1), complex)}),
        "whole weights": saved({**arrays, "array_0": np.ones((2, 1), int)}),
        "scalar weights": saved({**arrays, "array_0": np.float32(1)}),
        "too large weights": saved({**arrays, "array_0": np.full((2, 1), 1e300)}),
        "no arrays": saved({"about": arrays["about"]}),
        "an array too many": saved({**arrays, "array_9": np.ones(2)}),
        "a number about itself": saved({**arrays, "about": np.ones(3)}),
        "deep JSON": with_about(good, deep()),
        "a list": with_about(good, [1]),
        "low is text": contract(observations=[{**signal, "low": "x"}]),
        "low is high": contract(observations=[{**signal, "low": 1.0, "high": 1.0}]),
        "dt is NaN": contract(dt=float("nan")),
        "dt is negative": contract(dt=-1.0),
        "dt is text": contract(dt="fast"),
        "name is a number": contract(env=3),
        "no signals": contract(actions=[]),
        "unknown compression": flagged(good, 8, 97),
        "encrypted": flagged(good, 6, 1),
        "bomb": archive({**members, "array_0.npy": npy(header(shape="(500000000,)"), bytes(2 * GIGABYTE // 40))}, 8),
        "two of a name": archive(members) + archive(members)[:40],
        "a picture": archive({**members, "picture.png": b"png"}),
        "newer": with_about(good, {**about, "format": 99}),
    }


# ONNX files, by hand where the package would not write them.


def onnx_model(nodes: list[Any], tensors: list[Any], size: int = 2) -> Any:
    """A model from `observation` to `action` of these nodes and tensors."""
    from onnx import TensorProto, helper

    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, s]) for n, s in (("observation", size), ("action", 1))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def onnx_bytes(**memory: int) -> bytes:
    """An exported policy of ours, with or without memory."""
    from spota.runs import exporting

    architecture = policies.Architecture((2,), **memory)
    return exporting.in_bytes(policies.new_network(jax.random.key(0), MASS, architecture), None)


def crafted_onnx() -> dict[str, bytes]:
    """One of each trick."""
    models = {**_tampered_tensors(), **_hungry_graphs(), **_strange_graphs()}
    return {
        **{name: model.SerializeToString() for name, model in models.items()},
        "a million empty nodes": b"\x3a" + _length(2_000_000) + b"\x0a\x00" * 1_000_000,
        "nested": _nested(2000),
        "nothing": b"",
        "text file": b"hello, world",
    }


def _linear_model(weight: Any = None) -> Any:
    """One matrix."""
    from onnx import helper, numpy_helper

    weight = np.ones((1, 2), np.float32) if weight is None else weight
    gemm = helper.make_node("Gemm", ["observation", "w"], ["action"], transB=1)
    return onnx_model([gemm], [numpy_helper.from_array(weight, "w")])


def _tampered_tensors() -> dict[str, Any]:
    """Numbers that are elsewhere, not finite, too few, or none at all."""
    from onnx import TensorProto, helper

    def changed(change: Callable[[Any], Any]) -> Any:
        model = _linear_model()
        change(model.graph.initializer[0])
        return model

    def external(tensor: Any, place: str) -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", place

    letters: Any = [b"x"]
    text, twice, sparse = _linear_model(), _linear_model(), _linear_model()
    text.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.STRING, [1], letters))
    twice.graph.initializer.append(twice.graph.initializer[0])
    sparse.graph.sparse_initializer.add().values.CopyFrom(sparse.graph.initializer[0])
    return {
        "absolute path": changed(lambda t: external(t, "/etc/passwd")),
        "path above": changed(lambda t: external(t, "../w.bin")),
        "file beside": changed(lambda t: external(t, "w.bin")),
        "cut off": changed(lambda t: setattr(t, "raw_data", t.raw_data[:3])),
        "dims that lie": changed(lambda t: t.dims.append(10**9)),
        "NaN": _linear_model(np.full((1, 2), np.nan, np.float32)),
        "infinite": _linear_model(np.full((1, 2), np.inf, np.float32)),
        "text": text,
        "two of a name": twice,
        "sparse": sparse,
    }


def _hungry_graphs() -> dict[str, Any]:
    """Few bytes that ask for much memory."""
    from onnx import helper, numpy_helper

    node = helper.make_node
    end = [node("ReduceSum", ["big"], ["sum"], keepdims=0), node("Add", ["observation", "sum"], ["action"])]

    def shaped(operator: str, shape: list[int]) -> Any:
        sizes = numpy_helper.from_array(np.array(shape, np.int64), "sizes")
        first = ["sizes"] if operator == "ConstantOfShape" else ["observation", "sizes"]
        return onnx_model([node(operator, first, ["big"]), *end], [sizes])

    many = [node("ConstantOfShape", ["sizes"], [f"c{i}"]) for i in range(100)]
    sum_of_all = node("Sum", [f"c{i}" for i in range(100)], ["action"])
    ten_million = numpy_helper.from_array(np.array([10_000_000], np.int64), "sizes")
    a, b = (numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in (("a", (10**5, 1)), ("b", (1, 10**5))))
    return {
        "256 GiB": shaped("ConstantOfShape", [2**36]),
        "256 GiB, expanded": shaped("Expand", [2**18, 2**18, 2]),
        "beyond all sizes": shaped("ConstantOfShape", [2**62, 2**62]),
        "negative": shaped("ConstantOfShape", [-5]),
        "tiled": shaped("Tile", [2**30, 2**30]),
        "many large": onnx_model([*many, sum_of_all], [ten_million]),
        "outer product": onnx_model([node("Add", ["a", "b"], ["big"]), *end], [a, b]),
    }


def _strange_graphs() -> dict[str, Any]:
    """Code, other graphs, circles and nonsense."""
    from onnx import TensorProto, helper

    node, linear, function = helper.make_node, _linear_model(), _linear_model()
    weight = linear.graph.initializer[0]
    function.functions.add().name = "f"
    branch = helper.make_graph([], "b", [], [helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, 2])])
    circle = [node("Add", ["x", "observation"], ["y"]), node("Add", ["y", "observation"], ["x"])]
    return {
        "custom operator": onnx_model([node("Gemm", ["observation", "w"], ["action"], domain="evil")], [weight]),
        "function": function,
        "If": onnx_model([node("If", ["observation"], ["action"], then_branch=branch, else_branch=branch)], []),
        "a circle": onnx_model([*circle, node("Gemm", ["y", "w"], ["action"], transB=1)], [weight]),
        "no output": onnx_model([], []),
        "unknown operator": onnx_model([node("Nonsense", ["observation"], ["action"])], []),
    }


def _length(n: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def _nested(depth: int) -> bytes:
    """A graph in an attribute of a node in a graph in …"""
    data = b""
    for _ in range(depth):
        attribute = b"\x32" + _length(len(data)) + data
        node = b"\x2a" + _length(len(attribute)) + attribute
        data = b"\x0a" + _length(len(node)) + node
    return b"\x3a" + _length(len(data)) + data


def onnx_files(rng: np.random.Generator) -> Iterator[bytes]:
    good, known = onnx_bytes(), list(crafted_onnx().values())
    foreign = (Path(__file__).parent / "data" / "rsl_rl.onnx").read_bytes()
    remembering = (onnx_bytes(memory=3, stride=2), onnx_bytes(recurrent=2))
    yield from known
    while True:
        yield torn(rng, good)
        yield torn(rng, remembering[rng.integers(2)])
        yield torn(rng, foreign)
        yield torn(rng, known[rng.integers(len(known))][:5000])


# Each kind of file: how to spoil it, and who reads it.

Spoil = Callable[[np.random.Generator], bytes]


def policy_files(rng: np.random.Generator) -> Iterator[bytes]:
    good, known = policy_bytes(), list(crafted_policies().values())
    about = json.loads(str(arrays_of(good)["about"]))
    yield from known
    while True:
        yield torn(rng, good)
        yield with_about(good, json.dumps(twisted(rng, about)).replace("\\ud800", "?"))
        yield torn(rng, known[rng.integers(len(known) - 10)])


def documents(good: Any, dump: Callable[[Any], bytes], crafted: list[bytes]) -> Callable[..., Iterator[bytes]]:
    def spoilt(rng: np.random.Generator) -> Iterator[bytes]:
        yield from crafted
        while True:
            yield torn(rng, dump(good))
            yield dump(twisted(rng, good))

    return spoilt


def kinds() -> dict[str, tuple[Callable[..., Iterator[bytes]], Callable[[Path], Any]]]:
    """By name: what spoils such files, and what reads them."""
    bad_json = [deep().encode(), b'{"a":' * 20_000 + b"1" + b"}" * 20_000, b"", b"\xff", b"null", b"[]", b"1e999"]
    bad_toml = [b"a = " + deep().encode(), b".".join([b"a"] * 3000) + b" = 1", b"", b"\xff", b"env = 1\n"]
    return {
        "policy": (policy_files, policies.load),
        "onnx": (onnx_files, read_onnx),
        "domains": (documents(domain_document(), as_json, bad_json), lambda path: domain_set.load(path, CART_POLE)),
        "config": (documents(settings_document(), as_toml, bad_toml), lambda path: plan.resolve(path, {})),
        "certificate": (
            documents(certificate_document(), as_json, bad_json),
            lambda path: str(Certificate.from_dict(read_json(path), str(path))),
        ),
    }


def read_onnx(path: Path) -> Any:
    """As a command reads it: with three signals, which fit the one foreign file, or with two."""
    named = path.with_suffix(".onnx")
    path.rename(named)
    try:
        env = THREE if b"net.0.weight" in named.read_bytes() else MASS
        start, step = stepping(policies.find(named, env))
        return np.asarray(step(start(2), jnp.zeros((len(env.observations), 2)))[1])
    finally:
        named.rename(path)


def complaint(read: Callable[[Path], Any], path: Path) -> str | None:
    """What is wrong with how a file was refused; None if it was read, or refused in one sentence."""
    try:
        read(path)
    except ValueError as error:
        text = str(error)
        return None if text and "\n" not in text and len(text) < 2000 else f"a message like {text[:100]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def limit_memory(size: int) -> None:
    """Let this process have that many bytes of its own, beside what it maps without using it."""
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    mapped, used = (int(status[name].split()[0]) * 1024 for name in ("VmSize", "VmRSS"))
    most = mapped - used + size
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(directory: Path, how_many: int) -> None:
    """Read them all; every complaint is a line on standard output, with its file kept beside."""
    spoilt_kinds = kinds()
    limit_memory(GIGABYTE)
    for kind, (spoil, read) in spoilt_kinds.items():
        for i, data in zip(range(how_many), spoil(np.random.default_rng(0)), strict=False):
            path = directory / f"{kind}-{i}"
            path.write_bytes(data)
            wrong = complaint(read, path)
            if wrong is None:
                path.unlink()
            else:
                print(f"{path.name}: {wrong}")
    print("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
