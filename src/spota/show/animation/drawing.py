"""A picture without a browser: at one frame → areas and lines on a flat sheet, in the order in which they are drawn.

Units are metres on the sheet; y points up. `picture.js` draws the same pictures on a canvas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from jaxtyping import Float

from spota.show.animation.picture import Chain, Colour, Part, Picture, Shape

Points = Float[np.ndarray, "n 2"]
Solid = Float[np.ndarray, "n 3"]

COLOURS = {
    "surface": "#ffffff", "ink": "#16202c", "quiet": "#5b6878", "grid": "#cfd6de", "floor": "#e9edf2",
    "metal": "#8793a2", "metal-dark": "#56616f", "metal-light": "#c3ccd6", "board": "#f4f7fa", "board-shade": "#b9c4d0",
    "target": "#0072b2", "first": "#0072b2", "second": "#00805e", "failure": "#c44601", "shadow": "#465161",
    "moving": "#e08a00", "moving-light": "#ffc766", "moving-dark": "#9a4f00",
}  # fmt: skip
"""As `player.css` has them for a light screen."""
SEAM = 0.785
"""Half of the width of a ball's small seams, which are 0.62 from its middle; its radius is 1."""


@dataclass(frozen=True, eq=False)
class Area:
    """A filled polygon."""

    points: Points
    colour: str


@dataclass(frozen=True, eq=False)
class Line:
    """A round-ended line."""

    points: Points
    width: float
    colour: str


@dataclass(frozen=True, eq=False)
class Text:
    """A word about a point, or from it on."""

    points: Points
    words: str
    colour: str
    left: bool


@dataclass(frozen=True, eq=False)
class Photograph:
    """A picture of somebody else's, between its lower left and its upper right corner."""

    points: Points
    frame: str


Mark = Area | Line | Text | Photograph


@dataclass(frozen=True)
class Camera:
    """Looks at a point from a distance [m], turned by azimuth and down by elevation [rad]; perspective."""

    azimuth: float
    elevation: float
    distance: float
    centre: tuple[float, float, float]

    @cached_property
    def axes(self) -> Float[np.ndarray, "3 3"]:
        """Right, up and away, as unit vectors."""
        (ca, ce), (sa, se) = np.cos([self.azimuth, self.elevation]), np.sin([self.azimuth, self.elevation])
        return np.array([[ca, sa, 0], [-sa * se, ca * se, ce], [-sa * ce, ca * ce, -se]])

    def zoom(self, solid: Solid) -> Float[np.ndarray, " n"]:
        """How large a metre at each point looks: 1 at the centre."""
        return self.distance / (self.distance + (solid - self.centre) @ self.axes[2])

    def __call__(self, solid: Solid) -> Points:
        """Where points in space are on the sheet."""
        return (solid - self.centre) @ self.axes[:2].T * self.zoom(solid)[:, None]


def colour_of(colour: Colour, alpha: float = 1.0) -> str:
    """A colour of the description; what does not cover all is paler."""
    if isinstance(colour, str):
        return pale(COLOURS.get(colour, colour), 1 - alpha)
    one, other, share = colour
    return mixed(COLOURS.get(one, one), COLOURS.get(other, other), share)


def pale(colour: str, share: float) -> str:
    """That share of the way to white."""
    return mixed(colour, "#ffffff", share)


def mixed(one: str, other: str, share: float) -> str:
    """That share of the way from one colour to the other."""
    a, b = (np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) for colour in (one, other))
    return "#" + "".join(f"{round(v):02x}" for v in a + (b - a) * share)


