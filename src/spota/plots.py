"""Arrays → figures, in colours that people with any colour vision can tell apart (Okabe, Ito 2008)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from spota.certificate import METHODS
from spota.domain import DomainDistribution
from spota.evaluate import Axis, Sweep
from spota.gap import Gaps
from spota.sobol import Indices
from spota.studies.example import STATED, Example
from spota.studies.intervals import Coverage

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#595959"
POLICY_COLORS, POLICY_LINES = (BLUE, ORANGE, GREEN, PURPLE, GREY), ("-", "--", "-.", ":")
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


def sweep(result: Sweep) -> Figure:
    """Mean return over one parameter, shaded by one deviation, with the nominal value and the support marked."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    _sweep_panel(axes, result)
    axes.set_title(_about(result), fontsize=9)
    axes.legend(fontsize=8, frameon=False)
    return figure


def sweeps(results: Sequence[Sweep], columns: int = 2) -> Figure:
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


def sweep_map(result: Sweep) -> Figure:
    """Mean return over two parameters, a panel a policy on one scale; a cross marks the nominal values."""
    figure = Figure(figsize=(1.2 + 3.6 * len(result.policies), 3.8), layout="constrained")
    panels = figure.subplots(1, len(result.policies), sharey=True, squeeze=False)[0]
    meshes = [_map_panel(axes, result, k) for k, axes in enumerate(panels)]
    panels[0].set_ylabel(_quantity(result.axes[0]))
    figure.colorbar(meshes[0], ax=panels.tolist(), label="mean return")
    figure.suptitle(_about(result), fontsize=9)
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
    _band(bound, iterations, np.ma.masked_invalid(ucbog), BLUE, f"mean UCBOG of {len(ucbog)} {runs}, ± 1 deviation")
    _band(bound, iterations, np.ma.masked_invalid(median_gaps), GREEN, "their median gap", "-.")
    bound.axhline(threshold, color=ORANGE, ls="--", label=f"threshold {threshold:g}")
    sizes.plot(iterations, n_c, color=GREY, marker="s", ms=4, label="$n_c$, candidate")
    sizes.plot(iterations, n_r, color=PURPLE, marker="o", ms=4, label="$n_r$, each reference")
    bound.set(ylabel="return", ylim=(0, None))
    bound.set_title(env, fontsize=10)
    sizes.set(xlabel="iteration", ylabel="domains", ylim=(0, None))
    sizes.set_xticks(iterations)
    sizes.yaxis.get_major_locator().set_params(integer=True)
    _tidy(bound)
    _tidy(sizes)
    return figure


