"""What every plot is made of: points, lines and bars as plotly reads them.

Colours are names such as "@blue" or "@blue/0.5" (half transparent): the page knows its theme, and replaces them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Trace = dict[str, Any]
DIGITS = 5


@dataclass(frozen=True)
class Plot:
    """Traces and layout for plotly, and what someone reads who cannot see it."""

    traces: list[Trace]
    layout: dict[str, Any]
    alt: str
    height: int = 340

    def to_dict(self) -> dict[str, Any]:
        """For the page's script."""
        return {"data": self.traces, "layout": self.layout}


def points(x: Any, y: Any, name: str, colour: str, symbol: Any = "circle", size: Any = 8) -> Trace:
    """Markers; `symbol` and `size` may be lists with one entry a point."""
    marker = {"color": colour, "symbol": symbol, "size": size}
    return {"type": "scatter", "mode": "markers", "x": short(x), "y": short(y), "marker": marker, **_named(name)}


def line(x: Any, y: Any, name: str, colour: str, dash: str = "solid", width: float = 2.0) -> Trace:
    """A line through the points."""
    look = {"color": colour, "dash": dash, "width": width}
    return {"type": "scatter", "mode": "lines", "x": short(x), "y": short(y), "line": look, **_named(name)}


def dotted_line(x: Any, y: Any, name: str, colour: str, symbol: str = "circle", size: int = 8) -> Trace:
    """A line with a marker at every point."""
    return {**line(x, y, name, colour), **points(x, y, name, colour, symbol, size), "mode": "lines+markers"}


def band(x: Any, low: Any, high: Any, colour: str) -> list[Trace]:
    """A shade between two curves."""
    edge: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False, "line": {"width": 0}}
    below, above = ({**edge, "x": short(x), "y": short(y)} for y in (low, high))
    return [below, {**above, "fill": "tonexty", "fillcolor": colour}]


def short(values: Sequence[Any] | np.ndarray) -> list[Any]:
    """Five significant digits: finer than any pixel. Text stays as it is; what is not finite becomes null."""
    return [_short(value.item() if isinstance(value, np.generic) else value) for value in values]


def _short(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None


def _named(name: str) -> Trace:
    return {"name": name, "hovertemplate": f"{name}: %{{y:.4g}}<extra></extra>"}
