"""Recordings → a fragment that any page can hold, and a page of its own: one file, no network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from spota.files.atomic import write_atomically
from spota.show.animation.picture import Picture
from spota.show.animation.recording import Recording, check_some
from spota.show.animation.scenes import picture

DIGITS = 5


def fragment(recordings: Sequence[Recording]) -> str:
    """One player for all recordings side by side, to stand anywhere in a page: styles, words, data, script."""
    check_some(recordings)
    figures = "".join(_figure(recording) for recording in recordings)
    script = f'(() => {{\n  "use strict";\n{_read("picture.js")}{_read("player.js")}}})();\n'
    return _template("player.html").substitute(
        style=_read("player.css"), script=script, figures=figures, data=_data(recordings)
    )


def page(recordings: Sequence[Recording], title: str = "") -> str:
    """A whole page with one player."""
    player = fragment(recordings)
    title = title or " · ".join(dict.fromkeys(r.platform for r in recordings))
    return _template("page.html").substitute(title=escape(title), player=player)


def to_html(recordings: Sequence[Recording], path: str | Path) -> Path:
    """Write the page."""
    text = page(recordings)
    return write_atomically(Path(path), lambda file: file.write(text.encode()))


def _read(name: str) -> str:
    return resources.files("spota.show.animation").joinpath(name).read_text(encoding="utf-8")


def _template(name: str) -> Template:
    return Template(_read(name))


def _figure(recording: Recording) -> str:
    """The words of one recording; the script adds the picture."""
    signals = "".join(f"<div><dt>{escape(s.name)}</dt><dd>–</dd></div>" for s in recording.signals)
    return _template("figure.html").substitute(
        caption=escape(recording.caption),
        outcome=escape(recording.outcome),
        state="failed" if recording.failed else "lasted",
        platform=escape(recording.platform),
        scene=recording.scene,
        signals=signals,
    )


def _data(recordings: Sequence[Recording]) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(
        [_scene(r, picture(r, recordings)) for r in recordings],
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def scene(recording: Recording) -> dict:
    """What the script needs of a recording that stands alone, as plain values."""
    return _scene(recording, picture(recording, [recording]))


def _scene(r: Recording, drawn: Picture) -> dict:
    """What the script needs of a recording; captions and outcomes are in the page already."""
    return {
        "scene": r.scene,
        "interval": round(r.interval, 9),
        "duration": round(r.duration, 9),
        "picture": _short(asdict(drawn)),
        "signals": [{"name": s.name, "unit": s.unit, "low": s.low, "high": s.high} for s in r.signals],
        "commands": _short(r.commands.T),
        "returns": _short(r.returns),
        "maxReturn": r.max_return,
        "failed": r.failed,
    }


def _short(value: Any) -> Any:
    """Every number with five significant digits: finer than any pixel, and a third of the text."""
    if isinstance(value, Mapping):
        return {name: _short(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_short(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float | np.floating) else value
