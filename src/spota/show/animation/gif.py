"""Recordings → one GIF, side by side, without a browser."""

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from spota.files.atomic import write_atomically
from spota.show.animation.drawing import COLOURS, Area, Drawing, Line, Mark, Photograph, pale
from spota.show.animation.film import decoded
from spota.show.animation.recording import Recording, check_some
from spota.show.animation.scenes import picture

FRAMES_PER_SECOND = 25
HOLD = 1.2
"""How long the end stands still before the next round [s]."""
SIZES = {1: 480, 2: 400}
"""Width of one picture [px] by how many there are; three and more share about 1000 px."""
FINER = 2  # drawn this many times larger and then reduced: smooth edges
HEADER, FOOTER = 46, 30  # [px] above and below the scene
PAD = FINER * 12
LIGHT = ("surface", "floor", "board", "grid")
"""Colours of which the palette has no paler ones."""
SAMPLED = 8
"""Sheets of which a palette is made where others have drawn."""


def to_gif(recordings: Sequence[Recording], path: str | Path) -> Path:
    """Write the GIF; it repeats for ever."""
    check_some(recordings)
    shown = [(r, Drawing(picture(r, recordings))) for r in recordings]
    sheets = [_sheet(shown, time) for time in frame_times(recordings)]
    palette = _found_palette(sheets) if any(r.film for r in recordings) else _own_palette()
    images = [sheet.quantize(palette=palette, dither=Image.Dither.NONE) for sheet in sheets]
    pause = round(1000 / FRAMES_PER_SECOND)
    durations = [pause] * (len(images) - 1) + [round(1000 * HOLD)]
    how: dict[str, Any] = {"append_images": images[1:], "duration": durations, "loop": 0, "optimize": False}
    return write_atomically(Path(path), lambda file: images[0].save(file, "GIF", save_all=True, **how))


def frame_times(recordings: Sequence[Recording]) -> np.ndarray:
    """When the GIF's frames are [s]; the last one is the end of the longest recording."""
    end = max(r.duration for r in recordings)
    return np.append(np.arange(0, end - 1e-9, 1 / FRAMES_PER_SECOND), end)


