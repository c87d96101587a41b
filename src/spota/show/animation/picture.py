"""What a picture is made of: bodies that move with tracks, shapes on them, one camera.

It is plain data, so that it is described once: `drawing.py` draws it without a browser, `picture.js` in one. Lengths
are in metres, z points up; a shape stands on a body, or on the ground if it names none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Point = Sequence[float | int]
Colour = str | tuple[str, str, float]
"""A name of `drawing.COLOURS`, or two and the share of the way from the first to the second."""
Shape = dict[str, Any]
Chain = Sequence[tuple]
"""How a body stands: steps from the ground on, each in the frame that the steps before have made.

("move", vector), ("slide", vector, track), ("turn", axis, track, factor), ("spin", four tracks of a quaternion)."""
TRAIL = 1.3
"""Seconds of the past that stay visible."""


@dataclass(frozen=True)
class Part:
    """Shapes that are drawn one after the other; neighbours with an anchor (body, point) come far ones first."""

    shapes: list[Shape]
    anchor: tuple[str, Point] | None = None


@dataclass(frozen=True, eq=False)
class Picture:
    """A scene: what it shows, from where, and what moves it."""

    azimuth: float
    elevation: float
    distance: float
    """From where the camera looks [rad, rad, m]: turned by azimuth, down by elevation."""
    centre: Point
    """What it looks at."""
    extent: tuple[float, float, float, float]
    """Left, right, bottom and top of what is shown, in metres at the centre."""
    parts: list[Part]
    bodies: Mapping[str, Chain]
    tracks: Mapping[str, np.ndarray]
    interval: float
    """Time between two frames [s]."""


def area(points: Any, colour: Colour, on: str = "", **more: Any) -> Shape:
    """A filled polygon; `to` is a second colour at its third corner, `alpha` how much of it covers what is below."""
    return {"kind": "area", "on": on, "points": points, "colour": colour, **more}


def line(points: Any, width: float, colour: Colour, on: str = "", **more: Any) -> Shape:
    """A round-ended line; `glow` is a track that lets it shine, `dashed` is for browsers."""
    return {"kind": "line", "on": on, "points": points, "width": width, "colour": colour, **more}


def rod(ends: Any, width: float, colour: Colour, light: Colour, on: str = "", to: str | None = None) -> Shape:
    """A round rod with a light side; its second end may be on another body."""
    return {
        "kind": "rod", "on": on, "to": on if to is None else to, "points": ends, "width": width, "colour": colour,
        "light": light,
    }  # fmt: skip


def disc(at: Point, radius: float, colour: Colour, on: str = "") -> Shape:
    """A disc that always faces the camera."""
    return {"kind": "disc", "on": on, "at": at, "radius": radius, "colour": colour}


def hub(at: Point, radius: float, on: str = "") -> list[Shape]:
    """A joint's end: a dark disc with a light one in it."""
    return [disc(at, radius, "metal-dark", on), disc(at, 0.42 * radius, "metal-light", on)]


def ring(centre: Point, radius: float, plane: str = "xy", n: int = 48) -> list[list[float]]:
    """The points of a circle."""
    angles = np.linspace(0, 2 * np.pi, n + 1)
    found = np.tile(np.asarray(centre, float), (n + 1, 1))
    for axis, values in zip(plane, (np.cos(angles), np.sin(angles)), strict=True):
        found[:, "xyz".index(axis)] += radius * values
    return found.tolist()


def shadow(at: Point, level: float, radius: float, alpha: float, on: str = "", within: float | None = None) -> Shape:
    """A soft round shadow on the level ground below a point; `within` says how far from the middle there is ground."""
    found = {"kind": "shadow", "on": on, "at": at, "level": level, "radius": radius, "alpha": alpha}
    return found if within is None else {**found, "within": within}


def trail(at: Point, width: float, on: str) -> Shape:
    """The last moments of a point, fading."""
    return {"kind": "trail", "on": on, "at": at, "width": width, "seconds": TRAIL, "colour": "moving"}


def ball(at: Point, radius: float, on: str) -> Shape:
    """A ball whose seams turn with its body."""
    return {"kind": "ball", "on": on, "at": at, "radius": radius}


def arrow(at: Point, aside: float, length: float, track: str, on: str) -> Shape:
    """A horizontal arrow on the side of the track's sign, `length` long where the track is 1."""
    return {"kind": "arrow", "on": on, "at": at, "aside": aside, "length": length, "track": track, "colour": "first"}


def curve(points: Any, width: float) -> Shape:
    """A curve with a point for each frame; what is to come is pale."""
    return {"kind": "curve", "points": points, "width": width, "colour": "first"}


def photographs(corners: Any, frames: Sequence[str], interval: float) -> Shape:
    """WebP files in base64, one after the other within an upright rectangle; the last one is the end."""
    return {"kind": "photographs", "points": corners, "frames": list(frames), "interval": interval}


def text(at: Point, words: str, colour: Colour, on: str = "", **more: Any) -> Shape:
    """A word; `left` if it begins there."""
    return {"kind": "text", "on": on, "at": at, "text": words, "colour": colour, **more}
