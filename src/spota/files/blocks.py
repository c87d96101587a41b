"""Block files: arrays in a NumPy archive that says what it is, with a checksum. Nothing in them is ever executed."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from spota.files.archives import PLAIN, Arrays, read_archive
from spota.files.atomic import write_atomically

FORMAT = 1
ABOUT = "about"
RESERVED = (ABOUT, "file", "allow_pickle")  # `about` is ours; the others are arguments of numpy.savez
SECONDS = "seconds"
"""What a block has cost: the only array that another run with the same settings has otherwise."""
Tree = TypeVar("Tree")


def write_block(path: Path, name: str, run: str, arrays: Arrays):
    """Write the arrays of block `name` of the run with that fingerprint."""
    content = {ABOUT: np.array(json.dumps(_about(name, run, arrays))), **arrays}
    write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **content))


def read_block(path: Path, name: str, run: str) -> Arrays:
    """The arrays of a block file, or an error that says what is wrong with it."""
    found, arrays = _parts(path)
    wanted = _about(name, run, arrays)
    wrong = {"format": "another format", "run": "a block of another run", "block": "another block", "sha256": "damaged"}
    for key, words in wrong.items():
        if found.get(key) != wanted[key]:
            raise ValueError(f"it is {words}")
    return arrays


def run_of(path: Path) -> str:
    """The fingerprint of the run that a block file says it belongs to."""
    found, _ = _parts(path)
    return str(found.get("run"))


def content_sha256(arrays: Arrays) -> str:
    """What a block holds, as one number: the same for every run with the same settings, whatever it has cost."""
    return _digest({key: np.asarray(array) for key, array in arrays.items() if key != SECONDS})


def checked(name: str, given: Mapping[str, Any]) -> Arrays:
    """Arrays of numbers or text: anything else would need pickle."""
    arrays = {key: np.asarray(value) for key, value in given.items()}
    for key, array in arrays.items():
        if array.dtype.kind not in PLAIN:
            raise ValueError(f"block({name!r}): {key} has dtype {array.dtype}; store numbers, or JSON as text.")
        if key in RESERVED:
            raise ValueError(f"block({name!r}): an array cannot be called {key!r}.")
    return arrays


def to_arrays(tree: Any) -> Arrays:
    """The leaves of a pytree by their paths, for a block: {"policy.weights.0": …}."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {_path_name(path): np.asarray(leaf) for path, leaf in leaves}


def from_arrays(arrays: Mapping[str, np.ndarray], like: Tree) -> Tree:
    """The pytree that `to_arrays` took apart; only the structure of `like` counts."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [_path_name(path) for path, _ in paths]
    if missing := [name for name in names if name not in arrays]:
        raise ValueError(f"The block has no array {missing[0]!r}; it has {', '.join(arrays)}.")
    return jax.tree.unflatten(structure, [jnp.asarray(arrays[name]) for name in names])


def _parts(path: Path) -> tuple[dict[str, Any], Arrays]:
    """What a block file says about itself, and its arrays; they are stored as they are, so the file is the larger."""
    arrays = read_archive(path, limit=path.stat().st_size)
    found = json.loads(str(arrays.pop(ABOUT))) if ABOUT in arrays else None
    if not isinstance(found, dict):
        raise ValueError("it was not written by a run")
    return found, arrays


def _about(name: str, run: str, arrays: Arrays) -> dict[str, Any]:
    return {"format": FORMAT, "block": name, "run": run, "sha256": _digest(arrays)}


def _digest(arrays: Arrays) -> str:
    total = hashlib.sha256()
    for key in sorted(arrays):
        head = json.dumps([key, arrays[key].dtype.str, arrays[key].shape])
        total.update(head.encode() + b"\n" + arrays[key].tobytes())
    return total.hexdigest()


def _path_name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