def _own_palette() -> Image.Image:
    """One palette for all frames: no flicker, and what stands still costs nothing."""
    strong = [colour for name, colour in COLOURS.items() if name not in LIGHT]
    colours = [*(COLOURS[name] for name in LIGHT), *strong]
    colours += [pale(colour, share) for colour in strong for share in (0.25, 0.5, 0.75)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(b"".join(bytes.fromhex(colour[1:]) for colour in colours))
    return palette


def _found_palette(sheets: Sequence[Image.Image]) -> Image.Image:
    """Colours that nobody knows beforehand: those of some sheets."""
    some = [sheets[i] for i in np.unique(np.linspace(0, len(sheets) - 1, SAMPLED).astype(int))]
    pile = Image.new("RGB", (some[0].width, some[0].height * len(some)))
    for i, sheet in enumerate(some):
        pile.paste(sheet, (0, i * sheet.height))
    return pile.quantize(256)


Shown = tuple[Recording, Drawing]


def _sheet(shown: Sequence[Shown], time: float) -> Image.Image:
    width = SIZES.get(len(shown), max(240, 1000 // len(shown)))
    height = max(_panel_height(drawing, width) for _, drawing in shown)
    sheet = Image.new("RGB", (FINER * width * len(shown), FINER * height), "white")
    for i, (recording, drawing) in enumerate(shown):
        sheet.paste(_panel(recording, drawing, time, FINER * width, FINER * height), (i * FINER * width, 0))
    return sheet.reduce(FINER)


def _panel_height(drawing: Drawing, width: int) -> int:
    left, right, bottom, top = drawing.picture.extent
    return round(width * (top - bottom) / (right - left)) + HEADER + FOOTER


def _panel(recording: Recording, drawing: Drawing, time: float, width: int, height: int) -> Image.Image:
    """One recording at one time: caption, scene, readout."""
    image = Image.new("RGB", (width, height), "white")
    pen, now = ImageDraw.Draw(image), _frame(recording, time)
    left, right, bottom, top = drawing.picture.extent
    scale = width / (right - left)
    middle = (FINER * HEADER + height - FINER * FOOTER) / 2
    corner = np.array([width / 2 - scale * (left + right) / 2, middle + scale * (bottom + top) / 2])
    for mark in drawing.marks(now):
        _draw(image, pen, mark, corner, scale)
    _title(pen, recording, time)
    _readout(pen, recording, time, now, width, height)
    return image


def _frame(recording: Recording, time: float) -> int:
    """The last frame that is not after that time."""
    return int(np.searchsorted(recording.time, time + 1e-9, side="right")) - 1


def _draw(image: Image.Image, pen: ImageDraw.ImageDraw, mark: Mark, corner: np.ndarray, scale: float):
    points = [tuple(p) for p in (corner + scale * mark.points * [1, -1]).tolist()]
    if isinstance(mark, Area):
        pen.polygon(points, fill=mark.colour)
    elif isinstance(mark, Line):
        width = max(FINER, round(scale * mark.width))
        pen.line(points, fill=mark.colour, width=width, joint="curve")
        for end in (points[0], points[-1]):
            if width > 2 * FINER:
                pen.circle(end, width / 2 - 0.5, fill=mark.colour)
    elif isinstance(mark, Photograph):
        (left, bottom), (right, top) = ((round(x), round(y)) for x, y in points)
        image.paste(_shown(mark.frame, right - left, bottom - top), (left, top))
    else:
        pen.text(points[0], mark.words, fill=mark.colour, font=_font(11), anchor="la" if mark.left else "mm")


@lru_cache(maxsize=16)
def _shown(frame: str, width: int, height: int) -> Image.Image:
    """The same one is often shown several times in a row."""
    return decoded(frame).resize((width, height))


def _title(pen: ImageDraw.ImageDraw, recording: Recording, time: float):
    """The caption and, once it has happened, the failure."""
    pen.text((PAD, FINER * 8), recording.caption, fill=COLOURS["ink"], font=_font(14, bold=True))
    if recording.failed and time >= recording.duration - 1e-9:
        text = f"✕ failed at {recording.duration:.2f} s"
        pen.text((PAD, FINER * 27), text, fill=COLOURS["failure"], font=_font(12, bold=True))


def _readout(pen: ImageDraw.ImageDraw, recording: Recording, time: float, frame: int, width: int, height: int):
    """Time, return and voltages below the scene."""
    base, wide = height - FINER * 22, width - 2 * PAD
    pen.line([(PAD, base - FINER * 6), (PAD + wide, base - FINER * 6)], fill=COLOURS["grid"], width=FINER)
    clock, earned = f"{min(time, recording.duration):.2f} s", f"return {recording.returns[frame]:.0f}"
    texts = [(clock, COLOURS["ink"]), (earned, COLOURS["ink"]), *_voltages(recording, frame)]
    for i, (text, colour) in enumerate(texts):
        pen.text((PAD + i * wide / len(texts), base), text.replace("-", "−"), fill=colour, font=_font(11))


def _voltages(recording: Recording, frame: int) -> list[tuple[str, str]]:
    """Each command with the colour of its motor in the scene."""
    colours = (COLOURS["first"], COLOURS["second"])
    values = zip(recording.signals, recording.commands[frame], strict=True)
    texts = [f"{s.name} {value:+.1f} {s.unit if s.unit != '-' else ''}" for s, value in values]
    return [(text.rstrip(), colours[i % 2]) for i, text in enumerate(texts)]


@cache
def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """The font that matplotlib brings along: it looks the same everywhere."""
    import matplotlib  # slow to import

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)), FINER * size)
