"""Figures of the paper and of our studies."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spota.certify.certificate import METHODS
from spota.experiments.example import STATED, Example
from spota.experiments.intervals import Coverage
from spota.show.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, band, tidy

LINES = {
    "basic": ("-", "o"),
    "percentile": ("--", "s"),
    "bca": ("-.", "^"),
    "studentized": (":", "D"),
    "student_t": ("-", "x"),
    "split": ("-", "*"),
}


def illustrative_example(example: Example) -> Figure:
    """fig_ill_exmpl_Jn and fig_ill_exmpl_OG_SOB side by side: means over the seeds, shaded by one deviation."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    returns, gaps = figure.subplots(1, 2)
    band(returns, example.n, example.best, BLUE, r"$\hat{J}_n(\theta^\star_n)$, best for the $n$ domains")
    band(returns, example.n, example.optimum, GREEN, r"$\hat{J}_n(\theta^\star)$, best for all")
    band(returns, example.n, example.candidate, ORANGE, r"$\hat{J}_n(\theta^c)$, candidate")
    gap = np.repeat(example.gap[:, None], example.n.size, axis=1)
    band(gaps, example.n, example.estimated_gap, ORANGE, r"$\hat{G}_n(\theta^c)$, estimated gap")
    band(gaps, example.n, gap, GREEN, r"$G(\theta^c)$, true gap")
    gaps.plot(example.n, example.exact_bias, color=GREY, ls="--", label="simulation optimization bias, exact")
    gaps.set_ylim(-1, 25)
    for axes, what in ((returns, "mean return [m]"), (gaps, "height lost [m]")):
        axes.set(xscale="log", xlim=(1, example.n[-1]), xlabel="number of domains $n$", ylabel=what)
        axes.set_xticks(STATED, [str(n) for n in STATED])
        axes.minorticks_off()
        tidy(axes)
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


def convergence(
    ucbog: Float[np.ndarray, "runs iterations"],
    median_gaps: Float[np.ndarray, "runs iterations"],
    n_c: Sequence[int],
    n_r: Sequence[int],
    threshold: float,
    env: str,
) -> Figure:
    """UCBOG, the median gap and the numbers of domains over the iterations: means, shaded by one deviation.

    Every run's UCBOG is there, too. NaN where a run had no bound.
    """
    figure = Figure(figsize=(6.4, 5), layout="constrained")
    bound, sizes = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    iterations = np.arange(1, ucbog.shape[1] + 1)
    runs = "run" if len(ucbog) == 1 else "runs"
    bound.plot(iterations, ucbog.T, color=GREY, alpha=0.6, lw=0.8)
    band(bound, iterations, np.ma.masked_invalid(ucbog), BLUE, f"mean UCBOG of {len(ucbog)} {runs}, ± 1 deviation")
    band(bound, iterations, np.ma.masked_invalid(median_gaps), GREEN, "their median gap", "-.")
    bound.axhline(threshold, color=ORANGE, ls="--", label=f"threshold {threshold:g}")
    sizes.plot(iterations, n_c, color=GREY, marker="s", ms=4, label="$n_c$, candidate")
    sizes.plot(iterations, n_r, color=PURPLE, marker="o", ms=4, label="$n_r$, each reference")
    bound.set(ylabel="return", ylim=(0, None))
    bound.set_title(env, fontsize=10)
    sizes.set(xlabel="iteration", ylabel="domains", ylim=(0, None))
    sizes.set_xticks(iterations)
    sizes.yaxis.get_major_locator().set_params(integer=True)
    tidy(bound)
    tidy(sizes)
    return figure


def _coverage_panel(axes: Axes, rows: Sequence[Coverage]) -> None:
    axes.axhline(95, color=GREY, lw=1)
    n_r = [r.case.n_r for r in rows]
    for method in METHODS:
        interval, _, unit = method.rpartition("_")
        line, marker = LINES[interval or method]
        color = {"reference": BLUE, "pooled": ORANGE}.get(unit, GREEN)
        values = [r.covers_mean[method] for r in rows]
        label = f"{interval}, {unit}" if interval else method
        axes.plot(n_r, values, ls=line, marker=marker, ms=4, color=color, label=label)
    axes.set(xscale="log", xlabel="domains per reference, $n_r$")
    axes.set_xticks(n_r, [str(n) for n in n_r])
    axes.minorticks_off()
    axes.grid(color="0.92")
