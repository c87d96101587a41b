"""Several sweeps as the panels of one figure, with one legend."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spota.evaluate import Sweep
from spota.plots import GREY, POLICY_COLORS, POLICY_LINES

COLUMNS = 2


def sweep_panels(results: Sequence[Sweep]) -> Figure:
    """Mean return over one parameter a panel, shaded by one deviation, with nominal value and distribution marked."""
    rows = -(-len(results) // COLUMNS)
    figure = Figure(figsize=(10, 0.6 + 3.4 * rows), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes in grid[len(results) :]:
        axes.set_axis_off()
    for axes, result in zip(grid, results, strict=False):
        _panel(axes, result)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    return figure


def _panel(axes: Axes, result: Sweep) -> None:
    axis = result.axes[0]
    x, unit = axis.values, "" if axis.unit == "-" else f" [{axis.unit}]"
    axes.axvspan(max(axis.support[0], x[0]), min(axis.support[1], x[-1]), color="0.95", lw=0, label="distribution")
    axes.axvline(axis.nominal, color=GREY, lw=1, ls="--", label="nominal value")
    for name, mean, std, color, line in zip(
        result.policies, result.mean, result.std, POLICY_COLORS, POLICY_LINES, strict=False
    ):
        axes.plot(x, mean, color=color, ls=line, label=name)
        axes.fill_between(x, mean - std, mean + std, color=color, alpha=0.15, lw=0)
    axes.set(xlabel=f"{axis.meaning or axis.name}{unit}", ylabel="return")
    axes.margins(x=0.02)  # a nominal value at the end stays visible
    axes.locator_params(axis="x", nbins=6)
    axes.set_title(result.env, fontsize=10)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
