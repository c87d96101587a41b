"""Copies of a file with one flipped bit each, and how many of them `spota verify` takes for whole."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from spota.runs.onnx_verification import verify_file

Place = tuple[bytes, bytes]
"""The first and the last words of a part of a file."""


def flips(data: bytes, n: int, places: Sequence[Place]) -> Iterator[bytes]:
    """n copies with one flipped bit each: anywhere, and in each of these places, by turns."""
    rng, ranges = np.random.default_rng(0), [(0, len(data))]
    for first, last in places:
        ranges.append((data.index(first), data.index(last, data.index(first))))
    for i in range(n):
        first, last = ranges[i % len(ranges)]
        bit = int(rng.integers(8 * first, 8 * last))
        copy = bytearray(data)
        copy[bit // 8] ^= 1 << (bit % 8)
        yield bytes(copy)


def missed(exported: Path, into: Path, n: int, places: Sequence[Place]) -> int:
    """How many of n flipped bits are not noticed."""
    path, count = into / "flipped.onnx", 0
    for data in flips(exported.read_bytes(), n, places):
        path.write_bytes(data)
        count += verify_file(path).intact
    return count
