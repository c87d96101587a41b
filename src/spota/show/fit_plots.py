"""Pictures of recordings: what was recorded against what a table allows."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from spota.files.atomic import write_atomically
from spota.fit.segments import SECONDS
from spota.fit.verdict import Coverage
from spota.show.plots import BLUE, ORANGE

SHOWN = 8
"""Segments that the picture shows."""


def coverage_figure(coverage: Coverage) -> Figure:
    """Recorded positions of a few half seconds, and the band that holds 95 % of the table's machines."""
    recorded, low, high = (coverage.bands[name] for name in ("recorded", "low", "high"))
    samples, signals, n = recorded.shape
    chosen = np.linspace(0, n - 1, min(SHOWN, n)).round().astype(int)
    figure = Figure(figsize=(9, 0.8 + 2.2 * signals), layout="constrained")
    grid = figure.subplots(signals, 1, squeeze=False)[:, 0]
    for i, (axes, signal) in enumerate(zip(grid, coverage.explained, strict=True)):
        for k, segment in enumerate(chosen):
            time = SECONDS * (k + np.arange(1, samples + 1) / samples)
            first = k == 0
            axes.fill_between(
                time, low[:, i, segment], high[:, i, segment], color=BLUE, alpha=0.25, lw=0,
                label="95 % of the table's machines" if first else None,
            )  # fmt: skip
            axes.plot(time, recorded[:, i, segment], color=ORANGE, lw=1.6, label="recorded" if first else None)
        axes.set_ylabel(f"{signal.name} [{signal.unit}]")
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].legend(frameon=False, fontsize=8, loc="upper right")
    grid[0].set_title(f"{coverage.env}: {coverage.answer}", fontsize=10)
    grid[-1].set_xlabel("half seconds of the recordings, one after the other [s]")
    return figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a picture as PNG."""
    return write_atomically(path, lambda file: figure.savefig(file, format="png", dpi=140))
