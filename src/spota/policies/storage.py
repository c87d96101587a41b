"""Policy files: a NumPy archive of arrays and one JSON text. Nothing in them is ever executed."""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from spota.files.archives import Arrays, read_archive
from spota.files.atomic import write_atomically
from spota.files.documents import check, check_format, parse_json
from spota.policies.architecture import Architecture
from spota.policies.contract import Contract
from spota.policies.fingerprint import fingerprint
from spota.policies.network import FNN, Linear
from spota.policies.recurrent import Recurrent
from spota.policies.stacked import Stacked

Stored = FNN | Linear | Stacked | Recurrent
"""Policies that have files."""
FORMAT, WITH_MEMORY = 2, 3
"""Of policy files, without and with memory; `spota/schemas/policy-file.schema.json` says what is in them. Format 1 had
no sha256."""
KIND = "policy file"
LIMIT = 64 * 2**20
"""Bytes of the largest policy file that is read: sixteen million parameters."""


def save(policy: Stored, path: str | Path) -> Path:
    """Write a policy; the file is complete or absent, never half written."""
    path = Path(path)
    arrays = {f"array_{i}": np.asarray(a) for i, a in enumerate(_arrays(policy))}
    if any(not np.isfinite(a).all() for a in arrays.values()):
        raise ValueError(f"The policy has parameters that are not finite; {path} was not written.")
    pace = {"memory": policy.memory, "stride": policy.stride} if isinstance(policy, Stacked) else {}
    about = {
        "format": FORMAT if isinstance(policy, FNN | Linear) else WITH_MEMORY,
        "kind": type(policy).__name__,
        **pace,
        "contract": json.loads(policy.contract.to_json()),
        "sha256": fingerprint(policy),
    }
    content = {"about": np.array(json.dumps(about, ensure_ascii=False)), **arrays}
    return write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **content))


def load(path: str | Path) -> Stored:
    """Read a policy file; one that is truncated, corrupted or foreign is refused with its name."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is not a policy file {path}.")
    try:
        arrays = read_archive(path, LIMIT)
        about = parse_json(str(arrays.pop("about")), "what it says about itself")
        values = _in_order(arrays)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is not a policy file of spota, or it is damaged ({_reason(error)}).") from error
    check_format(about, (1, FORMAT, WITH_MEMORY), KIND, str(path))
    check(about, KIND, str(path))
    return _build(path, about, values)


def _in_order(arrays: Arrays) -> list[np.ndarray]:
    """array_0, array_1, … as the numbers that parameters are."""
    values = [arrays[f"array_{i}"] for i in range(len(arrays))]
    for value in values:
        if value.dtype.kind != "f":
            raise ValueError(f"its parameters have type {value.dtype}, not floating-point numbers")
    return values


def _reason(error: Exception) -> str:
    text = f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
    return text.rstrip(".")


def _arrays(policy: Stored) -> tuple:
    if isinstance(policy, Linear):
        return (policy.gains,)
    cell = (policy.cell, policy.cell_bias, policy.cell_share) if isinstance(policy, Recurrent) else ()
    return (*cell, *policy.weights, *policy.biases)


def _build(path: Path, about: dict[str, Any], values: list[np.ndarray]) -> Stored:
    try:
        contract = Contract.from_dict(about["contract"])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if about["kind"] == "Stacked":
        _refuse_pace(path, about)
    with np.errstate(over="ignore"):  # a float64 that is too large is infinite, and so refused
        arrays = [jnp.asarray(np.asarray(value, np.float32)) for value in values]
    if not _whole(about["kind"], len(arrays)):
        raise ValueError(f"{path} has {len(arrays)} arrays, which is not a {about['kind']}.")
    if not _fits(about, [a.shape for a in arrays], contract):
        raise ValueError(f"{path}: arrays of shape {[a.shape for a in arrays]} are no {about['kind']} for its signals.")
    if any(not np.isfinite(a).all() for a in arrays):
        raise ValueError(f"{path} has parameters that are not finite; it cannot control anything.")
    policy = _policy(about, arrays, contract)
    if about.get("sha256") not in (None, fingerprint(policy)):
        raise ValueError(f"{path} was changed after it was written: its sha256 is that of another policy.")
    return policy


def _refuse_pace(path: Path, about: dict[str, Any]) -> None:
    """Refuse a stack that does not say how far it reaches back, or that reaches too far."""
    try:
        Architecture(memory=about["memory"], stride=about["stride"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a policy file of spota, or it is damaged ({_reason(error)}).") from error


def _whole(kind: str, arrays: int) -> bool:
    """Whether a policy of this kind can have so many arrays."""
    if kind == "Linear":
        return arrays == 1
    layers = arrays - 3 if kind == "Recurrent" else arrays
    return layers > 0 and layers % 2 == 0


def _policy(about: dict[str, Any], arrays: list[Any], contract: Contract) -> Stored:
    """The policy of arrays that fit."""
    kind = about["kind"]
    if kind == "Linear":
        return Linear(arrays[0], contract)
    cell, layers = (arrays[:3], arrays[3:]) if kind == "Recurrent" else ([], arrays)
    weights, biases = tuple(layers[: len(layers) // 2]), tuple(layers[len(layers) // 2 :])
    if kind == "Recurrent":
        return Recurrent(weights, biases, cell[0], cell[1], cell[2], contract)
    if kind == "Stacked":
        return Stacked(weights, biases, contract, about["memory"], about["stride"])
    return FNN(weights, biases, contract)


def _fits(about: dict[str, Any], shapes: list[tuple[int, ...]], contract: Contract) -> bool:
    """Whether the arrays lead from the observations to the actions."""
    kind, d, a = about["kind"], len(contract.observations), len(contract.actions)
    if kind == "Linear":
        return shapes == [(a, d)]
    into = d
    if kind == "Stacked":
        into += (about["memory"] - 1) * (d + a)
    if kind == "Recurrent":
        (units, *_), shapes = shapes[0], shapes[3:] if _is_cell(shapes[:3], d + a) else []
        into += units
    weights, biases = shapes[: len(shapes) // 2], shapes[len(shapes) // 2 :]
    if not biases or any(len(shape) != 1 for shape in biases):
        return False
    sizes = [into, *(shape[0] for shape in biases)]
    return sizes[-1] == a and weights == list(zip(sizes[1:], sizes[:-1], strict=True))


def _is_cell(shapes: list[tuple[int, ...]], heard: int) -> bool:
    """Whether these are a cell's weights, biases and shares; it hears observations, the last action and itself."""
    units = shapes[1][0] if len(shapes[1]) == 1 else 0
    return units > 0 and shapes == [(units, heard + units), (units,), (units,)]
