"""A log as a recording: what the machine did, with names, units and times, as `spota fit` reads it."""

import json
from pathlib import Path

import numpy as np

from spota.deploy.log import COLUMNS, Ticks
from spota.deploy.phases import CALIBRATION
from spota.files.atomic import write_atomically

FORMAT = 1
KEPT = {"host_time": "s", "device_time": "s", "age": "s", "work": "s"}
"""Units of the columns of the log; the others are numbers."""


def write_recording(path: Path, ticks: Ticks, env: str, source: str) -> Path:
    """Measured signals and sent commands of every frame from the calibration on, then the whole log as `log_…`.

    The observations are corrected by the calibration; `time` is the device's own, from zero.
    """
    rows = np.flatnonzero(ticks["arrived"] & (ticks["phase"] >= CALIBRATION))
    time = (ticks["device_time"][rows] - (ticks["device_time"][rows[:1]] if rows.size else 0)) / 1e9
    kinds = {"signals": ticks.contract.observations, "commands": ticks.contract.actions}
    named = {kind: [{"name": s.name, "unit": s.unit} for s in signals] for kind, signals in kinds.items()}
    about = {"format": FORMAT, "env": env, "source": source, "dt": ticks.contract.dt, "log_units": KEPT, **named}
    arrays = {"time": time, "signals": ticks.observation[rows], "commands": ticks.sent[rows]}
    log = {f"log_{name}": _in_seconds(name, ticks[name]) for name in COLUMNS}
    log |= {"log_observation": ticks.observation, "log_wanted": ticks.wanted, "log_sent": ticks.sent}
    content = {"about": np.array(json.dumps(about, ensure_ascii=False)), **arrays, **log}
    return write_atomically(path, lambda file: np.savez_compressed(file, allow_pickle=False, **content))


def _in_seconds(name: str, column: np.ndarray) -> np.ndarray:
    return column / 1e9 if column.dtype == np.int64 and name.endswith("_time") else column
