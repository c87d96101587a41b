"""NumPy archives from strangers: sizes first, then bytes. Nothing is unpickled or allocated on a header's word.

A header can promise anything: 400 GB, objects, records. So the directory of the archive is read first, then each
header, and an array is read only if its bytes are there, in a plain type, and all of them are within the limit.
"""

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

Arrays = dict[str, np.ndarray]

PLAIN = "biufcUS"
"""Kinds of dtypes that are numbers or text."""
MOST_MEMBERS = 10_000
LONGEST_HEADER = 4096
"""Characters of a header that describes one array."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""How to read the header of an array, by the version that it states."""


def read_archive(path: Path, limit: int) -> Arrays:
    """All arrays of a file by name; a ValueError says why it has none, or more than `limit` bytes."""
    if path.stat().st_size > limit:
        raise ValueError(f"it has {path.stat().st_size:,} bytes, and at most {limit:,} are read")
    try:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            members = _checked(archive.infolist(), limit)
            return {one.filename.removesuffix(".npy"): _array(archive, one) for one in members}
    except (ValueError, OSError):
        raise
    except Exception as error:  # whatever strange bytes provoke: a broken member, a header that nests too deeply
        raise ValueError(f"it is damaged: {' '.join(str(error).split()) or type(error).__name__}") from error


def _checked(members: list[zipfile.ZipInfo], limit: int) -> list[zipfile.ZipInfo]:
    """Refuse an archive by its directory alone, before any member is opened."""
    names = [one.filename for one in members]
    if len(names) > MOST_MEMBERS or len(set(names)) < len(names):
        raise ValueError("it has too many members, or two of one name")
    total = sum(one.file_size for one in members)
    if total > limit:
        raise ValueError(f"unpacked it would have {total:,} bytes, and at most {limit:,} are read")
    for one in members:
        if one.flag_bits & 1:
            raise ValueError(f"{one.filename!r} is encrypted")
        if one.compress_type not in METHODS:
            raise ValueError(f"{one.filename!r} is compressed in an unknown way")
        if not one.filename.endswith(".npy"):
            raise ValueError(f"{one.filename!r} is no array")
    return members


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array, whose header must promise exactly the bytes that follow it."""
    with archive.open(member) as file:
        assert isinstance(file, zipfile.ZipExtFile)
        shape, fortran, dtype = _header(file, member.filename)
        if dtype.kind not in PLAIN:
            raise ValueError(f"{member.filename!r} has values of type {str(dtype)[:40]}, not numbers or text")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != member.file_size - file.tell():
            raise ValueError(f"{member.filename!r} promises {size:,} bytes, and others follow")
        values = np.frombuffer(bytearray(file.read(size)), dtype, math.prod(shape))
        return values.reshape(shape, order="F" if fortran else "C")


def _header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    try:
        return HEADERS[npy.read_magic(file)](file, max_header_size=LONGEST_HEADER)
    except Exception as error:  # NumPy complains in many ways, and quotes the header
        raise ValueError(f"{name!r} has a header that cannot be read") from error
