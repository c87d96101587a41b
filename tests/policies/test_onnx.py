"""Networks from ONNX files: the same numbers as onnxruntime, the contract, and what is refused."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from point_mass import PointMass
from spota import policies
from spota.policies.onnx_files import notes
from spota.policies.onnx_policy import imported
from spota.policies.onnx_values import UnknownError
from spota.sim import rollout
from spota.sim.host_policy import HostPolicy
from three_signals import ThreeSignals

DATA = Path(__file__).parent.parent / "data"
ENV, MASS = ThreeSignals(), PointMass()
FILES = {"sb3_ppo": "units=physical,output=53", "sb3_sac": "units=normalised", "rsl_rl": "units=physical"}
FILES["rsl_rl_dynamo"] = "units=physical"


def theirs(path: Path, seen: np.ndarray) -> np.ndarray:
    """onnxruntime's answers, one observation after the other, as these files want it."""
    session = onnxruntime.InferenceSession(path)
    name = session.get_inputs()[0].name
    return np.concatenate([np.asarray(session.run(None, {name: row[None]})[0]) for row in seen]).T


def some(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32) * 2


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("n", [1, 10_000])
def test_an_imported_network_equals_onnxruntime(name, n):
    path, seen = DATA / f"{name}.onnx", some(n)
    policy = imported(f"{path},{FILES[name]}", ENV)
    ours = jax.jit(lambda p, x: p.outputs(x))(policy, seen.T)
    few = slice(None) if n == 1 else np.random.default_rng(0).choice(n, 500, replace=False)
    np.testing.assert_allclose(np.asarray(ours)[:, few], theirs(path, seen[few]), atol=1e-6, rtol=0)


def test_units_are_those_of_the_contract():
    path = DATA / "rsl_rl.onnx"
    volts, share = (imported(f"{path},units={units}", ENV) for units in ("physical", "normalised"))
    seen = jnp.asarray(some(5).T)
    np.testing.assert_allclose(volts(seen), theirs(path, some(5)) / 2.0, atol=1e-6)  # the actuator reaches ±2
    np.testing.assert_allclose(share(seen), theirs(path, some(5)), atol=1e-6)


def test_order_scale_and_squashing_are_those_of_the_file_beside(tmp_path):
    path = tmp_path / "policy.onnx"
    path.write_bytes((DATA / "rsl_rl.onnx").read_bytes())
    (tmp_path / "policy.toml").write_text(
        'observations = ["v", "sin", "cos"]\nscale = [0.5, 1, 2]\noffset = [0, 1, 0]\nsquash = "tanh"\n'
        'units = "normalised"\n'
    )
    policy, seen = imported(path, ENV), some(4)
    given = np.stack([0.5 * seen[:, 2], seen[:, 1] + 1, 2 * seen[:, 0]], axis=1)
    np.testing.assert_allclose(policy(jnp.asarray(seen.T)), np.tanh(theirs(path, given)), atol=1e-6)
    assert policy.reading.assumed == ""


def test_what_nobody_said_is_told():
    (said,) = notes(policies.find(DATA / "sb3_ppo.onnx", ENV), ENV)
    for word in ("cos, sin, v, in this order", "'53' of '53', '24', '51'", "normalised", "sb3_ppo.toml"):
        assert word in said