class Drawing:
    """A picture with its bodies' poses at every frame."""

    def __init__(self, picture: Picture):
        """Follow every body through the tracks, once."""
        self.picture = picture
        x, y, z = picture.centre
        self.see = Camera(picture.azimuth, picture.elevation, picture.distance, (float(x), float(y), float(z)))
        frames = len(next(iter(picture.tracks.values())))
        self.poses = {name: poses(chain, picture.tracks, frames) for name, chain in {"": [], **picture.bodies}.items()}

    def marks(self, frame: int) -> list[Mark]:
        """What to draw at a frame, far things first."""
        return [mark for part in self._ordered(frame) for shape in part.shapes for mark in self._marks(shape, frame)]

    def _ordered(self, frame: int) -> list[Part]:
        ordered = []
        for _, parts in groupby(self.picture.parts, key=lambda part: part.anchor is not None):
            ordered += sorted(parts, key=lambda part: self._size(part, frame) if part.anchor else 0.0)
        return ordered

    def _size(self, part: Part, frame: int) -> float:
        """Far ones look smaller."""
        body, point = part.anchor or ("", (0, 0, 0))
        return float(self.see.zoom(self.place(body, [point], frame))[0])

    def place(self, body: str, points: Any, frame: int) -> Solid:
        """Points of a body, in space."""
        turned, at = self.poses[body]
        return np.asarray(points, float) @ turned[frame].T + at[frame]

    def _marks(self, shape: Shape, frame: int) -> list[Mark]:
        return getattr(self, f"_{shape['kind']}")(shape, frame)

    def _area(self, s: Shape, frame: int) -> list[Mark]:
        colour = colour_of(s["colour"], s.get("alpha", 1.0))
        if "to" in s:
            colour = mixed(colour, colour_of(s["to"]), 0.5)
        return [Area(self.see(self.place(s["on"], s["points"], frame)), colour)]

    def _line(self, s: Shape, frame: int) -> list[Mark]:
        alpha = 0.35 + 0.65 * float(np.clip(self.picture.tracks[s["glow"]][frame], 0, 1)) if "glow" in s else 1.0
        solid = self.place(s["on"], s["points"], frame)
        return [Line(self.see(solid), s["width"] * float(self.see.zoom(solid)[0]), colour_of(s["colour"], alpha))]

    def _rod(self, s: Shape, frame: int) -> list[Mark]:
        ends = zip((s["on"], s["to"]), s["points"], strict=True)
        solid = np.concatenate([self.place(body, [point], frame) for body, point in ends])
        flat, width = self.see(solid), s["width"] * float(self.see.zoom(solid)[0])
        along = flat[1] - flat[0]
        side = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
        lit = flat + 0.18 * width * (side if side[1] >= 0 else -side)
        return [Line(flat, width, colour_of(s["colour"])), Line(lit, 0.35 * width, colour_of(s["light"]))]

    def _disc(self, s: Shape, frame: int) -> list[Mark]:
        solid = self.place(s["on"], [s["at"]], frame)
        return [round_area(self.see(solid)[0], s["radius"] * float(self.see.zoom(solid)[0]), colour_of(s["colour"]))]

    def _shadow(self, s: Shape, frame: int) -> list[Mark]:
        middle = self.place(s["on"], [s["at"]], frame)[0]
        if np.hypot(*middle[:2]) > s.get("within", np.inf):
            return []
        circle = np.append(middle[:2], s["level"]) + 0.8 * s["radius"] * _unit_circle("xy")
        return [Area(self.see(circle), colour_of("shadow", 0.5 * s["alpha"]))]

    def _trail(self, s: Shape, frame: int) -> list[Mark]:
        """Thinner and paler the older it is; oldest first."""
        begin = max(0, frame - round(s["seconds"] / self.picture.interval))
        if begin == frame:
            return []
        from scipy.interpolate import CubicSpline  # slow to import

        frames = np.arange(begin, frame + 1)
        flat = self.see(np.concatenate([self.place(s["on"], [s["at"]], int(i)) for i in frames]))
        points = CubicSpline(frames, flat)(np.linspace(begin, frame, 3 * (frame - begin) + 1))
        ages = np.linspace(1, 0, len(points) - 1)
        return [
            Line(points[i : i + 2], s["width"] * (1 - 0.6 * age), colour_of(s["colour"], 0.7 - 0.6 * age))
            for i, age in enumerate(ages)
        ]

    def _ball(self, s: Shape, frame: int) -> list[Mark]:
        middle = self.place(s["on"], [s["at"]], frame)
        spot, size = self.see(middle)[0], s["radius"] * float(self.see.zoom(middle)[0])
        skin = [("moving-dark", 0.0, 1.0), ("moving", 0.12, 0.93), ("moving-light", 1.0, 0.38)]
        light = np.array([-0.3, 0.35]) * size
        marks: list[Mark] = [round_area(spot + by * light, share * size, colour_of(c)) for c, by, share in skin]
        for seam in _SEAMS:
            right, up, away = self.see.axes @ self.poses[s["on"]][0][frame] @ seam.T
            for i in np.flatnonzero((away[:-1] < 0) & (away[1:] < 0)):
                ends = spot + size * np.stack([right, up], axis=1)[i : i + 2]
                marks.append(Line(ends, 0.09 * size, colour_of(("moving", "moving-dark", 0.55))))
        return marks

    def _arrow(self, s: Shape, frame: int) -> list[Mark]:
        share = float(self.picture.tracks[s["track"]][frame])
        length, side = s["length"] * abs(share), np.sign(share)
        if length < 0.004:
            return []
        head = min(0.014, length)
        way = np.array([s["aside"], s["aside"] + length - head, s["aside"] + length]) * side
        shaft = [(way[0], 0, 0), (way[1], 0, 0)]
        tip = [(way[2], 0, 0), (way[1], 0, 0.6 * head), (way[1], 0, -0.6 * head)]
        flat = [self.see(self.place(s["on"], np.add(points, s["at"]), frame)) for points in (shaft, tip)]
        return [Line(flat[0], 0.006, colour_of(s["colour"])), Area(flat[1], colour_of(s["colour"]))]

    def _curve(self, s: Shape, frame: int) -> list[Mark]:
        flat, colour = self.see(np.asarray(s["points"], float)), colour_of(s["colour"])
        past = Line(flat[: frame + 1], s["width"], colour)
        return [
            Line(flat, 0.7 * s["width"], pale(colour, 0.72)),
            past,
            round_area(flat[frame], 0.015, COLOURS["moving"]),
        ]

    def _photographs(self, s: Shape, frame: int) -> list[Mark]:
        time = self.picture.tracks["time"]
        now = -1 if frame == len(time) - 1 else int(time[frame] / s["interval"] + 1e-6)
        return [Photograph(self.see(np.asarray(s["points"], float)), s["frames"][now])]

    def _text(self, s: Shape, frame: int) -> list[Mark]:
        at = self.see(self.place(s["on"], [s["at"]], frame))
        return [Text(at, s["text"], colour_of(s["colour"]), s.get("left", False))]


