"""Arrays → figures, in colours that people with any colour vision can tell apart (Okabe, Ito 2008)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from spota.analysis.evaluate import Axis, Sweep
from spota.sim.domain import DomainDistribution

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#595959"
POLICY_COLORS, POLICY_LINES = (BLUE, ORANGE, GREEN, PURPLE, GREY), ("-", "--", "-.", ":")


def sweep_figure(result: Sweep) -> Figure:
    """Mean returns over one parameter as curves, over two as maps."""
    return _curves(result) if len(result.axes) == 1 else _maps(result)


def _curves(result: Sweep) -> Figure:
    """Mean return over one parameter, shaded by one deviation, with the nominal value and the support marked."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    _sweep_panel(axes, result)
    axes.set_title(_about(result), fontsize=9)
    axes.legend(fontsize=8, frameon=False)
    return figure


def panels_of_sweeps(results: Sequence[Sweep], columns: int = 2) -> Figure:
    """Several sweeps of the same policies as the panels of one figure, with one legend, and one scale a platform."""
    rows = -(-len(results) // columns)
    figure = Figure(figsize=(5 * columns, 0.6 + 3.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(results) :]:
        axes.set_axis_off()
    firsts: dict[str, Axes] = {}
    for axes, result in zip(grid, results, strict=False):
        if firsts.setdefault(result.env, axes) is not axes:
            axes.sharey(firsts[result.env])  # so that a parameter that matters little looks like it
        _sweep_panel(axes, result)
        axes.set_title(result.env, fontsize=10)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    return figure


def _maps(result: Sweep) -> Figure:
    """Mean return over two parameters, a panel per policy on one scale; a cross marks the nominal values."""
    figure = Figure(figsize=(1.2 + 3.6 * len(result.policies), 3.8), layout="constrained")
    panels = figure.subplots(1, len(result.policies), sharey=True, squeeze=False)[0]
    meshes = [_map_panel(axes, result, k) for k, axes in enumerate(panels)]
    panels[0].set_ylabel(_quantity(result.axes[0]))
    figure.colorbar(meshes[0], ax=panels.tolist(), label="mean return")
    figure.suptitle(_about(result), fontsize=9)
    return figure


def varied(nu: DomainDistribution) -> list[str]:
    """The parameters that are random."""
    return [name for name, p in nu.items() if p.marginal.support[0] < p.marginal.support[1]]


def position(nu: DomainDistribution, name: str, values: np.ndarray) -> np.ndarray:
    """0 is the smallest value that is usually drawn, 1 the largest."""
    low, high = nu[name].marginal.usual_range
    return np.clip((values - low) / (high - low), 0, 1)


def save(figure: Figure, path: Path) -> list[Path]:
    """Write PNG and PDF; `path` has no suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(".png"), path.with_suffix(".pdf")]
    figure.savefig(written[0], dpi=150)
    figure.savefig(written[1], metadata={"CreationDate": None})
    return written


def _sweep_panel(axes: Axes, result: Sweep) -> None:
    axis = result.axes[0]
    axes.axvspan(*_visible_support(axis), color="0.95", lw=0, label="distribution")
    axes.axvline(axis.nominal, color=GREY, lw=1, ls="--", label="nominal")
    for k, name in enumerate(result.policies):
        color, line = POLICY_COLORS[k % len(POLICY_COLORS)], POLICY_LINES[k % len(POLICY_LINES)]
        band(axes, axis.values, result.returns[k].T, color, name, line)
    axes.set(xlabel=_quantity(axis), ylabel="return")
    axes.margins(x=0.02)  # a nominal value at the end stays visible
    axes.locator_params(axis="x", nbins=6)
    lines_behind(axes)


def _map_panel(axes: Axes, result: Sweep, policy: int) -> QuadMesh:
    (first, second), mean = result.axes, result.mean
    scale = {"vmin": mean.min(), "vmax": mean.max(), "cmap": "viridis", "shading": "nearest"}
    mesh = axes.pcolormesh(second.values, first.values, mean[policy], **scale)
    for color, width in (("white", 3), ("black", 1)):  # visible on any colour
        axes.plot(second.nominal, first.nominal, "x", color=color, mew=width, ms=8, clip_on=False)
    axes.set(title=result.policies[policy], xlabel=_quantity(second))
    return mesh


def _visible_support(axis: Axis) -> tuple[float, float]:
    low, high = np.clip(axis.support, axis.values[0], axis.values[-1])
    return float(low), float(high)


def _quantity(axis: Axis) -> str:
    return (axis.meaning or axis.name) + (f" [{axis.unit}]" if axis.unit != "-" else "")


def _about(result: Sweep) -> str:
    noise = "with" if result.noise else "without"
    return f"{result.env}, {result.returns.shape[-1]} rollouts per point, others {result.others}, {noise} noise"


def band(axes: Axes, x: np.ndarray, values: np.ndarray, color: str, label: str, line: str = "-") -> None:
    """The mean over the first axis, shaded by one deviation."""
    mean, std = values.mean(axis=0), values.std(axis=0)
    axes.plot(x, mean, color=color, ls=line, label=label)
    axes.fill_between(x, mean - std, mean + std, color=color, alpha=0.15, lw=0)


def tidy(axes: Axes) -> None:
    """A light grid and a legend without a frame."""
    lines_behind(axes)
    axes.legend(fontsize=8, frameon=False)


def lines_behind(axes: Axes) -> None:
    """A light grid behind everything."""
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
