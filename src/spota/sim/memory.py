"""What fits into this machine's memory: an estimate before the work, and one sentence instead of a traceback in it."""

import os

UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def refuse_beyond_memory(needed: float, what: str, instead: str) -> None:
    """Refuse what certainly needs more bytes than the machine has; `instead` says what to write."""
    there = machine_memory()
    if needed > there:
        sizes = f"at least {in_units(needed)} of memory, and this machine has {in_units(there)}"
        raise ValueError(f"{what} that needs {sizes}; {instead}.")


def machine_memory() -> float:
    """Bytes of main memory; infinitely many where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def in_units(size: float) -> str:
    """25.4 GB."""
    power = 0
    while size >= 1000 and power < len(UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {UNITS[power]}" if size < 1e4 else f"{size:.0e} {UNITS[power]}"
