"""The pictures without a browser: one recording at one frame → shapes on a flat sheet, far ones first.

`player.js` draws the same scenes with more detail. Units are metres on the sheet; y points up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from spota.show.animation.recording import Recording, Scene

TRAIL = 60  # frames of the past that stay visible

Points = Float[np.ndarray, "n 2"]
Solid = Float[np.ndarray, "n 3"]

METAL, DARK_METAL, LIGHT_METAL = "#8793a2", "#56616f", "#c3ccd6"
FLOOR, BOARD, GRID, TARGET = "#e9edf2", "#eef2f6", "#cfd6de", "#0072b2"
FIRST, SECOND, FAILURE = "#0072b2", "#00805e", "#c44601"
MOVING, MOVING_LIGHT, MOVING_DARK, SHADOW = "#e08a00", "#ffc766", "#9a4f00", "#aab3bf"
INK, QUIET = "#16202c", "#5b6878"
LIGHT = ("#ffffff", FLOOR, BOARD, GRID)
STRONG = (METAL, DARK_METAL, LIGHT_METAL, SHADOW, INK, QUIET)
STRONG += (FIRST, SECOND, FAILURE, MOVING, MOVING_LIGHT, MOVING_DARK)


@dataclass(frozen=True, eq=False)
class Area:
    """A filled polygon."""

    points: Points
    colour: str


@dataclass(frozen=True, eq=False)
class Line:
    """A round-ended line; the width is in metres on the sheet."""

    points: Points
    width: float
    colour: str


Shape = Area | Line
UP = np.array([0, 0, 1.0])
Extent = tuple[float, float, float, float]
"""Left, right, bottom and top of the part of the sheet that is shown."""


@dataclass(frozen=True)
class Camera:
    """Looks at a point from a distance [m], turned by azimuth and down by elevation [rad]; perspective."""

    azimuth: float
    elevation: float
    distance: float
    centre: tuple[float, float, float]

    def axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Right, up and away, as unit vectors."""
        ca, sa, ce, se = *_turn(self.azimuth), *_turn(self.elevation)
        return np.array([ca, sa, 0]), np.array([-sa * se, ca * se, ce]), np.array([-sa * ce, ca * ce, -se])

    def zoom(self, solid: Solid) -> Float[np.ndarray, " n"]:
        """How large a metre at each point looks: 1 at the centre."""
        return self.distance / (self.distance + (solid - self.centre) @ self.axes()[2])

    def __call__(self, solid: Solid) -> Points:
        """Where points in space are on the sheet."""
        right, up, _ = self.axes()
        flat = (solid - self.centre) @ np.stack([right, up], axis=1)
        return flat * self.zoom(solid)[:, None]


def shapes(recording: Recording, recordings: Sequence[Recording], frame: int) -> list[Shape]:
    """What to draw at a frame; all recordings of one kind share one scale."""
    return _PICTURES[recording.scene](recording, _largest(recordings, recording.scene), frame)


def extent(scene: Scene, recordings: Sequence[Recording]) -> Extent:
    """The part of the sheet that holds every recording of this kind."""
    size = _largest(recordings, scene)
    if scene == "curves":
        return -0.05, 1.65, -0.02, 1.02
    if scene == "plate":
        return -0.8 * size["plate"], 0.8 * size["plate"], -0.56 * size["plate"], 0.6 * size["plate"]
    if scene == "rail":
        hanging = max(float(np.cos(r.tracks["alpha"]).max()) for r in recordings if r.scene == "rail")
        half = size["rail"] / 2 + 0.03
        return -half, half, -max(0.1, size["pole"] * hanging + 0.03), size["pole"] + 0.04
    half = size["arm"] + size["pole"]
    return -half, half, -1.4 * size["pole"], 1.4 * size["pole"]


