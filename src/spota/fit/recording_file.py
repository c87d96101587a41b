"""Files of recordings: a NumPy archive or a CSV file, from strangers. Nothing in them is executed.

An archive has `time` [n], `signals` [n, d], `commands` [n or n − 1, a] and `about`, JSON text with the names and units
of both. A CSV file has a header: time [s], x [m], alpha_error [rad], V [V]. Rates may be there; they are not used.
"""

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from spota.files.archives import read_archive
from spota.files.atomic import write_atomically
from spota.files.documents import check, check_format, parse_json
from spota.fit.recording import Recording, acting, is_rate, measured
from spota.fit.recording import check as checked
from spota.sim.env import Platform

FORMAT = 1
"""`spota/files/schemas/recording.schema.json` says what `about` has."""
KIND = "recording"
LIMIT = 256 * 2**20
"""Bytes of the largest file that is read."""
SAMPLE = "sample:"
"""Before the name of a recording that comes with spota: sample:cart-pole/chirp+3.5V-0, or a pattern with *."""
FACTORS = {
    ("deg", "rad"): np.pi / 180, ("°", "rad"): np.pi / 180, ("degrees", "rad"): np.pi / 180,
    ("mm", "m"): 1e-3, ("cm", "m"): 1e-2, ("mV", "V"): 1e-3, ("ms", "s"): 1e-3, ("us", "s"): 1e-6,
}  # fmt: skip
"""Units that are converted."""
Named = tuple[tuple[str, str], ...]
"""Names and units."""


def read_all(sources: Sequence[str | Path], env: Platform) -> list[Recording]:
    """Every recording that is named: files, or samples by pattern."""
    found = [read(path, env, name) for source in sources for name, path in _files(str(source))]
    if not found:
        raise ValueError("No recording was given; write one or more files, e.g. chirp.npz, or sample:cart-pole/chirp*.")
    again = [r.name for i, r in enumerate(found) if r.sha256 in {other.sha256 for other in found[:i]}]
    if again:
        raise ValueError(f"{again[0]} was given twice, or under two names.")
    return found


def read(path: str | Path, env: Platform, name: str | None = None) -> Recording:
    """One recording for that platform; a ValueError says in one sentence why it is none."""
    path = Path(path)
    name = name or str(path)
    if not path.is_file():
        raise ValueError(f"There is no recording {name}.")
    if path.suffix not in (".npz", ".csv"):
        raise ValueError(f"{name} is no recording: give an .npz archive or a .csv file, never a pickle.")
    time, signals, commands, names, inputs = (_archive if path.suffix == ".npz" else _table)(path, name)
    if commands.shape[0] == time.size - 1:
        commands = np.concatenate([commands, commands[-1:]])
    _check_finite(name, time, signals, names)
    _check_finite(name, time, commands, inputs)
    positions = _columns(name, env, signals, names, [(s.name, s.unit) for s in measured(env)], "signal")
    told = _columns(name, env, commands, inputs, [(s.name, s.unit) for s in env.actions], "command")
    turned = [i for i, s in enumerate(measured(env)) if s.unit == "rad"]
    positions[:, turned] = np.unwrap(positions[:, turned], axis=0)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    whole = checked(Recording(name, digest, time - time[0], positions, told, _notes(env, time, names)), env)
    return checked(acting(whole, env), env)


