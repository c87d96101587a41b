"""The phases of a run on a machine; a command frame says which one the host is in."""

IDLE, CHECKS, CALIBRATION, PLACEMENT, RUN, STOP = range(6)
PHASES = ("idle", "checks", "calibration", "placement", "run", "stop")


def phase_named(name: str) -> int:
    """The number of a phase."""
    if name not in PHASES:
        raise ValueError(f"There is no phase {name!r}; there are: {', '.join(PHASES)}.")
    return PHASES.index(name)