def poses(
    chain: Chain, tracks: Mapping[str, np.ndarray], frames: int
) -> tuple[Float[np.ndarray, "F 3 3"], Float[np.ndarray, "F 3"]]:
    """How a body is turned, and where it is, at every frame."""
    turned, at = np.tile(np.eye(3), (frames, 1, 1)), np.zeros((frames, 3))
    for kind, how, *more in chain:
        if kind == "move":
            at = at + turned @ np.asarray(how, float)
        elif kind == "slide":
            at = at + np.asarray(tracks[more[0]], float)[:, None] * (turned @ np.asarray(how, float))
        elif kind == "turn":
            turned = turned @ about(how, more[1] * np.asarray(tracks[more[0]], float))
        else:
            turned = turned @ spun(np.stack([tracks[name] for name in how], axis=-1))
    return turned, at


def about(axis: Any, angles: Float[np.ndarray, " F"]) -> Float[np.ndarray, "F 3 3"]:
    """Turn by angles about a unit vector."""
    half = np.asarray(angles, float)[:, None] / 2
    return spun(np.concatenate([np.cos(half), np.sin(half) * np.asarray(axis, float)], axis=1))


def spun(quaternions: Float[np.ndarray, "F 4"]) -> Float[np.ndarray, "F 3 3"]:
    """The turns that quaternions stand for."""
    from scipy.spatial.transform import Rotation  # slow to import

    return Rotation.from_quat(np.roll(quaternions, -1, axis=1)).as_matrix()


def round_area(middle: np.ndarray, radius: float, colour: str) -> Area:
    """A disc on the sheet."""
    return Area(middle + radius * _unit_circle("xy")[:, :2], colour)


def _unit_circle(plane: str, n: int = 40) -> Solid:
    angles = np.linspace(0, 2 * np.pi, n + 1)
    found = np.zeros((n + 1, 3))
    found[:, ["xyz".index(axis) for axis in plane]] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return found


_SEAMS = [
    _unit_circle("xy"),
    _unit_circle("xz"),
    *(SEAM * _unit_circle("xz") + np.array([0, y, 0]) for y in (-0.62, 0.62)),
]