def learning_curves(
    candidate_at: Float[np.ndarray, "a"],
    candidates: Float[np.ndarray, "candidates a"],
    reference_at: Float[np.ndarray, "b"],
    references: Float[np.ndarray, "n_G b"],
) -> Figure:
    """Mean returns on their own domains: the candidates, the last one strong, and the references with their mean."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, at, curves in ((left, candidate_at, candidates), (right, reference_at, references)):
        axes.plot(at, curves.T, color=GREY, alpha=0.5, lw=0.8)
        axes.set(xlabel="updates", ylabel="mean return on own domains")
    left.plot(candidate_at, candidates[-1], color=BLUE, lw=2, label="last candidate")
    right.plot(reference_at, references.mean(axis=0), color=BLUE, lw=2, label=f"mean of {len(references)} references")
    _tidy(left)
    _tidy(right)
    return figure


def gaps(found: Gaps, ucbog: float, threshold: float) -> Figure:
    """Every gap sample, one column a reference, with what outlier rejection did, the mean and the bound."""
    raw, final, replaced, clipped = (np.asarray(a) for a in (found.raw, found.final, found.replaced, found.clipped))
    order = np.argsort(final.mean(axis=1), kind="stable")
    x = np.repeat(np.arange(1, order.size + 1), final.shape[1])
    raw, final, replaced, clipped = (a[order].ravel() for a in (raw, final, replaced, clipped))
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    parts = (
        (raw < 0, raw, GREY, "1", "negative, as measured"),
        (~replaced & ~clipped, final, BLUE, "o", "gap"),
        (replaced & ~clipped, final, PURPLE, "D", "replaced by a better reference's"),
        (clipped, final, ORANGE, "x", "clipped to zero"),
    )
    for which, y, color, marker, label in parts:
        if which.any():
            axes.scatter(x[which], y[which], color=color, marker=marker, s=24, label=label)
    axes.axhline(final.mean(), color=GREEN, label=f"mean {final.mean():.4g}")
    if np.isfinite(ucbog):
        axes.axhline(ucbog, color=BLUE, ls="--", label=f"UCBOG {ucbog:.4g}")
    axes.axhline(threshold, color=ORANGE, ls=":", label=f"threshold {threshold:.4g}")
    axes.set(xlabel="references, by their mean gap", ylabel="gap in return", xticks=[])
    _tidy(axes)
    return figure


def domains(drawn: Mapping[str, Mapping[str, np.ndarray]], nu: DomainDistribution) -> Figure:
    """Where sets of domains lie in the distribution: one line a parameter, from its smallest to its largest value."""
    names = varied(nu)
    figure = Figure(figsize=(6.4, 1 + 0.26 * len(names)), layout="constrained")
    axes = figure.subplots()
    for k, (label, group) in enumerate(drawn.items()):
        x = [position(nu, name, np.ravel(group[name])) for name in names]
        y = np.repeat(np.arange(len(names)), [values.size for values in x])
        look = {"color": POLICY_COLORS[k % len(POLICY_COLORS)], "marker": "os^Dx"[k % 5], "s": 14, "alpha": 0.7}
        axes.scatter(np.concatenate(x), y, label=label, **look)
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks([0, 0.5, 1], ["smallest", "middle", "largest"])
    axes.invert_yaxis()
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    return figure


def attribution(indices: Indices) -> Figure:
    """Shares of the variance of the return, alone and with interactions, largest first, with their intervals."""
    names = [*indices.ranking, *(n for n in indices.names if n not in indices.ranking)]
    order = [indices.names.index(name) for name in names]
    figure = Figure(figsize=(6.4, 1 + 0.32 * len(names)), layout="constrained")
    axes = figure.subplots()
    parts = ((indices.total, indices.total_interval, ORANGE, 0.2, "with interactions"),
             (indices.first, indices.first_interval, BLUE, -0.2, "alone"))  # fmt: skip
    for shares, interval, color, shift, label in parts:
        x, ends = 100 * np.maximum(shares[order], 0), 100 * np.maximum(interval[order], 0)
        reach = np.maximum([x - ends[:, 0], ends[:, 1] - x], 0)
        error = {"xerr": reach, "error_kw": {"lw": 0.8}}
        axes.barh(np.arange(len(names)) + shift, x, 0.4, color=color, label=label, **error)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="share of the variance [%]", xlim=(0, None))
    axes.invert_yaxis()
    _tidy(axes)
    return figure


def varied(nu: DomainDistribution) -> list[str]:
    """The parameters that are random."""
    return [name for name, p in nu.items() if p.marginal.support[0] < p.marginal.support[1]]


def position(nu: DomainDistribution, name: str, values: np.ndarray) -> np.ndarray:
    """0 is the smallest value that can be drawn, 1 the largest; without ends, the middle 99 % of the draws."""
    marginal = nu[name].marginal
    draws = marginal.draw(np.random.default_rng(0), 2000)
    low, high = (
        s if np.isfinite(s) else np.quantile(draws, q) for s, q in zip(marginal.support, (0.005, 0.995), strict=True)
    )
    return np.clip((values - low) / (high - low), 0, 1)


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
        interval, _, unit = method.rpartition("_")
        line, marker = LINES[interval or method]
        color = {"reference": BLUE, "pooled": ORANGE}.get(unit, GREEN)
        values = [r.covers_mean[method] for r in rows]
        label = f"{interval}, {unit}" if interval else method
        axes.plot(n_r, values, ls=line, marker=marker, ms=4, color=color, label=label)
    axes.set(xscale="log", xlabel="domains a reference, $n_r$")
    axes.set_xticks(n_r, [str(n) for n in n_r])
    axes.minorticks_off()
    axes.grid(color="0.92")


def _sweep_panel(axes: Axes, result: Sweep) -> None:
    axis = result.axes[0]
    axes.axvspan(*_visible_support(axis), color="0.95", lw=0, label="distribution")
    axes.axvline(axis.nominal, color=GREY, lw=1, ls="--", label="nominal")
    for k, name in enumerate(result.policies):
        color, line = POLICY_COLORS[k % len(POLICY_COLORS)], POLICY_LINES[k % len(POLICY_LINES)]
        _band(axes, axis.values, result.returns[k].T, color, name, line)
    axes.set(xlabel=_quantity(axis), ylabel="return")
    axes.margins(x=0.02)  # a nominal value at the end stays visible
    axes.locator_params(axis="x", nbins=6)
    _lines_behind(axes)


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
    return f"{result.env}, {result.returns.shape[-1]} rollouts a point, others {result.others}, {noise} noise"


def _band(axes: Axes, x: np.ndarray, values: np.ndarray, color: str, label: str, line: str = "-") -> None:
    mean, std = values.mean(axis=0), values.std(axis=0)
    axes.plot(x, mean, color=color, ls=line, label=label)
    axes.fill_between(x, mean - std, mean + std, color=color, alpha=0.15, lw=0)


def _tidy(axes: Axes) -> None:
    _lines_behind(axes)
    axes.legend(fontsize=8, frameon=False)


def _lines_behind(axes: Axes) -> None:
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