def write(
    path: str | Path,
    time: np.ndarray,
    signals: np.ndarray,
    commands: np.ndarray,
    names: Named,
    inputs: Named,
    **about: str,
) -> Path:
    """Write an archive in this format."""
    kinds = {"signals": names, "commands": inputs}
    told = {kind: [{"name": name, "unit": unit} for name, unit in both] for kind, both in kinds.items()}
    text = json.dumps({"format": FORMAT, **about, **told}, ensure_ascii=False)
    arrays: dict[str, Any] = {"about": np.array(text), "time": time, "signals": signals, "commands": commands}
    return write_atomically(Path(path), lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def samples(pattern: str = "*") -> list[str]:
    """The recordings that come with spota, by name."""
    return [name for name, _ in _files(SAMPLE + pattern)]


def _files(source: str) -> list[tuple[str, Path]]:
    if not source.startswith(SAMPLE):
        return [(source, Path(source))]
    root = Path(str(resources.files("spota.fit").joinpath("data")))
    pattern = source.removeprefix(SAMPLE)
    inside = not Path(pattern).is_absolute() and ".." not in Path(pattern).parts
    found = sorted(root.rglob(f"{pattern}.npz")) if inside and pattern else []
    if not found:
        raise ValueError(f"There is no {source}; there are sample:cart-pole/chirp*, sample:qube/swing-up-0 and others.")
    return [(SAMPLE + path.relative_to(root).with_suffix("").as_posix(), path) for path in found]


Content = tuple[np.ndarray, np.ndarray, np.ndarray, Named, Named]


def _archive(path: Path, name: str) -> Content:
    try:
        arrays = read_archive(path, LIMIT)
    except ValueError as error:
        raise ValueError(f"{name} is no recording: {error}.") from error
    if missing := [key for key in ("about", "time", "signals", "commands") if key not in arrays]:
        raise ValueError(f"{name} is no recording: it has no array {missing[0]!r}.")
    about = parse_json(str(arrays["about"]), f"{name}: about")
    check_format(about, (FORMAT,), KIND, name)
    check(about, KIND, name)
    names, inputs = (tuple((s["name"], s["unit"]) for s in about[kind]) for kind in ("signals", "commands"))
    time, signals, commands = (_numbers(name, key, arrays[key]) for key in ("time", "signals", "commands"))
    n = time.size
    fits = (
        time.ndim == 1
        and signals.shape == (n, len(names))
        and commands.shape in ((n, len(inputs)), (n - 1, len(inputs)))
    )
    if not fits:
        raise ValueError(
            f"{name}: {n} times, signals of shape {signals.shape} and commands of shape {commands.shape} do not fit "
            f"together; with {len(names)} signals and {len(inputs)} commands they are [n], [n, {len(names)}] and "
            f"[n, {len(inputs)}]."
        )
    return time, signals, commands, names, inputs


def _numbers(name: str, key: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: {key} has values that are no numbers.")
    return array.astype(np.float64)


def _table(path: Path, name: str) -> Content:
    """A CSV file; everything is a signal, and the platform says which are its commands."""
    if path.stat().st_size > LIMIT:
        raise ValueError(f"{name} has more than {LIMIT:,} bytes.")
    lines = [line for line in path.read_text("utf-8", errors="replace").splitlines() if line and line[0] != "#"]
    rows = list(csv.reader(io.StringIO("\n".join(lines)), skipinitialspace=True))
    head = [_name_and_unit(name, text) for text in (rows[0] if rows else [])]
    if not head or head[0][0] != "time":
        raise ValueError(f"{name}: the first line must be a header that begins with time [s], then e.g. x [m], V [V].")
    try:
        values = np.array([[float(cell) if cell.strip() else np.nan for cell in row] for row in rows[1:]])
        values = values.reshape(-1, len(head))
    except ValueError as error:
        raise ValueError(f"{name} has a line without {len(head)} numbers: {error}.") from error
    time = values[:, 0] * _factor(name, "time", head[0][1], "s")
    return time, values[:, 1:], values[:, 1:], tuple(head[1:]), tuple(head[1:])


def _name_and_unit(name: str, text: str) -> tuple[str, str]:
    label, bracket, unit = text.strip().partition("[")
    if not bracket or not unit.endswith("]"):
        raise ValueError(f"{name}: the column {text!r} has no unit; write e.g. x [m].")
    return label.strip(), unit[:-1].strip()


def _columns(
    name: str, env: Platform, values: np.ndarray, given: Named, wanted: list[tuple[str, str]], kind: str
) -> np.ndarray:
    """The columns that the platform has, in its order and units."""
    known = dict(given)
    for label, _ in wanted:
        if label not in known:
            has = ", ".join(known) or "none"
            needs = ", ".join(label for label, _ in wanted)
            raise ValueError(
                f"{name} is not of a {env.name}: it has no {kind} {label!r}. It has {has}; {env.name} needs {needs}."
            )
    places = {label: i for i, (label, _) in enumerate(given)}
    picked = [values[:, places[label]] * _factor(name, label, known[label], unit) for label, unit in wanted]
    return np.stack(picked, axis=1)


def _factor(name: str, label: str, unit: str, wanted: str) -> float:
    if unit == wanted:
        return 1.0
    if (unit, wanted) not in FACTORS:
        raise ValueError(f"{name}: {label} is in {unit!r}, which nobody here can convert to {wanted!r}.")
    return FACTORS[unit, wanted]


def _check_finite(name: str, time: np.ndarray, values: np.ndarray, names: Named) -> None:
    if not np.isfinite(time).all():
        raise ValueError(f"{name}: a time is missing (NaN); drop that sample.")
    for i, (label, _) in enumerate(names):
        bad = ~np.isfinite(values[:, i])
        if bad.any():
            raise ValueError(
                f"{name}: {label} is missing (NaN) in {int(bad.sum())} of {bad.size} samples, first at "
                f"{time[int(bad.argmax())]:.4g} s; cut the recording there, or drop these samples."
            )


def _notes(env: Platform, time: np.ndarray, names: Named) -> tuple[str, ...]:
    steps = np.diff(time)
    notes = []
    if steps.size and np.ptp(steps) > 0.01 * np.median(steps):
        notes.append("Steps are unequal; positions are interpolated.")
    if any(is_rate(s) and s.name in dict(names) for s in env.observations):
        notes.append("Rates are not used: machines filter them, so that they lag.")
    return tuple(notes)
