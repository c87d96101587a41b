"""A rollout of somebody else's simulator as pictures of its own renderer.

The rollout that counts has none of it: its commands act once more, on a machine that can be drawn, and at every step
both must observe the same. A machine that moves otherwise is not shown.
"""

import base64
import io
import math
import time
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key
from PIL import Image

from spota.sim import randomness, rollout
from spota.sim.domain import Domains
from spota.sim.host import Draw, HostEnv, Machines, NoPictureError

FRAMES_PER_SECOND = 12
LARGEST = 400
"""Width and height of a picture at most [px]."""
QUALITY = 60
"""Of WebP, of at most 100."""
FEWEST, MOST = 24, 100
"""Pictures of a rollout; between them, as many as time and weight allow."""
SECONDS, CHARACTERS = 2.0, 500_000
"""What the pictures of a rollout may take."""


@dataclass(frozen=True)
class Film:
    """Pictures at equal intervals; the last one is the end, which may follow sooner."""

    frames: tuple[str, ...]
    """WebP files, in base64."""
    interval: float
    """Time between two of them [s]."""
    width: int
    height: int


def film(env: HostEnv, domain: Domains, key: Key[Array, ""], steps: rollout.Step) -> Film:
    """Pictures of the rollout that these steps are; `NoPictureError` says why there are none."""
    end = int(np.asarray(steps.alive[:, 0]).sum())
    reached = np.asarray(jax.vmap(lambda command: env.effects.reach(command, domain))(steps.command[:end]))
    columns = {name: np.asarray(column, np.float64) for name, column in domain.items()}
    try:
        with env.pictured(columns, randomness.seeds(key[None])) as (machines, draw):
            return _shot(env, machines, draw, reached, np.asarray(steps.state[:end]))
    except NoPictureError:
        raise
    except Exception as error:  # a picture that fails must not cost a run its page
        what = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": .")
        raise NoPictureError(f"drawing it raised {what}") from error


def _shot(
    env: HostEnv,
    machines: Machines,
    draw: Draw,
    reached: Float[np.ndarray, "T a 1"],
    ideal: Float[np.ndarray, "T d 1"],
) -> Film:
    """Let the commands act, and take a picture now and then."""
    draw()  # the first one prepares what it needs
    begun = time.perf_counter()
    image = _image(draw)
    frames = [_encoded(image)]
    seconds = time.perf_counter() - begun
    stride = _stride(env.dt, len(reached), seconds, len(frames[0]))
    for t, command in enumerate(reached, start=1):
        seen = _moved(machines, command, ideal[t - 1])
        if t == len(reached) or t % stride == 0:
            frames.append(_encoded(_image(draw)) if seen.all() else frames[-1])
    return Film(tuple(frames), stride * env.dt, *image.size)


def _moved(
    machines: Machines, command: Float[np.ndarray, "a 1"], ideal: Float[np.ndarray, "d 1"]
) -> Bool[np.ndarray, " d"]:
    """One step from where the rollout was, too; whether what it then observes are numbers."""
    if not np.array_equal(np.asarray(machines.observe(), np.float32), ideal):
        raise NoPictureError("the machine that can be drawn does not move as the one that counts")
    machines.step(command if np.isfinite(command).all() else np.zeros_like(command), np.ones(1, bool))
    return np.isfinite(machines.observe()[:, 0])


def _stride(dt: float, steps: int, seconds: float, characters: int) -> int:
    """Steps from one picture to the next, if one takes this time and this much of the page."""
    affordable = min(SECONDS / max(seconds, 1e-9), CHARACTERS / characters, MOST)
    return max(round(1 / (FRAMES_PER_SECOND * dt)), math.ceil(steps / max(affordable, FEWEST)), 1)


def _image(draw: Draw) -> Image.Image:
    """What is drawn now, no larger than the page shows it."""
    found: Any = np.asarray(draw())
    if found.dtype != np.uint8 or found.ndim != 3 or found.shape[2] != 3:
        raise NoPictureError(
            f"its picture is an array of {found.dtype} with shape {found.shape}, where uint8 [height, width, 3] is "
            "needed"
        )
    image = Image.fromarray(found)
    image.thumbnail((LARGEST, LARGEST))
    return image


def _encoded(image: Image.Image) -> str:
    file = io.BytesIO()
    image.save(file, "WEBP", quality=QUALITY, method=2)
    return base64.b64encode(file.getvalue()).decode()


def decoded(frame: str) -> Image.Image:
    """The picture again."""
    return Image.open(io.BytesIO(base64.b64decode(frame))).convert("RGB")
