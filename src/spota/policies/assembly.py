"""Policies taken apart into arrays and a few words, and put together again: what every kind of file does.

What does not fit together is refused here, so that all readers refuse the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from spota.policies.architecture import Architecture
from spota.policies.contract import Contract
from spota.policies.network import FNN, Linear
from spota.policies.recurrent import Recurrent
from spota.policies.stacked import Stacked

Stored = FNN | Linear | Stacked | Recurrent
"""Policies that have files."""
CELL = 3
"""Arrays of a recurrent cell, before those of the layers: weights, biases and shares."""


def arrays_of(policy: Stored) -> tuple[Any, ...]:
    """All numbers of a policy, in the order in which `assembled` takes them."""
    if isinstance(policy, Linear):
        return (policy.gains,)
    cell = (policy.cell, policy.cell_bias, policy.cell_share) if isinstance(policy, Recurrent) else ()
    return (*cell, *policy.weights, *policy.biases)


def words_of(policy: Stored) -> dict[str, Any]:
    """What `assembled` must know besides the arrays and the contract."""
    pace = {"memory": policy.memory, "stride": policy.stride} if isinstance(policy, Stacked) else {}
    return {"kind": type(policy).__name__, **pace}


def assembled(words: Mapping[str, Any], values: Sequence[np.ndarray], contract: Contract) -> Stored:
    """The policy of these words, arrays and contract; what does not fit together is refused with a reason."""
    kind = words["kind"]
    if kind == "Stacked":
        _refuse_pace(words)
    with np.errstate(over="ignore"):  # a float64 that is too large is infinite, and so refused
        arrays = [jnp.asarray(np.asarray(value, np.float32)) for value in values]
    if not _whole(kind, len(arrays)):
        raise ValueError(f"it has {len(arrays)} arrays, which is not a {kind}")
    if not _fits(words, [a.shape for a in arrays], contract):
        raise ValueError(f"arrays of shape {[a.shape for a in arrays]} are no {kind} for its signals")
    if any(not np.isfinite(a).all() for a in arrays):
        raise ValueError("it has parameters that are not finite, so that it cannot control anything")
    return _policy(words, arrays, contract)


def _refuse_pace(words: Mapping[str, Any]) -> None:
    """Refuse a stack that does not say how far it reaches back, or that reaches too far."""
    missing = [name for name in ("memory", "stride") if name not in words]
    if missing:
        raise ValueError(f"it has no {missing[0]}")
    try:
        Architecture(memory=words["memory"], stride=words["stride"])
    except ValueError as error:
        raise ValueError(str(error).rstrip(".")) from error


def _whole(kind: str, arrays: int) -> bool:
    """Whether a policy of this kind can have so many arrays."""
    if kind == "Linear":
        return arrays == 1
    layers = arrays - CELL if kind == "Recurrent" else arrays
    return layers > 0 and layers % 2 == 0


def _fits(words: Mapping[str, Any], shapes: list[tuple[int, ...]], contract: Contract) -> bool:
    """Whether the arrays lead from the observations to the actions."""
    kind, d, a = words["kind"], len(contract.observations), len(contract.actions)
    if kind == "Linear":
        return shapes == [(a, d)]
    into = d
    if kind == "Stacked":
        into += (words["memory"] - 1) * (d + a)
    if kind == "Recurrent":
        cell, shapes = shapes[:CELL], shapes[CELL:]
        if not _is_cell(cell, d + a):
            return False
        into += cell[0][0]
    weights, biases = shapes[: len(shapes) // 2], shapes[len(shapes) // 2 :]
    if any(len(shape) != 1 for shape in biases):
        return False
    sizes = [into, *(shape[0] for shape in biases)]
    return sizes[-1] == a and weights == list(zip(sizes[1:], sizes[:-1], strict=True))


def _is_cell(shapes: list[tuple[int, ...]], heard: int) -> bool:
    """Whether these are a cell's weights, biases and shares; it hears observations, the last action and itself."""
    units = shapes[1][0] if len(shapes[1]) == 1 else 0
    return units > 0 and shapes == [(units, heard + units), (units,), (units,)]


def _policy(words: Mapping[str, Any], arrays: list[Any], contract: Contract) -> Stored:
    """The policy of arrays that fit."""
    kind = words["kind"]
    if kind == "Linear":
        return Linear(arrays[0], contract)
    cell, layers = (arrays[:CELL], arrays[CELL:]) if kind == "Recurrent" else ([], arrays)
    weights, biases = tuple(layers[: len(layers) // 2]), tuple(layers[len(layers) // 2 :])
    if kind == "Recurrent":
        return Recurrent(weights, biases, cell[0], cell[1], cell[2], contract)
    if kind == "Stacked":
        return Stacked(weights, biases, contract, words["memory"], words["stride"])
    return FNN(weights, biases, contract)