def pale(colour: str, share: float) -> str:
    """That share of the way to white."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return "#" + "".join(f"{round(v):02x}" for v in rgb + (255 - rgb) * share)


def _largest(recordings: Sequence[Recording], scene: Scene) -> dict[str, float]:
    kin = [r.sizes for r in recordings if r.scene == scene]
    return {name: max(sizes[name] for sizes in kin) for name in kin[0]}


def _turn(angle: float) -> tuple[float, float]:
    return float(np.cos(angle)), float(np.sin(angle))


def _ring(centre: np.ndarray, radius: float, n: int = 48) -> Solid:
    """A level circle."""
    a = np.linspace(0, 2 * np.pi, n)
    return centre + radius * np.stack([np.cos(a), np.sin(a), 0 * a], axis=1)


def _disc(centre: np.ndarray, radius: float, colour: str) -> Area:
    return Area(_ring(np.append(centre, 0), radius, 32)[:, :2], colour)


def _rod(ends: Points, width: float, dark: str, light: str) -> list[Shape]:
    """A round rod with a light side."""
    along = ends[1] - ends[0]
    side = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
    side = side if side[1] >= 0 else -side
    return [Line(ends, width, dark), Line(ends + 0.18 * width * side, 0.35 * width, light)]


def _trail(points: Points, width: float) -> list[Shape]:
    """The last moments of a point, thinner and paler the older they are; oldest first."""
    if len(points) < 2:
        return []
    from scipy.interpolate import CubicSpline  # slow to import

    frames = np.arange(len(points))
    points = CubicSpline(frames, points)(np.linspace(0, frames[-1], 3 * frames[-1] + 1))
    ages = np.linspace(1, 0, len(points) - 1)
    return [
        Line(points[i : i + 2], width * (1 - 0.6 * age), pale(MOVING, 0.3 + 0.6 * age)) for i, age in enumerate(ages)
    ]


def _past(frame: int) -> slice:
    return slice(max(0, frame - TRAIL), frame + 1)


def _tilted(tilt_x: float, tilt_y: float) -> Float[np.ndarray, "3 3"]:
    """The plate's orientation: positive tilts lower the sides of positive x and y."""
    (cx, sx), (cy, sy) = _turn(tilt_x), _turn(tilt_y)
    about_y = np.array([[cx, 0, sx], [0, 1, 0], [-sx, 0, cx]])
    about_x = np.array([[1, 0, 0], [0, cy, sy], [0, -sy, cy]])
    return about_y @ about_x


def _plate(r: Recording, largest: dict[str, float], frame: int) -> list[Shape]:
    big, now = largest["plate"], {name: float(track[frame]) for name, track in r.tracks.items()}
    see = Camera(0.6, 0.56, 3.4 * big, (0.0, 0.0, -0.11 * big))
    tilt = _tilted(now["tilt_x"], now["tilt_y"])

    def board(solid: np.ndarray) -> Points:
        return see(solid @ tilt.T)

    return [
        *_pedestal(see, big),
        *_servo(see, r, big, np.array([1.0, 0, 0]), now["servo_x"], tilt, FIRST),
        *_servo(see, r, big, np.array([0, -1.0, 0]), -now["servo_y"], tilt, SECOND),
        *_board(board, r.sizes["plate"] / 2, big),
        *_trail(board(_on_board(r, frame)), 0.012 * big),
        *_ball(see, board, tilt, _on_board(r, frame)[-1], r.sizes["ball"]),
    ]


def _on_board(r: Recording, frame: int) -> Solid:
    """Where the ball has touched the plate."""
    x, y = r.tracks["x"][_past(frame)], r.tracks["y"][_past(frame)]
    return np.stack([x, y, 0 * x], axis=1)


def _pedestal(see: Camera, big: float) -> list[Shape]:
    floor, thick = -0.31 * big, 0.022 * big
    post = see(np.array([[0, 0, floor], [0, 0, -thick]]))
    return [
        Area(see(_ring((floor - thick) * UP, 0.6 * big)), pale(SHADOW, 0.6)),
        Area(see(_ring((floor - thick) * UP, 0.57 * big)), DARK_METAL),
        Area(see(_ring(floor * UP, 0.57 * big)), FLOOR),
        *_rod(post, 0.02, DARK_METAL, LIGHT_METAL),
    ]


def _servo(
    see: Camera, r: Recording, big: float, out: np.ndarray, angle: float, tilt: np.ndarray, colour: str
) -> list[Shape]:
    """A servo under an edge: its foot, its arm, and the rod up to the plate."""
    edge, arm, width = 0.47 * r.sizes["plate"], r.sizes["arm"], 0.011
    hub = out * (edge - arm) - 0.2 * big * UP
    tip = hub + arm * (np.cos(angle) * out - np.sin(angle) * UP)
    foot, top = hub - 0.11 * big * UP, tilt @ (out * edge)
    lever = see(np.stack([hub, tip]))
    return [
        *_rod(see(np.stack([foot, hub])), 2.6 * width, DARK_METAL, METAL),
        Line(see(np.stack([tip, top])), 0.6 * width, DARK_METAL),
        Line(lever, width, colour),
        _disc(lever[0], 0.95 * width, colour),
        _disc(lever[0], 0.4 * width, "#ffffff"),
    ]


