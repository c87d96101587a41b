"""Policy files: a NumPy archive of arrays and one JSON text. Nothing in them is ever executed."""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from spota.files.archives import Arrays, read_archive
from spota.files.atomic import write_atomically
from spota.files.documents import check, check_format, parse_json
from spota.policies.contract import Contract
from spota.policies.fingerprint import fingerprint
from spota.policies.network import FNN, Linear

FORMAT = 2
"""Of policy files; `spota/schemas/policy-file.schema.json` says what is in them. Format 1 had no sha256."""
KIND = "policy file"
LIMIT = 64 * 2**20
"""Bytes of the largest policy file that is read: sixteen million parameters."""


def save(policy: FNN | Linear, path: str | Path) -> Path:
    """Write a policy; the file is complete or absent, never half written."""
    path = Path(path)
    arrays = {f"array_{i}": np.asarray(a) for i, a in enumerate(_arrays(policy))}
    if any(not np.isfinite(a).all() for a in arrays.values()):
        raise ValueError(f"The policy has parameters that are not finite; {path} was not written.")
    about = {
        "format": FORMAT,
        "kind": type(policy).__name__,
        "contract": json.loads(policy.contract.to_json()),
        "sha256": fingerprint(policy),
    }
    content = {"about": np.array(json.dumps(about, ensure_ascii=False)), **arrays}
    return write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **content))


def load(path: str | Path) -> FNN | Linear:
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
    check_format(about, (1, FORMAT), KIND, str(path))
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


def _arrays(policy: FNN | Linear) -> tuple:
    return (policy.gains,) if isinstance(policy, Linear) else (*policy.weights, *policy.biases)


def _build(path: Path, about: dict[str, Any], values: list[np.ndarray]) -> FNN | Linear:
    try:
        contract = Contract.from_dict(about["contract"])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    with np.errstate(over="ignore"):  # a float64 that is too large is infinite, and so refused
        arrays = [jnp.asarray(np.asarray(value, np.float32)) for value in values]
    layers = len(arrays) // 2
    linear = about["kind"] == "Linear"
    if not arrays or (linear and len(arrays) > 1) or (not linear and len(arrays) % 2):
        raise ValueError(f"{path} has {len(arrays)} arrays, which is not a {about['kind']}.")
    if not _fits(linear, [a.shape for a in arrays], contract):
        raise ValueError(f"{path}: arrays of shape {[a.shape for a in arrays]} are no {about['kind']} for its signals.")
    if any(not np.isfinite(a).all() for a in arrays):
        raise ValueError(f"{path} has parameters that are not finite; it cannot control anything.")
    policy = Linear(arrays[0], contract) if linear else FNN(tuple(arrays[:layers]), tuple(arrays[layers:]), contract)
    if about.get("sha256") not in (None, fingerprint(policy)):
        raise ValueError(f"{path} was changed after it was written: its sha256 is that of another policy.")
    return policy


def _fits(linear: bool, shapes: list[tuple[int, ...]], contract: Contract) -> bool:
    """Whether the arrays lead from the observations to the actions."""
    into, out = len(contract.observations), len(contract.actions)
    if linear:
        return shapes == [(out, into)]
    weights, biases = shapes[: len(shapes) // 2], shapes[len(shapes) // 2 :]
    if any(len(shape) != 1 for shape in biases):
        return False
    sizes = [into, *(shape[0] for shape in biases)]
    return sizes[-1] == out and weights == list(zip(sizes[1:], sizes[:-1], strict=True))
