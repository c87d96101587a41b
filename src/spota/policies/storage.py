"""Policy files: a NumPy archive of arrays and one JSON text. Nothing in them is ever executed."""

import io
import json
import os
import zipfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from spota.policies.contract import Contract
from spota.policies.network import FNN, Linear

FORMAT = 1


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
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
    temporary.replace(path)
    return path


def load(path: str | Path) -> FNN | Linear:
    """Read a policy file; one that is truncated, corrupted or foreign is refused with its name."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no policy file {path}.")
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            about = json.loads(str(archive["about"]))
            arrays = [archive[f"array_{i}"] for i in range(len(archive.files) - 1)]
        contract = Contract.from_json(json.dumps(about["contract"]))
        kind, version = about["kind"], about["format"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a policy file of spota, or it is damaged ({error}).") from error
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}; this spota reads format {FORMAT}.")
    return _build(path, kind, [jnp.asarray(a, jnp.float32) for a in arrays], contract)


def _arrays(policy: FNN | Linear) -> tuple:
    return (policy.gains,) if isinstance(policy, Linear) else (*policy.weights, *policy.biases)


def _build(path: Path, kind: str, arrays: list, contract: Contract) -> FNN | Linear:
    layers = len(arrays) // 2
    policy = (
        Linear(arrays[0], contract)
        if kind == "Linear"
        else FNN(tuple(arrays[:layers]), tuple(arrays[layers:]), contract)
    )
    if kind not in ("Linear", "FNN") or not _fits(policy):
        raise ValueError(f"{path}: arrays of shape {[a.shape for a in arrays]} are no {kind} for its signals.")
    if any(not np.isfinite(a).all() for a in arrays):
        raise ValueError(f"{path} has parameters that are not finite; it cannot control anything.")
    return policy


def _fits(policy: FNN | Linear) -> bool:
    into, out = len(policy.contract.observations), len(policy.contract.actions)
    if isinstance(policy, Linear):
        return policy.gains.shape == (out, into)
    sizes = (into, *policy.hidden, out)
    shapes = [w.shape for w in policy.weights]
    return shapes == list(zip(sizes[1:], sizes[:-1], strict=True)) and [b.shape for b in policy.biases] == [
        (size,) for size in sizes[1:]
    ]
