"""Plots of what a run holds: the bound over the iterations, all intervals, the gaps, learning curves, returns."""

from collections.abc import Sequence

import numpy as np

from spota.certify.certificate import Certificate, Performance
from spota.show.pages.coverage import INTERVALS, UNITS
from spota.show.pages.story import GapSamples, Iteration, Learning
from spota.show.pages.traces import Plot, Trace, dotted_line, line, points, short
from spota.text import figure

BINS = 40
ALONE = {
    "mrp": ("MRP", "before outlier rejection", "@grey"),
    "split": ("split", "rare failures counted apart", "@green"),
}
"""Intervals that know no unit: label, what they are, colour."""


def iterations(certificates: Sequence[tuple[int, Certificate]]) -> Plot:
    """The bound and the mean gap over the iterations, with the threshold."""
    numbers, cs = [n for n, _ in certificates], [c for _, c in certificates]
    ends = [numbers[0] - 0.4, numbers[-1] + 0.4]
    threshold = cs[-1].threshold
    traces = [
        dotted_line(numbers, [c.ucbog for c in cs], "upper bound (UCBOG)", "@blue"),
        dotted_line(numbers, [c.mean_gap for c in cs], "mean gap", "@green", "square"),
        line(ends, [threshold] * 2, f"threshold {figure(threshold)}", "@orange", "dash"),
    ]
    labels = [f"{n}<br>n_c {c.n_c or '–'}<br>n_r {c.n_r}" for n, c in certificates]
    layout = {
        "xaxis": {"title": "iteration", "tickvals": numbers, "ticktext": labels, "range": ends, "zeroline": False},
        "yaxis": {"title": "return", "rangemode": "tozero"},
    }
    bounds = ", ".join(f"{n}: {figure(c.ucbog)}" for n, c in certificates)
    return Plot(traces, layout, f"Upper bound on the loss over the iterations ({bounds}), and the threshold.")


def intervals(c: Certificate) -> Plot:
    """All intervals side by side, effort margin included; a ring marks the one that decided."""
    alone = {name: look for name, look in ALONE.items() if name in c.claims}
    rows = [*INTERVALS, *alone]
    looks = {"reference": ("@blue", "circle"), "pooled": ("@purple", "diamond")}
    traces = []
    for unit, (colour, symbol) in looks.items():
        bounds = [c.claims[f"{kind}_{unit}"] for kind in INTERVALS]
        traces.append(points(bounds, range(len(INTERVALS)), f"over {UNITS[unit]}", colour, symbol, 10))
    for name, (_, about, colour) in alone.items():
        traces.append(points([c.claims[name]], [rows.index(name)], about, colour, "square", 9))
    kind, _, unit = (c.method, "", "") if c.method in alone else c.method.rpartition("_")
    colour = looks[unit][0] if unit else alone[kind][2]
    traces.append(points([c.ucbog], [rows.index(kind)], "decided", colour, "circle-open", 20))
    ends, labels = [-0.6, len(rows) - 0.4], [*INTERVALS.values(), *(label for label, _, _ in alone.values())]
    shown = [c.threshold, 0.0, *(bound for bound in c.claims.values() if np.isfinite(bound))]
    for trace in traces:
        trace["hovertemplate"] = trace["name"] + ": %{x:.4g}<extra></extra>"
    traces.append(line([c.threshold] * 2, ends, f"threshold {figure(c.threshold)}", "@orange", "dash"))
    layout = {
        "xaxis": {"title": "upper bound on the mean loss", "range": [1.07 * min(shown), 1.07 * max(shown)]},
        "yaxis": {"tickvals": list(range(len(rows))), "ticktext": labels, "range": ends[::-1], "zeroline": False},
    }
    alt = "Upper bounds by all intervals: " + ", ".join(f"{n} {figure(b)}" for n, b in c.claims.items())
    return Plot(traces, layout, alt, 380)


