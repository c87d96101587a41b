"""Dynamics as polynomials, fitted by least squares: smooth physics of few signals follow them within a thousandth."""

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

HIGHEST = 3
"""The highest degree that is tried."""
RIDGE = 1e-9
"""Added to the mean square of every term, so that terms which never vary get no weight."""

Terms = tuple[tuple[int, ...], ...]
"""Products of inputs by their numbers; the empty product is the constant."""


def terms(inputs: int, most: int) -> Terms:
    """All products of some inputs, of the highest degree with at most `most` of them; linear ones in any case."""
    found: list[tuple[int, ...]] = [(), *((i,) for i in range(inputs))]
    for degree in range(2, HIGHEST + 1):
        more = list(combinations_with_replacement(range(inputs), degree))
        if len(found) + len(more) > most:
            break
        found += more
    return tuple(found)


def values(of: Terms, x: Any, xp: Any) -> Any:
    """The terms of inputs [k, *n]: [F, *n], in NumPy or in jax."""
    known: dict[tuple[int, ...], Any] = {(): xp.ones_like(x[0])}
    for term in of[1:]:
        known[term] = known[term[:-1]] * x[term[-1]]
    return xp.stack([known[term] for term in of])


def fitted(
    of: Terms, x: Float[np.ndarray, "k t"], y: Float[np.ndarray, "d t"], taken: Bool[np.ndarray, "t"]
) -> Float[np.ndarray, "F d"]:
    """The weights of the terms with the least squared error over the steps that were taken; in 64 bits."""
    seen = values(of, np.asarray(x[:, taken], np.float64), np)
    size = np.sqrt((seen**2).mean(axis=1)) + np.finfo(float).tiny
    seen /= size[:, None]
    gram = seen @ seen.T / seen.shape[1] + RIDGE * np.eye(len(of))
    return np.linalg.solve(gram, seen @ y[:, taken].T / seen.shape[1]) / size[:, None]