def _board(board: Callable[[np.ndarray], Points], half: float, big: float) -> list[Shape]:
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * half
    below = 0.022 * big * UP
    cross = np.array([[-half, 0, 0], [half, 0, 0]])
    lines = [cross + np.array([0, i * half / 4, 0]) for i in range(-3, 4)]
    lines += [line[:, [1, 0, 2]] for line in lines]
    rings = [_ring(0 * UP, radius * big) for radius in (0.035, 0.085)]
    return [
        Area(board(np.concatenate([corners[:2], corners[1::-1] - below])), DARK_METAL),
        Area(board(np.concatenate([corners[1:3], corners[2:0:-1] - below])), METAL),
        Area(board(corners), BOARD),
        *(Line(board(line), 0.0012, GRID) for line in lines),
        *(Line(board(ring), 0.0018, TARGET) for ring in rings),
    ]


def _ball(
    see: Camera, board: Callable[[np.ndarray], Points], tilt: np.ndarray, touch: np.ndarray, radius: float
) -> list[Shape]:
    shadow = _ring(touch - radius * np.array([0.35, 0.2, 0]), radius)
    centre = (tilt @ (touch + radius * UP))[None]
    spot, size = see(centre)[0], radius * float(see.zoom(centre)[0])
    light = np.array([-0.3, 0.35]) * size
    return [
        Area(board(shadow), SHADOW),
        _disc(spot, size, MOVING_DARK),
        _disc(spot + 0.12 * light, 0.93 * size, MOVING),
        _disc(spot + light, 0.38 * size, MOVING_LIGHT),
    ]


def _rail(r: Recording, largest: dict[str, float], frame: int) -> list[Shape]:
    del largest
    half, pole = r.sizes["rail"] / 2, r.sizes["pole"]
    x, alpha = r.tracks["x"][_past(frame)], r.tracks["alpha"][_past(frame)]
    tips = np.stack([x + pole * np.sin(alpha), -pole * np.cos(alpha)], axis=1)
    pivot = np.array([float(x[-1]), 0.0])
    return [
        *_track(half),
        Line(np.array([[0, -0.02], [0, pole]]), 0.002, GRID),
        Line(_ring(np.array([0, pole, 0]), 0.012)[:, :2], 0.0025, TARGET),
        *_trail(tips, 0.008),
        *_cart(pivot),
        *_rod(np.stack([pivot, tips[-1]]), 0.0125, MOVING, MOVING_LIGHT),
        _disc(tips[-1], 0.009, MOVING_DARK),
        _disc(pivot, 0.012, DARK_METAL),
        _disc(pivot, 0.005, LIGHT_METAL),
    ]


def _track(half: float) -> list[Shape]:
    """The rail, its two ends, and the last 5 cm of each, which the cart must not reach."""
    ticks = np.arange(-np.floor(half / 0.05), np.floor(half / 0.05) + 1) * 0.05
    ends = [np.array([[side * half, 0.012], [side * half, -0.075]]) for side in (-1, 1)]
    marks = [np.array([[side * (half - 0.05), -0.018], [side * (half - 0.05), -0.05]]) for side in (-1, 1)]
    return [
        *(Line(np.array([[t, -0.043], [t, -0.058]]), 0.0018, GRID) for t in ticks),
        *_rod(np.array([[-half, -0.034], [half, -0.034]]), 0.014, DARK_METAL, LIGHT_METAL),
        *(Line(end, 0.02, DARK_METAL) for end in ends),
        *(Line(mark, 0.004, FAILURE) for mark in marks),
    ]


def _cart(pivot: np.ndarray) -> list[Shape]:
    body = np.array([[-0.046, 0.0], [0.046, 0.0]])
    wheels = [pivot + np.array([side * 0.033, -0.018]) for side in (-1, 1)]
    return [
        *(_disc(wheel, 0.011, DARK_METAL) for wheel in wheels),
        *(_disc(wheel, 0.006, LIGHT_METAL) for wheel in wheels),
        Line(pivot + body, 0.036, FIRST),
        Line(pivot + body + np.array([0, 0.012]), 0.012, pale(FIRST, 0.25)),
    ]