def test_a_first_look_notices_other_units(tmp_path):
    path = network(tmp_path, scale=10.0)
    (said,) = notes(imported(f"{path},units=normalised,observations=x+v,scale=1+1", MASS), MASS)
    assert "are clipped. If its actions are physical, say units=physical" in said
    quiet = imported(f"{network(tmp_path, scale=0.1)},units=normalised,observations=x+v,scale=1+1", MASS)
    assert notes(quiet, MASS) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("units=volts", "units = 'volts'"),
        ("unit=physical", "did you mean 'units'"),
        ("output=y", "has no output 'y'; it has '53', '24', '51'"),
        ("observations=cos+sin", "takes 3 numbers, and three-signals observes 2"),
        ("observations=cos+sin+w", "observes no 'w'"),
        ("scale=1+2", "scale has 2 numbers, and the network has 3 inputs"),
        ("scale=1+2+x", "is no list of numbers"),
    ],
)
def test_a_contract_that_does_not_fit_is_refused(words, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        imported(f"{DATA / 'sb3_ppo.onnx'},{words}", ENV)


def test_weights_are_parameters_and_the_normaliser_is_not():
    policy = imported(f"{DATA / 'rsl_rl.onnx'},units=physical", ENV)
    assert [w.shape for w in policy.weights] == [(24, 3), (24,), (16, 24), (16,), (1, 16), (1,)]
    assert {t.shape for _, t in policy.graph.constants} == {(1, 3)}  # mean and standard deviation
    seen = jnp.asarray(some(8).T)
    slope = jax.grad(lambda p: (p(seen) ** 2).sum())(policy)
    moved = jax.tree.map(lambda w, s: w - 1e-3 * s, policy, slope)
    assert float((moved(seen) ** 2).sum()) < float((policy(seen) ** 2).sum())


def test_a_choice_becomes_a_channel_that_decides_alike(tmp_path):
    logits = network(tmp_path, outputs=2, name="logits.onnx")
    model = onnx.load(logits)
    model.graph.node.append(helper.make_node("ArgMax", ["action"], ["choice"], axis=1, keepdims=0))
    model.graph.output.append(helper.make_tensor_value_info("choice", TensorProto.INT64, [1]))
    path = tmp_path / "choice.onnx"
    onnx.save(model, path)
    seen = some(50)[:, :2]
    session = onnxruntime.InferenceSession(path)
    choices = np.array([np.asarray(session.run(["choice"], {"observation": row[None]})[0])[0] for row in seen])
    policy = imported(f"{path},units=choice,output=choice", MASS)
    assert 0 < choices.mean() < 1
    np.testing.assert_array_equal(np.asarray(policy(jnp.asarray(seen.T)))[0] > 0, choices == 1)


def test_an_unknown_operator_runs_on_the_host(tmp_path):
    path = network(tmp_path, last="Atan")
    with pytest.raises(UnknownError, match="Atan"):
        imported(path, MASS)
    policy, seen = policies.find(path, MASS), some(6)[:, :2]
    assert isinstance(policy, HostPolicy)
    np.testing.assert_allclose(policy(jnp.asarray(seen.T)), theirs(path, seen), atol=1e-6)
    domains, keys = MASS.domain.sample(jax.random.key(0), 3), jax.random.split(jax.random.key(1), (3, 1))
    assert np.isfinite(rollout.returns(MASS, policy, domains, keys).returns).all()


@pytest.mark.parametrize("name", ["model.zip", "model.pt", "actor.pkl"])
def test_files_with_code_in_them_are_never_opened(tmp_path, name):
    (tmp_path / name).write_bytes(b"whatever")
    with pytest.raises(ValueError, match="is never opened.*torch.onnx.export"):
        policies.find(tmp_path / name, MASS)


def network(into: Path, scale: float = 1.0, outputs: int = 1, last: str = "Tanh", name: str = "net.onnx") -> Path:
    """Two layers, written by hand; `last` is an operator at the end, followed by a factor."""
    rng = np.random.default_rng(18)
    arrays = {"w": rng.normal(size=(4, 2)), "b": rng.normal(size=4), "v": rng.normal(size=(outputs, 4))}
    arrays["scale"] = np.array(scale)
    tensors = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()]
    nodes = [
        helper.make_node("Gemm", ["observation", "w", "b"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v"], ["o"], transB=1),
        helper.make_node(last, ["o"], ["l"]),
        helper.make_node("Mul", ["l", "scale"], ["action"]),
    ]
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, s])
        for n, s in (("observation", 2), ("action", outputs))
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    path = into / name
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
