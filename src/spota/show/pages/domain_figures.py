"""Plots over the domain parameters: sweeps, attribution, where the drawn domains lie, and where the failing ones do."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from spota.analysis.sobol import NOISE
from spota.show.pages.failures import Trait
from spota.show.pages.traces import Plot, Trace, band, dotted_line, line, points, short
from spota.show.plots import position, varied
from spota.sim.domain import DomainDistribution
from spota.text import figure

BARS = 12
"""Parameters that the attribution shows."""
LOOKS = {
    "references": ("@grey/0.55", "circle", 5),
    "candidate": ("@blue", "circle", 7),
    "worst found": ("@orange", "x", 9),
}


def sweep_plot(sweep: Mapping[str, Any], low: float, high: float) -> Plot:
    """Return over one parameter: mean, the middle 80 % of the rollouts, and the nominal value."""
    axis, found = sweep["axes"][0], next(iter(sweep["policies"].values()))
    x, means = axis["values"], found["mean"]
    traces = [
        *band(x, found["quantile_10"], found["quantile_90"], "@blue/0.18"),
        dotted_line(x, means, "mean return", "@blue", size=5),
        line([axis["nominal"]] * 2, [low, high], "nominal", "@orange", "dot", 1.5),
    ]
    layout = {
        "xaxis": {"nticks": 5, "zeroline": False},
        "yaxis": {"range": [low, high], "nticks": 4},
        "margin": {"t": 6, "r": 10},
        "showlegend": False,
    }
    span = f"over {axis['name']} from {x[0]:.3g} to {x[-1]:.3g} {axis['unit']}"
    return Plot(traces, layout, f"Mean return from {figure(min(means))} to {figure(max(means))} {span}.", 190)


def attribution(indices: Mapping[str, Any]) -> Plot:
    """Shares of the variance: alone, and with interactions, with their intervals."""
    inputs = indices["inputs"]
    ranked = sorted((n for n in inputs if n != NOISE), key=lambda n: -inputs[n]["total"])[:BARS]
    names = [NOISE, *reversed(ranked)]
    bars = [
        _bars(names, inputs, "total", "with interactions", "@blue/0.45"),
        _bars(names, inputs, "first", "alone", "@blue"),
    ]
    layout = {
        "xaxis": {"title": "share of the variance [%]", "rangemode": "tozero"},
        "yaxis": {"type": "category"},
        "barmode": "group",
        "bargap": 0.3,
        "legend": {"traceorder": "reversed"},
    }
    first = ", ".join(f"{n} {100 * inputs[n]['total']:.0f} %" for n in ranked[:3])
    return Plot(bars, layout, f"Shares of the variance of the return, largest first: {first}.", 130 + 34 * len(names))


def domains(drawn: Mapping[str, Mapping[str, np.ndarray]], nu: DomainDistribution) -> Plot:
    """Where domains lie in the distribution: one line per parameter, from its smallest to its largest value."""
    names, traces = varied(nu), []
    for label, group in drawn.items():
        columns = {name: np.ravel(group[name]) for name in names if name in group}
        x = np.concatenate([position(nu, name, values) for name, values in columns.items()])
        y = [escape(name) for name, values in columns.items() for _ in values]
        values = short(np.concatenate([*columns.values()]))
        hover = {"customdata": values, "hovertemplate": "%{y} = %{customdata:.4g}<extra></extra>"}
        traces.append({**points(x, y, label, *LOOKS[label]), **hover})
    ends = {"tickvals": [0, 0.5, 1], "ticktext": ["smallest", "middle", "largest"], "range": [-0.06, 1.06]}
    layout = {"xaxis": {**ends, "zeroline": False}, "yaxis": {"type": "category", "autorange": "reversed"}}
    alt = f"Where the domains of {', '.join(drawn)} lie in the distribution."
    return Plot(traces, layout, alt, 110 + 24 * len(names))


def strips(traits: Sequence[Trait]) -> Plot:
    """Where failing machines lie among all draws: one line per parameter, a dot per machine."""
    sway = np.random.default_rng(0).uniform(-0.28, 0.28, max(len(trait.places) for trait in traits))
    traces = []
    for row, trait in enumerate(traits):
        x = 100 * np.array(trait.places)
        hover = {"hovertemplate": f"{escape(trait.name)}: above %{{x:.0f}} % of all draws<extra></extra>"}
        traces.append({**points(x, row + sway[: x.size], escape(trait.name), "@orange/0.5", size=6), **hover})
    rows = list(range(len(traits)))
    layout = {
        "xaxis": {"title": "share of all draws below [%]", "range": [-2, 102], "zeroline": False},
        "yaxis": {
            "tickvals": rows, "ticktext": [escape(t.name) for t in traits], "range": [rows[-1] + 0.5, -0.5],
            "zeroline": False, "showgrid": False,
        },
        "shapes": [_rule(row + 0.5) for row in rows[:-1]],
        "showlegend": False,
    }  # fmt: skip
    names = ", ".join(f"{t.name} {t.where}" for t in traits)
    return Plot(traces, layout, f"Where the failing machines lie among all draws: {names}.", 90 + 46 * len(traits))


def _rule(y: float) -> dict[str, Any]:
    """A line between two rows, over the whole width."""
    ends = {"xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
    return {"type": "line", **ends, "line": {"color": "@grid", "width": 1}}


def _bars(names: Sequence[str], inputs: Mapping[str, Any], which: str, label: str, colour: str) -> Trace:
    shares = np.array([inputs[n][which] for n in names])
    low, high = np.array([inputs[n][f"{which}_interval"] for n in names]).T
    x, low, high = (100 * np.maximum(values, 0) for values in (shares, low, high))
    reach = {"array": short(np.maximum(high - x, 0)), "arrayminus": short(np.maximum(x - low, 0))}
    error = {"type": "data", "symmetric": False, "color": "@quiet", "thickness": 1, "width": 3, **reach}
    return {
        "type": "bar", "orientation": "h", "x": short(x), "y": [escape(n) for n in names], "name": label,
        "marker": {"color": colour}, "error_x": error, "hovertemplate": f"%{{y}}, {label}: %{{x:.1f}} %<extra></extra>",
    }  # fmt: skip
