"""Arrays → figures, in colours that people with any colour vision can tell apart (Okabe, Ito 2008)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spota.studies import METHODS, STATED, Coverage, Example

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#595959"
LINES = {
    "basic": ("-", "o"),
    "percentile": ("--", "s"),
    "bca": ("-.", "^"),
    "studentized": (":", "D"),
    "student_t": ("-", "x"),
}


def illustrative_example(example: Example) -> Figure:
    """fig_ill_exmpl_Jn and fig_ill_exmpl_OG_SOB side by side: means over the seeds, shaded by one deviation."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    returns, gaps = figure.subplots(1, 2)
    _band(returns, example.n, example.best, BLUE, r"$\hat{J}_n(\theta^\star_n)$, best for the $n$ domains")
    _band(returns, example.n, example.optimum, GREEN, r"$\hat{J}_n(\theta^\star)$, best for all")
    _band(returns, example.n, example.candidate, ORANGE, r"$\hat{J}_n(\theta^c)$, candidate")
    gap = np.repeat(example.gap[:, None], example.n.size, axis=1)
    _band(gaps, example.n, example.estimated_gap, ORANGE, r"$\hat{G}_n(\theta^c)$, estimated gap")
    _band(gaps, example.n, gap, GREEN, r"$G(\theta^c)$, true gap")
    gaps.plot(example.n, example.exact_bias, color=GREY, ls="--", label="simulation optimization bias, exact")
    gaps.set_ylim(-1, 25)
    for axes, what in ((returns, "mean return [m]"), (gaps, "height lost [m]")):
        axes.set(xscale="log", xlim=(1, example.n[-1]), xlabel="number of domains $n$", ylabel=what)
        axes.set_xticks(STATED, [str(n) for n in STATED])
        axes.minorticks_off()
        _tidy(axes)
    return figure


def coverage(rows: Sequence[Coverage], n_G: int = 20) -> Figure:
    """How often each interval is at least the mean that it estimates, over n_r, on each problem with n_G references."""
    problems = list(dict.fromkeys((r.case.problem, r.case.correlation or 0.0) for r in rows if r.case.n_r > 1))
    figure = Figure(figsize=(3.2 * len(problems), 4.2), layout="constrained")
    panels = figure.subplots(1, len(problems), sharey=True, squeeze=False)[0]
    for axes, (problem, correlation) in zip(panels, problems, strict=True):
        ours = [r for r in rows if r.case.problem == problem and r.case.n_G == n_G]
        ours = [r for r in ours if r.case.n_r == 1 or (r.case.correlation or 0.0) == correlation]
        _coverage_panel(axes, ours)
        axes.set_title(f"{problem}, correlation {correlation:g}" if problem == "exponential" else problem, fontsize=10)
    panels[0].set_ylabel("covers the mean gap [%]")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8, frameon=False
    )
    return figure


def save(figure: Figure, path: Path) -> list[Path]:
    """Write PNG and PDF; `path` has no suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(".png"), path.with_suffix(".pdf")]
    figure.savefig(written[0], dpi=150)
    figure.savefig(written[1], metadata={"CreationDate": None})
    return written


def _coverage_panel(axes: Axes, rows: Sequence[Coverage]) -> None:
    axes.axhline(95, color=GREY, lw=1)
    n_r = [r.case.n_r for r in rows]
    for method in METHODS:
        interval, unit = method.rsplit("_", 1)
        line, marker = LINES[interval]
        color = BLUE if unit == "reference" else ORANGE
        values = [r.covers_mean[method] for r in rows]
        axes.plot(n_r, values, ls=line, marker=marker, ms=4, color=color, label=f"{interval}, {unit}")
    axes.set(xscale="log", xlabel="domains a reference, $n_r$")
    axes.set_xticks(n_r, [str(n) for n in n_r])
    axes.minorticks_off()
    axes.grid(color="0.92")


def _band(axes: Axes, x: np.ndarray, values: np.ndarray, color: str, label: str) -> None:
    mean, std = values.mean(axis=0), values.std(axis=0)
    axes.plot(x, mean, color=color, label=label)
    axes.fill_between(x, mean - std, mean + std, color=color, alpha=0.15, lw=0)


def _tidy(axes: Axes) -> None:
    axes.grid(color="0.92")
    axes.legend(fontsize=8, frameon=False)