def gaps(g: GapSamples, c: Certificate | None) -> Plot:
    """Every gap sample: as it was measured, what outlier rejection made of it, mean and bound."""
    order = np.argsort(g.final.mean(axis=1), kind="stable")
    x = np.repeat(np.arange(1, order.size + 1), g.final.shape[1])
    raw, final, replaced, clipped = (a[order].ravel() for a in (g.raw, g.final, g.replaced, g.clipped))
    kept, swapped, lost = ~replaced & ~clipped, replaced & ~clipped, raw < 0
    parts = [
        points(x[lost], raw[lost], "negative, as measured", "@grey", "circle-open"),
        points(x[kept], final[kept], "gap", "@blue"),
        points(x[swapped], final[swapped], "replaced by a better reference's", "@purple", "diamond"),
        points(x[clipped], final[clipped], "set to zero", "@orange", "x"),
    ]
    ends, mean = [0.4, order.size + 0.6], float(final.mean())
    lines = [line(ends, [mean] * 2, f"mean {figure(mean)}", "@green")]
    if c is not None and np.isfinite(c.ucbog):
        lines.append(line(ends, [c.ucbog] * 2, f"upper bound {figure(c.ucbog)}", "@blue", "dash"))
    layout = {
        "xaxis": {"title": "references, by their mean gap", "range": ends, "zeroline": False, "showticklabels": False},
        "yaxis": {"title": "gap in return"},
    }
    low, high = figure(float(final.min())), figure(float(final.max()))
    alt = f"{final.size} gaps of {order.size} references, from {low} to {high}, mean {figure(mean)}."
    return Plot([*(part for part in parts if part["x"]), *lines], layout, alt)


def candidates(iterations: Sequence[Iteration], kept: int | None) -> Plot:
    """Learning curves of the candidates, one an iteration."""
    traces = []
    for it in iterations:
        if it.candidate is not None:
            own, n = it.number == kept, next(iter(it.candidate.domains.values())).size
            name = f"iteration {it.number}, {n} domains{' (kept)' * own}"
            look = ("@blue", "solid", 3.0) if own else ("@grey", "solid", 1.5)
            traces.append(line(it.candidate.evaluated_at, it.candidate.returns[0], name, *look))
    return _learning(traces, "Learning curves of the candidates, one line per iteration.")


def references(learned: Learning) -> Plot:
    """Learning curves of all references, and their mean."""
    thin = [line(learned.evaluated_at, row, "one reference", "@grey/0.5", width=1.0) for row in learned.returns]
    for trace in thin[1:]:
        trace["showlegend"] = False
    mean = line(learned.evaluated_at, learned.returns.mean(axis=0), "mean of all references", "@blue", width=3.0)
    return _learning([*thin, mean], f"Learning curves of {len(thin)} references, and their mean.")


def training(learned: Learning) -> Plot:
    """The learning curve of one training, or of the part of it that is done."""
    name = "mean return on its own domains" + (" so far" if not learned.finished else "")
    return _learning([line(learned.evaluated_at, learned.returns.mean(axis=0), name, "@blue", width=2.5)], name)


def returns(values: np.ndarray, performance: Performance | None) -> Plot:
    """How the return is spread over unseen domains, with the bounds."""
    counts, edges = np.histogram(values, BINS)
    bars: Trace = {
        "type": "bar", "x": short((edges[1:] + edges[:-1]) / 2), "y": counts.tolist(), "name": "unseen domains",
        "width": float(edges[1] - edges[0]), "marker": {"color": "@blue/0.55", "line": {"width": 0}},
        "hovertemplate": "return ≈ %{x:.4g}: %{y} domains<extra></extra>",
    }  # fmt: skip
    mean = float(values.mean())
    marks = [("mean", mean, "@green", "solid")]
    if performance is not None and performance.in_range:
        share = f"{100 * performance.worst_share:.0f} %"
        marks.append(("mean at least", performance.mean_lower, "@green", "dash"))
        marks.append((f"mean of the worst {share} at least", performance.worst_lower, "@orange", "dash"))
    top = [0, int(counts.max())]
    lines = [line([v] * 2, top, f"{name} {figure(v)}", colour, dash) for name, v, colour, dash in marks]
    layout = {"xaxis": {"title": "return"}, "yaxis": {"title": "domains"}, "bargap": 0}
    alt = f"Histogram of the return on {values.size} unseen domains, mean {figure(mean)}."
    return Plot([bars, *lines], layout, alt)


def _learning(traces: list[Trace], alt: str) -> Plot:
    layout = {"xaxis": {"title": "updates", "rangemode": "tozero"}, "yaxis": {"title": "mean return"}}
    return Plot(traces, layout, alt)
