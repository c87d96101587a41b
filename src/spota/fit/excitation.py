"""Whether anything happens in recordings: a machine that rests tells nothing about itself."""

import numpy as np

from spota.fit.noise import sensors
from spota.fit.recording import measured
from spota.fit.segments import Segments, movement
from spota.sim.env import Platform


def still(env: Platform, segments: Segments) -> str | None:
    """Why nothing can be learned, if nothing moves."""
    moved, sigma = movement(segments), sensors(env).sigma
    told = np.ptp(segments.commands.reshape(-1, len(env.actions)), axis=0) if len(env.actions) == 1 else None
    if told is not None and (told < 0.02 * np.array([s.high - s.low for s in env.actions])).all():
        what = f"{env.actions[0].name} stays within {told[0]:.2g} {env.actions[0].unit}"
        return f"nothing here is commanded ({what}); record a chirp, or a swing-up"
    if (moved < 2 * sigma).all():
        most = ", ".join(f"{s.name} by {m:.2g} {s.unit}" for s, m in zip(measured(env), moved, strict=True))
        return f"nothing here moves ({most} within half a second, not more than the sensors' noise); record a chirp"
    return None
