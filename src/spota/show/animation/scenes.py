"""The scenes, described once for every way to draw them: a recording → its picture."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from spota.show.animation.picture import (
    Part,
    Picture,
    Shape,
    area,
    arrow,
    ball,
    curve,
    disc,
    hub,
    line,
    photographs,
    ring,
    rod,
    shadow,
    text,
    trail,
)  # fmt: skip
from spota.show.animation.recording import Recording, Scene

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
DARK, METAL, LIGHT = "metal-dark", "metal", "metal-light"


def picture(recording: Recording, recordings: Sequence[Recording]) -> Picture:
    """What to draw of a recording; all recordings of one scene share one scale."""
    return _SCENES[recording.scene](recording, [r for r in recordings if r.scene == recording.scene])


def _largest(kin: Sequence[Recording], size: str) -> float:
    return max(r.sizes[size] for r in kin)


def _effort(r: Recording) -> np.ndarray:
    """The first command as a share of the largest; nothing acts at the end."""
    return np.append(r.commands[:-1, 0] / r.signals[0].high, 0.0)


def _box(half: float, bottom: float, top: float, colours: tuple) -> list[Shape]:
    """The sides of an upright box that the camera sees, those of negative y and of positive x, from an azimuth ≈ 1."""
    corners = half * SQUARE
    sides = [[(*a[:2], bottom), (*b[:2], bottom), (*b[:2], top), (*a[:2], top)] for a, b in pairwise(corners[:3])]
    return [area(side, colour) for side, colour in zip(sides, colours, strict=True)]


def _base(radius: float, floor: float, thick: float, wide: float) -> list[Shape]:
    """A round foot on the ground, and its shadow."""
    return [
        shadow((0, 0, 0), floor - thick, wide, 0.42),
        area(ring((0, 0, floor - thick), radius), DARK),
        area(ring((0, 0, floor), radius), "floor"),
        line(ring((0, 0, floor), radius), 0.001, METAL),
    ]


# ---- the plate and its ball --------------------------------------------------------------------------------------


def _plate(r: Recording, kin: Sequence[Recording]) -> Picture:
    big, half, radius = _largest(kin, "plate"), r.sizes["plate"] / 2, r.sizes["ball"]
    edge, level, floor, thick = 0.94 * half, -0.2 * big, -0.31 * big, 0.022 * big
    board = [("turn", Y, "tilt_x", 1), ("turn", X, "tilt_y", -1)]
    rolling = [*board, ("slide", X, "x"), ("slide", Y, "y")]
    hubs = [(edge - r.sizes["arm"], 0, level), (0, r.sizes["arm"] - edge, level)]
    bodies = {
        "board": board,
        "first": [("move", hubs[0]), ("turn", Y, "servo_x", 1)],
        "second": [("move", hubs[1]), ("turn", X, "servo_y", -1)],
        "touch": rolling,
        "ball": [*rolling, ("move", (0, 0, radius)), ("spin", ("spin_0", "spin_1", "spin_2", "spin_3"))],
    }
    shapes = [
        *_base(0.57 * big, floor, thick, 0.74 * big),
        shadow((0, 0, 0), floor, 0.56 * big, 0.25),
        rod([(0, 0, floor), (0, 0, -thick)], 0.02, DARK, LIGHT),
        *_servo("first", hubs[0], floor, (r.sizes["arm"], 0, 0), (edge, 0, -thick)),
        *_servo("second", hubs[1], floor, (0, -r.sizes["arm"], 0), (0, -edge, -thick)),
        *_board(half, big, thick),
        trail((0, 0, 0), 0.012 * big, "touch"),
        *(
            area(ring((-0.35 * radius, -0.2 * radius, 0), grow * radius, n=32), "shadow", "touch", alpha=alpha)
            for grow, alpha in ((1.15, 0.12), (0.9, 0.2), (0.6, 0.25))
        ),
        ball((0, 0, 0), radius, "ball"),
    ]
    extent = -0.8 * big, 0.8 * big, -0.58 * big, 0.62 * big
    tracks = {**r.tracks, **_rolled(r.tracks["x"], r.tracks["y"], radius)}
    return Picture(0.6, 0.56, 3.4 * big, (0, 0, -0.11 * big), extent, [Part(shapes)], bodies, tracks, r.interval)


def _servo(name: str, foot: tuple, floor: float, tip: tuple, edge: tuple) -> list[Shape]:
    """A servo under an edge: its foot, its arm, and the rod up to the plate."""
    width = 0.011
    return [
        rod([(*foot[:2], floor), foot], 2.6 * width, DARK, METAL),
        rod([tip, edge], 0.55 * width, DARK, LIGHT, on=name, to="board"),
        line([(0, 0, 0), tip], width, name, name),
        disc((0, 0, 0), 0.95 * width, name, name),
        disc((0, 0, 0), 0.4 * width, "surface", name),
        disc(tip, 0.45 * width, LIGHT, name),
    ]


def _board(half: float, big: float, thick: float) -> list[Shape]:
    corners = (half * SQUARE).tolist()
    sides = [
        [a, b, [*b[:2], -thick], [*a[:2], -thick]] for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
    ]
    grid = [[(i * half / 4, -half, 0), (i * half / 4, half, 0)] for i in range(-3, 4)]
    grid += [[(y, x, z) for x, y, z in one] for one in grid]
    return [
        *(area(side, METAL if i else DARK, "board") for i, side in enumerate(sides)),
        area(corners, "board", "board", to=("board", "board-shade", 0.3)),
        *(line(one, 0.0012, "grid", "board") for one in grid),
        line([*corners, corners[0]], 0.0012, LIGHT, "board"),
        *(line(ring((0, 0, 0), share * big), 0.0018, "target", "board") for share in (0.035, 0.085)),
        text((0.88 * half, 0.07 * half, 0), "x", "first", "board"),
        text((0.07 * half, -0.88 * half, 0), "y", "second", "board"),
    ]


def _rolled(x: np.ndarray, y: np.ndarray, radius: float) -> dict[str, np.ndarray]:
    """The orientation of a ball that rolls along a path, as the tracks of a quaternion."""
    found = [np.array([np.cos(0.35), 0.6 * np.sin(0.35), 0.8 * np.sin(0.35), 0.0])]
    for dx, dy in zip(np.diff(x.astype(float)), np.diff(y.astype(float)), strict=True):
        way = max(float(np.hypot(dx, dy)), 1e-12)
        c, s = np.cos(way / radius / 2), np.sin(way / radius / 2) / way
        w, a, b, d = found[-1]
        u, v = -dy * s, dx * s  # the axis is level and lies across the way
        found.append(
            np.array([c * w - u * a - v * b, c * a + u * w + v * d, c * b + v * w - u * d, c * d + u * b - v * a])
        )
    return {f"spin_{i}": track for i, track in enumerate(np.stack(found, axis=1))}


# ---- the cart on its rail ----------------------------------------------------------------------------------------


def _rail(r: Recording, kin: Sequence[Recording]) -> Picture:
    half, pole = r.sizes["rail"] / 2, r.sizes["pole"]
    cart, spoke = [("slide", X, "x")], 0.011
    bodies = {"cart": cart, "pole": [*cart, ("turn", Y, "alpha", -1)]}
    for side, name in ((-1, "left"), (1, "right")):
        bodies[name] = [*cart, ("move", (0.033 * side, 0, -0.018)), ("turn", Y, "x", 1 / spoke)]
    shapes = [
        *_track(half),
        line([(0, 0, -0.02), (0, 0, 1.12 * pole)], 0.0018, "grid", dashed=True),
        line(ring((0, 0, pole), 0.012, "xz", 32), 0.0025, "target"),
        trail((0, 0, -pole), 0.008, "pole"),
        *(shape for name in ("left", "right") for shape in _wheel(name, spoke)),
        *_cart(),
        arrow((0, 0, 0.005), 0.067, 0.09, "push", "cart"),
        rod([(0, 0, 0), (0, 0, -pole)], 0.0125, "moving", "moving-light", "pole"),
        disc((0, 0, -pole), 0.009, "moving-dark", "pole"),
        *hub((0, 0, 0), 0.012, "cart"),
    ]
    tall, wide = _largest(kin, "pole"), _largest(kin, "rail") / 2 + 0.03
    hanging = max(float(np.cos(one.tracks["alpha"]).max()) for one in kin)
    extent = -wide, wide, -max(0.105, tall * hanging + 0.03), tall + 0.04
    tracks = {**r.tracks, "push": _effort(r)}
    return Picture(0.0, 0.0, 10.0, (0, 0, 0), extent, [Part(shapes)], bodies, tracks, r.interval)


def _track(half: float) -> list[Shape]:
    """The rail, its two ends, and the last 5 cm of each, which the cart must not reach."""
    marks = range(-int(half / 0.05), int(half / 0.05) + 1)
    last = [(side * half, side * (half - 0.05)) for side in (-1, 1)]
    return [
        area([(-half, 0, -0.075), (half, 0, -0.075), (half, 0, -0.085), (-half, 0, -0.085)], "shadow", alpha=0.1),
        *(line([(0.05 * i, 0, -0.043), (0.05 * i, 0, -0.058)], 0.0018, "grid") for i in marks),
        rod([(-half, 0, -0.034), (half, 0, -0.034)], 0.014, DARK, LIGHT),
        *(line([(end, 0, -0.034), (begin, 0, -0.034)], 0.004, "failure") for end, begin in last),
        *(line([(end, 0, 0.012), (end, 0, -0.075)], 0.02, DARK) for end, _ in last),
        *(line([(begin, 0, -0.018), (begin, 0, -0.05)], 0.004, "failure") for _, begin in last),
    ]


def _wheel(name: str, radius: float) -> list[Shape]:
    spoke = line([(0, 0, 0), (0.8 * radius, 0, 0)], 0.0026, DARK, name)
    return [disc((0, 0, 0), radius, DARK, name), disc((0, 0, 0), 0.55 * radius, LIGHT, name), spoke]


def _cart() -> list[Shape]:
    """A body with round corners."""
    corners = [(-0.046, 0, -0.008), (0.046, 0, -0.008), (0.046, 0, 0.018), (-0.046, 0, 0.018)]
    lit = ("first", "#ffffff", 0.25)
    return [
        area(corners, "first", "cart"),
        line([*corners, corners[0]], 0.018, "first", "cart"),
        line([corners[3], corners[2]], 0.01, lit, "cart"),
    ]


# ---- the rotary arm and its pendulum -----------------------------------------------------------------------------


def _rotary(r: Recording, kin: Sequence[Recording]) -> Picture:
    reach, tall, arm, pole = _largest(kin, "arm"), _largest(kin, "pole"), r.sizes["arm"], r.sizes["pole"]
    low, turned = -1.22 * tall, [("turn", Z, "theta", 1)]
    bodies = {"arm": turned, "pendulum": [*turned, ("move", (arm, 0, 0)), ("turn", X, "alpha", 1)]}
    ground = [
        *_base(1.02 * reach, low, 0.04 * tall, 1.35 * reach),
        shadow((0, 0, 0), low, 0.75 * reach, 0.4),
        shadow((0, 0, -pole), low, 0.28 * reach, 0.3, "pendulum", within=0.9 * reach),
        line(ring((arm, 0, pole), 0.07 * tall, "yz"), 0.0016, "target", "arm"),
    ]
    upper = [
        rod([(0, 0, 0), (arm, 0, 0)], 0.011, "first", ("first", "#ffffff", 0.45), "arm"),
        *hub((0, 0, 0), 0.0105),
    ]
    pendulum = [
        trail((0, 0, -pole), 0.007, "pendulum"),
        rod([(0, 0, 0), (0, 0, -pole)], 0.0085, "moving", "moving-light", "pendulum"),
        disc((0, 0, -pole), 0.0072, "moving-dark", "pendulum"),
        *hub((0, 0, 0), 0.008, "pendulum"),
    ]
    parts = [
        Part(ground),
        Part(_motor(0.5 * reach, low, -0.15 * tall), ("", (0, 0, low / 2))),
        Part(upper, ("arm", (arm / 2, 0, 0))),
        Part(pendulum, ("pendulum", (0, 0, -pole / 2))),
    ]
    extent = -reach - tall, reach + tall, -1.4 * tall, 1.4 * tall
    tracks = {**r.tracks, "power": np.abs(_effort(r))}
    return Picture(0.95, 0.36, 5 * tall, (0, 0, -0.13 * tall), extent, parts, bodies, tracks, r.interval)


def _motor(half: float, floor: float, top: float) -> list[Shape]:
    """The motor's cube on its foot; a light on each side glows with the voltage."""
    bottom, share = top - 2 * half, 0.52 * half
    lit = top - 0.48 * half
    lights = [[(-share, -half, lit), (share, -half, lit)], [(half, -share, lit), (half, share, lit)]]
    return [
        *_box(0.55 * half, floor, bottom, (DARK, DARK)),
        *_box(half, bottom, top, ((DARK, METAL, 0.25), (DARK, METAL, 0.75))),
        *(line(one, 0.07 * half, "first", glow="power") for one in lights),
        area([(half * x, half * y, top) for x, y, _ in SQUARE.tolist()], LIGHT),
        line(ring((0, 0, top), 0.62 * half), 0.001, METAL),
        rod([(0, 0, top), (0, 0, 0)], 0.3 * half, DARK, METAL),
    ]


