"""What the spaces of a Gymnasium environment say: signals with ranges, and actions from commands."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from spota.sim.env import Signal

MARGIN = 1.5
"""How much wider than what was seen a range is proposed."""


@dataclass(frozen=True)
class Continuous:
    """A Box: the command is the action."""

    dtype: str
    shape: tuple[int, ...]

    def __call__(self, command: Float[np.ndarray, "a n"]) -> np.ndarray:
        """The actions of n machines, first axis."""
        return np.ascontiguousarray(command.T, self.dtype).reshape(-1, *self.shape)


@dataclass(frozen=True)
class OneOfTwo:
    """Discrete(2): one channel from −1 to 1; above zero is the second action."""

    first: int

    def __call__(self, command: Float[np.ndarray, "a n"]) -> np.ndarray:
        """The actions of n machines."""
        return self.first + (command[0] > 0).astype(np.int64)


@dataclass(frozen=True)
class Largest:
    """Discrete(k): one channel an action, each from −1 to 1; the largest decides, and the first of equals."""

    first: int

    def __call__(self, command: Float[np.ndarray, "a n"]) -> np.ndarray:
        """The actions of n machines."""
        return self.first + command.argmax(axis=0).astype(np.int64)


Decoder = Continuous | OneOfTwo | Largest


def decoder_of(space: Any, name: str) -> Decoder:
    """How commands become actions; what is neither a Box nor Discrete is refused."""
    kind = type(space).__name__
    if kind == "Box" and np.issubdtype(space.dtype, np.floating):
        return Continuous(space.dtype.str, tuple(space.shape))
    if kind == "Discrete":
        return OneOfTwo(int(space.start)) if space.n == 2 else Largest(int(space.start))
    raise ValueError(
        f"{name} takes actions from {space}; spota commands a Box of real numbers, or Discrete. Wrap the environment, "
        "e.g. with gymnasium.wrappers.TransformAction, and give that as a function: lambda: Wrapper(gym.make(…))."
    )


def action_signals(space: Any, given: Sequence[Signal] | None, name: str) -> tuple[Signal, ...]:
    """One signal an actuator: the given ones if they fit the space, else one for each of its entries."""
    if type(space).__name__ == "Discrete":
        usual = ("choice",) if space.n == 2 else tuple(f"choice_{i}" for i in range(space.n))
        low = np.full(len(usual), -1.0)
        return _fitting(given, usual, low, -low, name, "actions", None)
    low, high = (np.asarray(end, float).reshape(-1) for end in (space.low, space.high))
    return _fitting(given, numbered("action", low.size), low, high, name, "actions", None)


def observation_signals(
    space: Any, given: Sequence[Signal] | None, name: str, seen: np.ndarray | None
) -> tuple[Signal, ...]:
    """One signal a sensor; `seen` are observations [steps, d], from which an error proposes ranges."""
    if type(space).__name__ != "Box" or len(space.shape) != 1:
        raise ValueError(
            f"{name} observes {space}; spota needs a row of real numbers. Wrap the environment, and give it as a "
            f"function: lambda: gymnasium.wrappers.FlattenObservation(gymnasium.make({name!r}))."
        )
    low, high = np.asarray(space.low, float), np.asarray(space.high, float)
    return _fitting(given, numbered("observation", low.size), low, high, name, "observations", seen)


def numbered(word: str, n: int) -> tuple[str, ...]:
    """Names for channels that nobody has named."""
    return (word,) if n == 1 else tuple(f"{word}_{i}" for i in range(n))


def _fitting(
    given: Sequence[Signal] | None,
    usual: tuple[str, ...],
    low: np.ndarray,
    high: np.ndarray,
    name: str,
    kind: str,
    seen: np.ndarray | None,
) -> tuple[Signal, ...]:
    """The given signals if there are as many as entries, or those of the space if all its bounds are finite."""
    proposal = _to_type(usual, low, high, kind, seen)
    if given is None:
        unbounded = [n for n, a, b in zip(usual, low, high, strict=True) if not _bounded(a, b)]
        if unbounded:
            raise ValueError(
                f"{name} does not say how far {', '.join(unbounded)} may range, and spota scales signals by that; "
                f"write it, e.g. as was seen in a moment of random actions: {proposal}"
            )
        return tuple(Signal(n, "-", float(a), float(b)) for n, a, b in zip(usual, low, high, strict=True))
    if len(given) != len(usual):
        raise ValueError(f"{name} has {len(usual)} {kind}, but {len(given)} signals were given; write {proposal}")
    for signal, a, b in zip(given, low, high, strict=True):
        if kind == "actions" and (signal.low < a or signal.high > b):
            raise ValueError(
                f"{signal.name} ranges from {signal.low:g} to {signal.high:g}, but {name} takes {a:g} to {b:g}; write "
                f"a range within that."
            )
    return tuple(given)


def _to_type(usual: tuple[str, ...], low: np.ndarray, high: np.ndarray, kind: str, seen: np.ndarray | None) -> str:
    """The argument as Python code, with the space's bounds, or what was seen, or ±1."""
    reach = np.ones(len(usual)) if seen is None else np.abs(seen).max(axis=0)
    ends = [
        (a, b) if _bounded(a, b) else (-_round_up(r), _round_up(r)) for a, b, r in zip(low, high, reach, strict=True)
    ]
    rounded = [(float(f"{a:.6g}"), float(f"{b:.6g}")) for a, b in ends]
    inside = ", ".join(f'spota.Signal("{n}", "-", {a}, {b})' for n, (a, b) in zip(usual, rounded, strict=True))
    return f"{kind}=({inside},)"


def _round_up(reach: float) -> float:
    """A round number somewhat above."""
    wide = MARGIN * reach if math.isfinite(reach) and reach > 0 else 1.0
    unit = 10.0 ** math.floor(math.log10(wide))
    return math.ceil(wide / unit) * unit


def _bounded(low: float, high: float) -> bool:
    """Whether a range can scale a signal: float32's largest number, which some write for "no bound", cannot."""
    return bool(math.isfinite(low) and math.isfinite(high) and high - low < 1e30)
