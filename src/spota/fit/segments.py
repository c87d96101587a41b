"""Recordings in short segments, each of which begins where the machine was (multiple shooting).

Half a second is long enough to see the physics and short enough that an error does not feed on itself, upright least.
Where a segment begins is not known exactly either: positions are smoothed over a few samples, rates are their slope,
and both are only the first guess of the estimate.
"""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from spota.fit.recording import Recording, measured, rate_of
from spota.sim.env import Platform

SECONDS = 0.5
"""The length of a segment."""
AROUND = 0.02
"""Seconds before and after a sample that its position and rate are smoothed over."""
BEYOND = 5
"""Steps of history beyond the longest delay, so that a longer one can be seen."""
GAP = 0.1
"""Seconds without a sample across which no segment goes."""


Normal = tuple[Float[np.ndarray, "k k n"], Float[np.ndarray, "k n"], Float[np.ndarray, "n"]]
"""JᵀWJ, JᵀWr and rᵀWr of every segment, for the p coordinates and then the d of its beginning."""


class Segments(eqx.Module):
    """n segments of recordings on the platform's clock, batch last."""

    start: Float[np.ndarray, "d n"]
    """The measured observation at the beginning."""
    commands: Float[np.ndarray, "steps a n"]
    """What was commanded in every step of the simulation, with as many steps before as the longest delay."""
    positions: Float[np.ndarray, "samples q n"]
    """What was measured after the beginning."""
    of: Int[np.ndarray, "n"]
    """Which recording each is from."""
    history: int = eqx.field(static=True)
    """Steps of `commands` before the beginning."""
    every: int = eqx.field(static=True)
    """Steps of the simulation between two samples."""

    @property
    def n(self) -> int:
        """How many."""
        return self.start.shape[-1]

    def chosen(self, index: Sequence[int] | np.ndarray) -> "Segments":
        """Some of them."""
        index = np.asarray(index, int)
        parts = (self.start, self.commands, self.positions, self.of)
        return Segments(*(x[..., index] for x in parts), history=self.history, every=self.every)

    def seen(self, start: Float[np.ndarray, "d n"], positions: Float[np.ndarray, "samples q n"]) -> "Segments":
        """The same commands, with other measurements."""
        return Segments(start, self.commands, positions, self.of, history=self.history, every=self.every)


def cut(recordings: Sequence[Recording], env: Platform, longest: int, lead: float = 0.0) -> Segments:
    """All segments of some recordings, which need not have one rate: the slowest is taken for all.

    `longest` is the longest delay that the commands before a beginning must reach back. With a lead, each begins so
    many seconds before its half second.
    """
    longest += BEYOND
    every = max(_every(recording, env) for recording in recordings)
    parts = [_cut(i, recording, env, longest, every, lead) for i, recording in enumerate(recordings)]
    join = [np.concatenate([part[j] for part in parts], axis=-1) for j in range(4)]
    return Segments(*join, history=longest, every=every)


def smoothed(env: Platform, every: int) -> tuple[int, Float[np.ndarray, "2 samples"]]:
    """What a beginning is made of: so many samples before and after it, and how they make a slope and a position."""
    dt = every * env.dt
    reach = int(max(AROUND, 3.5 * dt) / dt + 1e-6)
    cubic = np.vander(np.arange(-reach, reach + 1) * dt, 4)
    return reach, np.linalg.pinv(cubic)[-2:]


def observation_of(
    env: Platform, positions: Float[np.ndarray, "q *n"], slopes: Float[np.ndarray, "q *n"]
) -> np.ndarray:
    """Positions and rates in the order of the observations."""
    observation = np.zeros((len(env.observations), *positions.shape[1:]))
    places = [i for i, s in enumerate(env.observations) if s in measured(env)]
    observation[places] = positions
    for rate, position in rate_of(env).items():
        observation[rate] = slopes[places.index(position)]
    return observation


def movement(segments: Segments) -> Float[np.ndarray, "q"]:
    """How far each position moves within a segment: the root mean square of what there is to explain."""
    moved = segments.positions - segments.positions[:1]
    return np.sqrt((moved**2).mean(axis=(0, 2)))


def _every(recording: Recording, env: Platform) -> int:
    """Steps of the simulation to a sample, as near to the recording's rate as there is one."""
    return max(1, round(float(np.median(np.diff(recording.time))) / env.dt))


def _cut(
    which: int, recording: Recording, env: Platform, longest: int, every: int, lead: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    apart = every * round(SECONDS / (every * env.dt))
    steps = apart + every * round(lead / (every * env.dt))
    firsts = _beginnings(recording, env, steps, apart, longest)
    if not firsts.size:
        raise ValueError(f"{recording.name} has gaps of more than {GAP:g} s everywhere; record it again.")
    starts = np.stack([_start(recording, env, first * env.dt) for first in firsts], axis=-1)
    acting = np.arange(-longest, steps)[:, None] + firsts
    held = np.searchsorted(recording.time, (acting + 1e-3) * env.dt, side="right") - 1
    commands = recording.commands[np.clip(held, 0, None)]  # [steps, n, a]
    sampled = (np.arange(every, steps + 1, every)[:, None] + firsts) * env.dt
    q = recording.positions.shape[1]
    seen = np.stack([np.interp(sampled, recording.time, recording.positions[:, i]) for i in range(q)], axis=1)
    floats = [x.astype(np.float32) for x in (starts, np.moveaxis(commands, 1, -1), seen)]
    return floats[0], floats[1], floats[2], np.full(firsts.size, which)


def _beginnings(recording: Recording, env: Platform, steps: int, apart: int, longest: int) -> np.ndarray:
    """Steps at which segments begin: half a second apart, none across a gap, none before the history is known."""
    first = max(longest, int(np.ceil(AROUND / env.dt)))
    last = int((recording.time[-1] - AROUND) / env.dt) - steps
    begin = np.arange(first, last + 1, apart)
    gaps = recording.time[:-1][np.diff(recording.time) > GAP]
    inside = [(gaps > (b - longest) * env.dt - GAP) & (gaps < (b + steps) * env.dt) for b in begin]
    return begin[[not one.any() for one in inside]] if gaps.size else begin


def _start(recording: Recording, env: Platform, time: float) -> np.ndarray:
    """The observation at that time: positions and slopes of a cubic through the samples around."""
    near = np.abs(recording.time - time) <= max(AROUND, 3.5 * float(np.median(np.diff(recording.time))))
    t = recording.time[near] - time
    slope, value = np.polyfit(t, recording.positions[near], 3)[-2:]
    return observation_of(env, value, slope)