# ---- what somebody else's renderer drew --------------------------------------------------------------------------


def _film(r: Recording, kin: Sequence[Recording]) -> Picture:
    """Its pictures, as wide as they are."""
    del kin
    if r.film is None:
        raise ValueError(f"The recording of {r.platform} has no pictures; its scene is 'curves', not 'film'.")
    wide = r.film.width / r.film.height
    shape = photographs([(0, 0, 0), (wide, 0, 1)], r.film.frames, r.film.interval)
    extent, tracks = (0.0, wide, 0.0, 1.0), {"time": r.time}
    return Picture(0.0, 0.0, 10.0, (0, 0, 0), extent, [Part([shape])], {}, tracks, r.interval)


# ---- signals of a machine that nobody can draw -------------------------------------------------------------------


def _curves(r: Recording, kin: Sequence[Recording]) -> Picture:
    """One curve per signal, one below the other, each over the range that it has in any of the recordings."""
    across = 1.6 * r.time / max(*(one.duration for one in kin), 1e-9)
    shapes = []
    for i, (name, values) in enumerate(r.tracks.items()):
        all_values = np.concatenate([one.tracks[name] for one in kin if name in one.tracks])
        low, span = float(all_values.min()), max(float(np.ptp(all_values)), 1e-9)
        height = 1 - (i + 0.92 - 0.78 * (values - low) / span) / len(r.tracks)
        shapes.append(curve(np.stack([across, 0 * across, height], axis=1).tolist(), 0.006))
        shapes.append(text((0, 0, 1 - i / len(r.tracks)), name, "quiet", left=True))
    return Picture(0.0, 0.0, 10.0, (0, 0, 0), (-0.05, 1.65, -0.02, 1.04), [Part(shapes)], {}, r.tracks, r.interval)


_SCENES: dict[Scene, Callable[[Recording, Sequence[Recording]], Picture]] = {
    "plate": _plate,
    "rail": _rail,
    "rotary": _rotary,
    "film": _film,
    "curves": _curves,
}
