"""Files that are complete or absent, and plain words when the disk does not take them."""

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

CAUSES = {
    errno.ENOSPC: "the disk is full; make room, then run the same command again",
    errno.EDQUOT: "your share of the disk is used up; make room, then run the same command again",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.EACCES: "you have no permission to write there; choose another place",
    errno.EPERM: "you have no permission to write there; choose another place",
    errno.ENOTDIR: "a file stands where a directory is needed; choose another place",
    errno.EEXIST: "a file stands where a directory is needed; choose another place",
    errno.EISDIR: "a directory stands where the file is needed; move it away",
    errno.ENAMETOOLONG: "its name is too long; choose a shorter one",
}


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> Path:
    """Let `write` fill a temporary file, bring it to the disk, then give it its name."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:  # Ctrl-C, too: no half-written file stays behind
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_directory(path.parent)
    return path


def check_writable(path: Path) -> None:
    """Find out before the work whether a file can be written there; `explained` says why not."""
    probe = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()


def write_json(path: Path, document: Any) -> Path:
    """One JSON document, with the rules of `plain` for what JSON has no word for."""
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return write_atomically(path, lambda file: file.write(text.encode()))


def plain(value: Any) -> Any:
    """Values as JSON has them: arrays are lists, NaN is null, infinity is the text "inf" or "-inf"."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "dtype"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(float(value))
    return value


def remove_unfinished(directory: Path):
    """Remove the temporary files of writers that were killed; only for the one who holds the directory's lock."""
    for left in directory.rglob(".*.tmp"):
        with contextlib.suppress(OSError):
            left.unlink()


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say in one sentence which file could not be written, why, and what to do."""
    try:
        yield
    except OSError as error:
        reason = CAUSES.get(error.errno or 0, error.strerror or str(error))
        clear = OSError(f"{path} was not written: {reason}.")
        clear.errno = error.errno
        raise clear from error


def _sync_directory(directory: Path):
    """Bring the new name itself to the disk, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
