"""Policy files: a NumPy archive of arrays and one JSON text. Nothing in them is ever executed."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from spota.files.archives import Arrays, read_archive
from spota.files.atomic import write_atomically
from spota.files.documents import check, check_format, parse_json
from spota.policies.assembly import Stored, arrays_of, assembled, words_of
from spota.policies.contract import Contract
from spota.policies.fingerprint import fingerprint
from spota.policies.network import FNN, Linear

FORMAT, WITH_MEMORY = 2, 3
"""Of policy files, without and with memory; `spota/schemas/policy-file.schema.json` says what is in them. Format 1 had
no sha256."""
KIND = "policy file"
LIMIT = 64 * 2**20
"""Bytes of the largest policy file that is read: sixteen million parameters."""


def save(policy: Stored, path: str | Path) -> Path:
    """Write a policy; the file is complete or absent, never half written."""
    path = Path(path)
    arrays = {f"array_{i}": np.asarray(a) for i, a in enumerate(arrays_of(policy))}
    if any(not np.isfinite(a).all() for a in arrays.values()):
        raise ValueError(f"The policy has parameters that are not finite; {path} was not written.")
    about = {
        "format": FORMAT if isinstance(policy, FNN | Linear) else WITH_MEMORY,
        **words_of(policy),
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


def _build(path: Path, about: dict[str, Any], values: list[np.ndarray]) -> Stored:
    try:
        policy = assembled(about, values, Contract.from_dict(about["contract"]))
    except ValueError as error:
        raise ValueError(f"{path}: {_reason(error)}.") from error
    if about.get("sha256") not in (None, fingerprint(policy)):
        raise ValueError(f"{path} was changed after it was written: its sha256 is that of another policy.")
    return policy
