"""Compiled programs are kept in the user's cache directory: a command that ran once starts in seconds the next time.

They are the same machine code that jax would compile anew, so no result depends on it. `SPOTA_CACHE` names another
directory, and `SPOTA_CACHE=off` keeps nothing. Whoever can write to that directory can make spota run their code: it
belongs to the user alone.
"""

import hashlib
import os
import platform
import warnings
from pathlib import Path

VARIABLE = "SPOTA_CACHE"
LARGEST = 2 * 1024**3
"""Bytes that a cache may have; beyond that the oldest half of it goes."""


def keep_programs() -> Path | None:
    """Let jax keep its programs, before it compiles the first; returns where, or None if it does not keep them.

    Where a platform refuses a stored program, jax compiles it anew; its warnings about that are of no use to a user.
    """
    directory = cache_directory()
    if directory is None or not _usable(directory):
        return None
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # of XLA, read when jax is imported
    import jax

    if jax.config.values["jax_compilation_cache_dir"]:  # the user keeps them elsewhere
        return None
    _prune(directory)
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # a command has dozens of small programs
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return directory


def cache_directory() -> Path | None:
    """Where programs for this type of CPU are; None if the user wants none.

    A home directory may be shared by machines, and a program for one CPU can crash another.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() in ("off", "0", "no", "false"):
        return None
    try:
        root = Path(wanted) if wanted else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spota"
    except RuntimeError:  # nobody knows where the home is
        return None
    return root / hashlib.sha256(_cpu().encode()).hexdigest()[:16]


def _cpu() -> str:
    """The type of this machine's CPU: its model and everything that it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    kept = [line for line in lines if line.split("\t")[0] in ("model name", "flags", "Features", "CPU part")]
    return "\n".join([platform.machine(), platform.processor(), *kept])


def _usable(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.R_OK | os.W_OK | os.X_OK)


def _prune(directory: Path, largest: int = LARGEST) -> None:
    """Remove the oldest half of a cache that has become too large."""
    try:
        files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(directory))
        if sum(size for _, size, _ in files) > largest:
            for _, _, path in files[: (len(files) + 1) // 2]:
                Path(path).unlink(missing_ok=True)
    except OSError:  # another process prunes at the same time
        return
