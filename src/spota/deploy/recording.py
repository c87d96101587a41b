"""A log as a recording: what the machine did, with names, units and times, as `spota fit` reads it."""

import json
from pathlib import Path

import numpy as np

from spota.deploy.hardware import ends, hardware_of
from spota.deploy.log import COLUMNS, Ticks
from spota.deploy.phases import PLACEMENT
from spota.deploy.session import Ended
from spota.files.atomic import write_atomically
from spota.sim.env import Env, Platform

FORMAT = 1
TOUCHES = 0.98
"""The share of the way to its end at which a machine may touch it."""
SPINS = 20.0
"""How far a pole may be from where it ends up before it counts as spinning [rad]."""
KEPT = {"host_time": "s", "device_time": "s", "age": "s", "work": "s"}
"""Units of the columns of the log; the others are numbers."""


def write_recording(path: Path, ended: Ended, env: Platform, source: str) -> Path:
    """Measured signals and sent commands of the longest free motion, then the whole log as `log_…`.

    The observations are corrected by the calibration; `time` is the device's own, from zero.
    """
    ticks, rows = ended.ticks, free_rows(ended, env)
    time = (ticks["device_time"][rows] - (ticks["device_time"][rows[:1]] if rows.size else 0)) / 1e9
    kinds = {"signals": ticks.contract.observations, "commands": ticks.contract.actions}
    named = {kind: [{"name": s.name, "unit": s.unit} for s in signals] for kind, signals in kinds.items()}
    about = {"format": FORMAT, "env": env.name, "source": source, "dt": ticks.contract.dt, "log_units": KEPT, **named}
    arrays = {"time": time, "signals": ticks.observation[rows], "commands": ticks.sent[rows]}
    log = {f"log_{name}": _in_seconds(name, ticks[name]) for name in COLUMNS}
    log |= {"log_observation": ticks.observation, "log_wanted": ticks.wanted, "log_sent": ticks.sent}
    content = {"about": np.array(json.dumps(about, ensure_ascii=False)), **arrays, **log}
    return write_atomically(path, lambda file: np.savez_compressed(file, allow_pickle=False, **content))


def free_rows(ended: Ended, env: Platform) -> np.ndarray:
    """The frames of the longest free motion in placement and run: off the ends of the machine, and without spinning.

    No simulator knows the ends, and fits that look there find machines that do not exist.
    """
    ticks = ended.ticks
    rows = np.flatnonzero(ticks["arrived"] & (ticks["phase"] >= PLACEMENT))
    if not rows.size:
        return rows
    cuts = np.flatnonzero(_held(ticks, rows, env, ended))
    begins, stops = np.append(0, cuts + 1), np.append(cuts, rows.size)
    longest = int(np.argmax(stops - begins))
    return rows[begins[longest] : stops[longest]]


def _held(ticks: Ticks, rows: np.ndarray, env: Platform, ended: Ended) -> np.ndarray:
    """Whether the machine touches an end, or spins."""
    seen, upright = ticks.observation[rows], hardware_of(env).upright
    held = np.zeros(rows.size, bool)
    if isinstance(env, Env):
        for at, end in ends(env.name, env.params(dict(ended.known))).items():
            held |= np.abs(seen[:, at]) > TOUCHES * end
    if upright is not None:
        angle = np.unwrap(seen[:, upright])
        held |= np.abs(angle - angle[-1]) > SPINS
    return held


def _in_seconds(name: str, column: np.ndarray) -> np.ndarray:
    return column / 1e9 if column.dtype == np.int64 and name.endswith("_time") else column