def _rotary(r: Recording, largest: dict[str, float], frame: int) -> list[Shape]:
    reach, tall = largest["arm"], largest["pole"]
    see = Camera(0.95, 0.36, 5 * tall, (0.0, 0.0, -0.13 * tall))
    joints, tips = _joints_and_tips(r, _past(frame))
    elbow, end = joints[-1], tips[-1]
    parts = [
        (-0.6 * tall * UP, _motor(see, 0.5 * reach, -1.22 * tall, -0.15 * tall)),
        (elbow / 2, _arm(see(np.stack([0 * elbow, elbow])))),
        ((elbow + end) / 2, [*_trail(see(tips), 0.007), *_pendulum(see(np.stack([elbow, end])))]),
    ]
    parts.sort(key=lambda part: float(see.zoom(part[0][None])[0]))  # far ones look smaller
    above_base = float(np.hypot(end[0], end[1])) < 0.9 * reach
    shadow = _ring(np.array([end[0], end[1], -1.22 * tall]), 0.12 * reach if above_base else 0.0)
    return [
        Area(see(_ring(-1.26 * tall * UP, 1.02 * reach)), DARK_METAL),
        Area(see(_ring(-1.22 * tall * UP, 1.02 * reach)), FLOOR),
        Area(see(shadow), pale(SHADOW, 0.3)),
        Line(see(_goal(elbow, r.sizes["pole"], 0.07 * tall)), 0.0016, TARGET),
        *(shape for _, drawn in parts for shape in drawn),
    ]


def _goal(elbow: np.ndarray, length: float, radius: float) -> Solid:
    """A ring about the place of the upright pendulum's end, in the plane in which it swings."""
    a = np.linspace(0, 2 * np.pi, 48)[:, None]
    across = np.array([-elbow[1], elbow[0], 0]) / np.hypot(elbow[0], elbow[1])
    return elbow + length * UP + radius * (np.cos(a) * across + np.sin(a) * UP)


def _arm(ends: Points) -> list[Shape]:
    hub = [_disc(ends[0], 0.01, DARK_METAL), _disc(ends[0], 0.0044, LIGHT_METAL)]
    return [*_rod(ends, 0.011, FIRST, pale(FIRST, 0.45)), *hub]


def _pendulum(ends: Points) -> list[Shape]:
    joint = [_disc(ends[0], 0.008, DARK_METAL), _disc(ends[0], 0.0035, LIGHT_METAL)]
    return [*_rod(ends, 0.0085, MOVING, MOVING_LIGHT), _disc(ends[1], 0.0072, MOVING_DARK), *joint]


def _joints_and_tips(r: Recording, when: slice) -> tuple[Solid, Solid]:
    """The pendulum's two ends: it swings across the arm, and α = 0 hangs down."""
    theta, alpha = r.tracks["theta"][when], r.tracks["alpha"][when]
    joints = r.sizes["arm"] * np.stack([np.cos(theta), np.sin(theta), 0 * theta], axis=1)
    across = np.stack([-np.sin(theta) * np.sin(alpha), np.cos(theta) * np.sin(alpha), -np.cos(alpha)], axis=1)
    return joints, joints + r.sizes["pole"] * across


def _motor(see: Camera, half: float, floor: float, top: float) -> list[Shape]:
    """The motor's cube on its foot."""
    bottom = top - 2 * half
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)
    return [
        *_sides(see, 0.55 * half * square, floor, bottom, (DARK_METAL, DARK_METAL)),
        *_sides(see, half * square, bottom, top, (pale(DARK_METAL, 0.1), METAL)),
        Area(see(half * square + top * UP), LIGHT_METAL),
        *_rod(see(np.array([[0, 0, top], [0, 0, 0]])), 0.013, DARK_METAL, METAL),
    ]


def _sides(see: Camera, square: Solid, bottom: float, top: float, colours: tuple[str, str]) -> list[Shape]:
    """The two sides of an upright box that the camera sees: those of negative y and of positive x."""
    low, high = square + bottom * UP, square + top * UP
    faces = [np.stack([low[i], low[i + 1], high[i + 1], high[i]]) for i in (0, 1)]
    return [Area(see(face), colour) for face, colour in zip(faces, colours, strict=True)]


def _curves(r: Recording, size: dict[str, float], frame: int) -> list[Shape]:
    """One curve per signal, one below the other, each over its own range; what is to come is pale."""
    del size
    shapes: list[Shape] = []
    across = 1.6 * r.time / max(r.duration, 1e-9)
    for i, values in enumerate(r.tracks.values()):
        low, high = float(values.min()), float(values.max())
        row = (values - low) / max(high - low, 1e-9)
        points = np.stack([across, 1 - (i + 0.9 - 0.8 * row) / len(r.tracks)], axis=1).astype(float)
        shapes += [Line(points, 0.004, pale(FIRST, 0.75)), Line(points[: frame + 1], 0.008, FIRST)]
        shapes.append(_disc(points[frame], 0.015, MOVING))
    return shapes


_PICTURES: dict[Scene, Callable[[Recording, dict[str, float], int], list[Shape]]] = {
    "plate": _plate,
    "rail": _rail,
    "rotary": _rotary,
    "curves": _curves,
}
