"""How somebody else's network is used: what it sees in which order and scale, which output acts, and in which units.

An ONNX file says nothing about it. It is said in a small TOML file beside it, or behind its name; what nobody said is
assumed, and told: `policy.onnx,units=physical,output=actions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.files.documents import read_toml
from spota.policies.onnx_limits import shown
from spota.sim.env import Platform, Signal
from spota.text import suggest

Units = Literal["normalised", "physical", "choice"]
Squash = Literal["none", "tanh", "clip"]
WORDS = ("env", "output", "observations", "scale", "offset", "units", "squash")
"""What can be said."""
LIST_WORDS = ("observations", "scale", "offset")
LOOKED_AT = 1024
"""Observations of the first look."""


@dataclass(frozen=True)
class Reading:
    """What was said or assumed about a network; it sees scale · observation + offset."""

    output: str
    observations: tuple[int, ...]
    """Which signal of the platform each input is."""
    scale: tuple[float, ...]
    offset: tuple[float, ...]
    units: Units
    squash: Squash
    assumed: str
    """A sentence about what nobody said; empty if everything was."""

    def seen(self, observation: Float[Array, "d n"]) -> Float[Array, "inputs n"]:
        """What the network gets."""
        if self.observations != tuple(range(observation.shape[0])):
            observation = observation[np.asarray(self.observations)]
        if set(self.scale) == {1.0} and set(self.offset) == {0.0}:
            return observation
        scale, offset = (jnp.asarray(x, jnp.float32)[:, None] for x in (self.scale, self.offset))
        return scale * observation + offset

    def action(self, found: Float[Array, "outputs n"], actuators: tuple[Signal, ...]) -> Float[Array, "a n"]:
        """The action in [−1, 1], not yet clipped."""
        if self.units == "choice":
            return chosen(found, len(actuators))
        found = jnp.tanh(found) if self.squash == "tanh" else found
        if self.units == "normalised":
            return jnp.clip(found, -1.0, 1.0) if self.squash == "clip" else found
        low, high = (jnp.asarray([getattr(s, end) for s in actuators], jnp.float32)[:, None] for end in ("low", "high"))
        return (found - (low + high) / 2) * (2 / (high - low))


def chosen(scores: Float[Array, "k n"], channels: int) -> Float[Array, "a n"]:
    """The scores of k choices as channels from −1 to 1 that decide alike: one of two is the sign, else the largest."""
    if channels == 1:
        return jnp.tanh((scores[1:2] - scores[0:1]) / 2)
    return 2 * jax.nn.softmax(scores, axis=0) - 1


def split_words(source: str) -> tuple[str, dict[str, str]]:
    """`policy.onnx,units=physical` as the file and what is said about it."""
    file, dot, rest = source.partition(".onnx,")
    if not dot:
        return source, {}
    pairs = (part.partition("=") for part in rest.split(","))
    return f"{file}.onnx", {name: value for name, _, value in pairs}


def said_about(path: Path, words: Mapping[str, str]) -> dict[str, Any]:
    """What the TOML file beside says, and above it the words behind the name."""
    beside = path.with_suffix(".toml")
    found = read_toml(beside) if beside.is_file() else {}
    for name, value in words.items():
        found[name] = value.split("+") if name in LIST_WORDS else value
    for name in found:
        if name not in WORDS:
            raise ValueError(f"{path}: nothing about a network is called {name!r}; {suggest(name, WORDS)}")
    return found


def reading_of(
    path: Path, said: Mapping[str, Any], env: Platform, inputs: int, outputs: Mapping[str, tuple[int, ...]]
) -> Reading:
    """The reading, checked against the platform and the file."""
    names = [signal.name for signal in env.observations]
    order = [str(name) for name in said.get("observations", names)]
    for name in order:
        if name not in names:
            raise ValueError(f"{path}: {env.name} observes no {name!r}; {suggest(name, names)}")
    if len(order) != inputs:
        raise ValueError(
            f"{path} takes {inputs} numbers, and {env.name} observes {len(order)} ({', '.join(order)}); say which ones "
            f"it sees, in its order: observations = [{', '.join(map(repr, names[:2]))}, …] in {_beside(path)}."
        )
    numbers = {what: _numbers(path, said, what, usual, inputs) for what, usual in (("scale", 1.0), ("offset", 0.0))}
    units, squash = _one_of(path, said, "units", get_args(Units)), _one_of(path, said, "squash", get_args(Squash))
    return Reading(
        _output(path, said, outputs), tuple(names.index(name) for name in order), **numbers,
        units=units or "normalised", squash=squash or "none", assumed=_assumed(path, said, names, outputs),
    )  # fmt: skip


def _output(path: Path, said: Mapping[str, Any], outputs: Mapping[str, tuple[int, ...]]) -> str:
    if not outputs:
        raise ValueError(f"{path} has no output.")
    name = str(said.get("output", _usual_output(outputs)))
    if name not in outputs:
        raise ValueError(f"{path} has no output {name!r}; it has {', '.join(map(shown, outputs))}.")
    return name


def _usual_output(outputs: Mapping[str, Any]) -> str:
    return next((name for name in ("action", "actions") if name in outputs), next(iter(outputs)))


def _numbers(path: Path, said: Mapping[str, Any], what: str, usual: float, inputs: int) -> tuple[float, ...]:
    try:
        found = tuple(float(x) for x in said.get(what, (usual,) * inputs))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {what} = {said[what]!r} is no list of numbers.") from error
    if len(found) != inputs or not np.isfinite(found).all():
        raise ValueError(f"{path}: {what} has {len(found)} numbers, and the network has {inputs} inputs.")
    return found


def _one_of(path: Path, said: Mapping[str, Any], what: str, choices: tuple[str, ...]) -> Any:
    if what in said and said[what] not in choices:
        raise ValueError(f"{path}: {what} = {said[what]!r}; {suggest(str(said[what]), choices)}")
    return said.get(what)


def _assumed(path: Path, said: Mapping[str, Any], names: list[str], outputs: Mapping[str, tuple[int, ...]]) -> str:
    """What nobody said, in one sentence."""
    parts = []
    if "observations" not in said:
        parts.append(f"it sees {', '.join(names)}, in this order")
    if "scale" not in said and "offset" not in said:
        parts.append("as measured, in physical units")
    if "output" not in said and len(outputs) > 1:
        parts.append(f"it acts by its output {_usual_output(outputs)!r} of {', '.join(map(shown, outputs))}")
    if "units" not in said:
        parts.append("its actions are normalised: −1 and 1 are the ends of an actuator's range")
    if not parts:
        return ""
    return (
        f"{path}: nobody has said how it is used, so it is assumed that {'; '.join(parts)}. If not, say so in "
        f"{_beside(path)} or behind its name: {path.name},units=physical."
    )


def _beside(path: Path) -> str:
    return path.with_suffix(".toml").name
