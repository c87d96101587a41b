"""Recordings of a machine: commands and signals over time, with names, units and a contract.

from spota.fit.recording_file import read
recording = read("chirp.npz", make("cart-pole"))     # or a CSV file with a header: time [s], x [m], …, V [V]
"""

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from spota.sim.env import Platform, Signal

SHORTEST = 2.0
"""Seconds that a recording must last: four segments."""
SLOWEST = 25.0
"""Samples a second at least: below, the motion between two samples is anybody's guess."""
FASTEST = {"rad": 60.0, "m": 6.0}
"""Speeds, by unit, that none of these machines reaches: then the unit is wrong."""
LOOK = 0.05
"""Seconds over which a speed is looked at: between two samples at 500 Hz, noise of 5 mm is 3 m/s."""
RESTS = 0.1
"""Seconds of rest under a strong command that show that commands did not act yet."""
STILL = 2e-3
"""The share of its range within which a position is at rest."""
SWITCHED_ON = 2.0
"""Seconds from the beginning within which a machine is switched on; a later rest is its own doing."""
TURNS = 25.0
"""Radians, four turns, that no angle of theirs leaves: then it is in degrees."""


@dataclass(frozen=True)
class Recording:
    """What one machine did: its commands, and where it was, on its own clock."""

    name: str
    sha256: str
    time: Float[np.ndarray, "n"]
    """Seconds."""
    positions: Float[np.ndarray, "n q"]
    """Of the platform's signals those that are no rates, in their order; angles are unwrapped."""
    commands: Float[np.ndarray, "n a"]
    """What acted from each sample to the next."""
    notes: tuple[str, ...] = field(default=())
    """What was done to it on the way here, in words."""

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return float(self.time[-1] - self.time[0])


def is_rate(signal: Signal) -> bool:
    """Whether a signal is the rate of another one: these are filtered on machines, and taken from positions here."""
    return signal.unit.endswith("/s")


def measured(env: Platform) -> tuple[Signal, ...]:
    """The signals that a recording must have: positions, from encoders."""
    return tuple(signal for signal in env.observations if not is_rate(signal))


def rate_of(env: Platform) -> dict[int, int]:
    """The place of each rate among the observations, and that of its position; both are listed in the same order."""
    positions = [i for i, s in enumerate(env.observations) if not is_rate(s)]
    rates = [i for i, s in enumerate(env.observations) if is_rate(s)]
    pairs = dict(zip(rates, positions, strict=False))
    fits = all(env.observations[r].unit == f"{env.observations[p].unit}/s" for r, p in pairs.items())
    if len(rates) > len(positions) or not fits:
        names = ", ".join(f"{s.name} [{s.unit}]" for s in env.observations)
        raise ValueError(f"{env.name} observes {names}: nobody can tell which is the rate of which.")
    return pairs


def acting(recording: Recording, env: Platform) -> Recording:
    """What was recorded while commands acted.

    Recordings may begin before the amplifier does: commands are written down, and what they move stays where it is.
    The driven positions are the first ones, as many as there are commands.
    """
    n = max(2, round(RESTS / float(np.median(np.diff(recording.time)))))
    windows = np.lib.stride_tricks.sliding_window_view
    driven, told = recording.positions[:, : len(env.actions)], np.abs(recording.commands)
    moved = np.ptp(windows(driven, n, axis=0), axis=-1)
    rests = (moved < STILL * np.ptp(driven, axis=0)).all(axis=1)
    strong = (windows(told, n, axis=0).mean(axis=-1) > 0.5 * told.mean(axis=0)).any(axis=1)
    asleep = np.flatnonzero(rests & strong & (recording.time[n - 1 :] < SWITCHED_ON))
    if not asleep.size:
        return recording
    first = int(asleep[-1]) + n
    note = (
        f"Commands act from {recording.time[first]:.2f} s on: before, the machine rests although it is told to "
        "move. That part is left out."
    )
    time = recording.time[first:] - recording.time[first]
    kept = {"positions": recording.positions[first:], "commands": recording.commands[first:]}
    return replace(recording, time=time, notes=(*recording.notes, note), **kept)


def check(recording: Recording, env: Platform) -> Recording:
    """Refuse a recording from which nothing can be learned, with the reason."""
    name = recording.name
    steps = np.diff(recording.time)
    if steps.size == 0 or recording.seconds < SHORTEST:
        raise ValueError(f"{name} is too short: it lasts {recording.seconds:.2f} s, and {SHORTEST:g} s are needed.")
    if steps.min() <= 0:
        at = float(recording.time[int(np.argmin(steps))])
        raise ValueError(f"{name}: time does not go on after {at:.4g} s; sort the samples, and drop double ones.")
    if np.median(steps) > 1 / SLOWEST:
        raise ValueError(f"{name} has {1 / np.median(steps):.3g} samples a second; at least {SLOWEST:g} are needed.")
    for i, signal in enumerate(measured(env)):
        _check_unit(name, signal, recording.positions[:, i], recording.time)
    for i, signal in enumerate(env.actions):
        _check_command(name, signal, recording.commands[:, i])
    return recording


def _check_unit(name: str, signal: Signal, values: np.ndarray, time: np.ndarray) -> None:
    apart = min(values.size - 1, max(1, round(LOOK / float(np.median(np.diff(time))))))
    speed = float(np.quantile(np.abs(values[apart:] - values[:-apart]) / (time[apart:] - time[:-apart]), 0.99))
    limit = FASTEST.get(signal.unit, np.inf)
    turns = signal.unit == "rad" and np.ptp(values) > 2 * TURNS
    if turns or speed > limit:
        other = {"rad": "degrees", "m": "millimetres"}[signal.unit]
        raise ValueError(
            f"{name}: {signal.name} moves by {np.ptp(values):.3g} {signal.unit} and at {speed:.3g} {signal.unit}/s, "
            f"which is too much; it seems to be in {other}. Say so in its unit, e.g. {signal.name} [{other[:3]}]."
        )


def _check_command(name: str, signal: Signal, values: np.ndarray) -> None:
    largest = float(np.abs(values).max())
    if largest > 1.5 * max(abs(signal.low), abs(signal.high)):
        raise ValueError(
            f"{name}: {signal.name} reaches {largest:.3g} {signal.unit}, and the platform's actuator gives "
            f"{signal.low:g} to {signal.high:g} {signal.unit}; is it in another unit?"
        )
