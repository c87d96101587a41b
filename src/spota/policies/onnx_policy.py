"""A network from an ONNX file as a policy of ours: its weights are parameters, and any batch size will do."""

import hashlib
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from spota.policies.contract import Contract
from spota.policies.onnx_graph import LAYERS, Graph, graph_of, input_of, outputs_of
from spota.policies.onnx_limits import read_model
from spota.policies.onnx_reading import Reading, reading_of, said_about, split_words
from spota.sim.env import Platform

AROUND_A_CHOICE = ("Cast", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Flatten")
"""What exporters write behind an ArgMax."""


class Imported(eqx.Module):
    """Somebody else's network, operator by operator, and how it is used."""

    weights: tuple[Float[Array, "..."], ...]
    graph: Graph = eqx.field(static=True)
    reading: Reading = eqx.field(static=True)
    contract: Contract = eqx.field(static=True)

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The action in [−1, 1], not yet clipped."""
        found = self.outputs(observation.reshape(observation.shape[0], -1))
        action = self.reading.action(found, self.contract.actions)
        return action.reshape(-1, *observation.shape[1:])

    def outputs(self, observation: Float[Array, "d n"]) -> Float[Array, "outputs n"]:
        """What the network itself returns."""
        found = self.graph.run(self.weights, self.reading.seen(observation)).array
        return found.reshape(-1, observation.shape[-1])

    @property
    def hidden(self) -> tuple[int, ...]:
        """Sizes of the hidden layers."""
        shapes = dict(zip(self.graph.weights, (w.shape for w in self.weights), strict=True))
        sizes = []
        for node in self.graph.nodes:
            if node.operator in LAYERS and node.inputs[1] in shapes:
                sizes.append(shapes[node.inputs[1]][0 if dict(node.attributes).get("transB") else 1])
        return tuple(sizes[:-1]) or (16,)

    @property
    def meaning(self) -> str:
        """A digest of all that is not a parameter."""
        return hashlib.sha256(repr((self.graph, self.reading)).encode()).hexdigest()


def imported(source: str | Path, env: Platform) -> Imported:
    """The network of a file, for this platform; `UnknownError` if jax cannot run it."""
    name, words = split_words(str(source))
    path = Path(name)
    model = read_model(path)
    try:
        inputs = input_of(model)[1][-1]
        reading = reading_of(path, said_about(path, words), env, inputs, outputs_of(model))
        output = _scores(model, reading.output) if reading.units == "choice" else reading.output
        graph, weights = graph_of(model, output)
    except ValueError as error:
        raise ValueError(_named(path, error)) from error
    leaves = tuple(jnp.asarray(w, jnp.float32) for w in weights)
    policy = Imported(leaves, graph, reading, Contract.of(env))
    _check_size(path, policy, env)
    return policy


def _check_size(path: Path, policy: Imported, env: Platform) -> None:
    found = eqx.filter_eval_shape(policy.outputs, jnp.zeros((len(env.observations), 1))).shape[0]
    choice = policy.reading.units == "choice"
    wanted = 2 if choice and len(env.actions) == 1 else len(env.actions)
    if found != wanted:
        what = "scores" if choice else "actions"
        raise ValueError(
            f"{path}: the output {policy.reading.output!r} has {found} numbers, and {env.name} takes {wanted} {what} "
            f"({', '.join(s.name for s in env.actions)}); say which output acts: output = … in {path.stem}.toml."
        )


def _scores(model: Any, output: str) -> str:
    """The scores that an output chooses the largest of; the output itself if it is scores."""
    made_by = {name: node for node in model.graph.node for name in node.output}
    at = output
    for _ in range(len(model.graph.node)):  # a circle is refused later
        node = made_by.get(at)
        if node is None or node.op_type not in ("ArgMax", "Softmax", *AROUND_A_CHOICE) or not node.input:
            return at
        at = node.input[0]
        if node.op_type == "Softmax":
            return at
    return at


def _named(path: Path, error: ValueError) -> str:
    text = str(error).rstrip(".")
    return f"{text}." if str(path) in text else f"{path} is refused: {text}."
