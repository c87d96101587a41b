"""Policies side by side → one page."""

import numpy as np

from spota.analysis.standings import Difference, Standings
from spota.show.pages import html
from spota.show.pages.html import Section
from spota.show.pages.page import Head, compose
from spota.show.pages.traces import Plot, line, points, short
from spota.show.pages.words import Fact, Verdict
from spota.text import figure, percent

LOOKS = (("@blue", "solid"), ("@orange", "dash"), ("@green", "dashdot"), ("@purple", "dot"), ("@grey", "longdash"))
"""Colour and line of each policy; both, so that nobody needs the colour."""


def comparison_page(result: Standings, about: str, command: str) -> str:
    """The page of a comparison; `about` says which domains, `command` how to get it again."""
    best = max(result.rows, key=lambda name: result.rows[name]["mean"])
    row = result.rows[best]
    sentence = (
        f"{best} earns most: {figure(row['mean'])} of at most {figure(result.max_return)} on average over {row['n']} "
        "domains that all policies met with the same start states and the same noise."
    )
    facts = [Fact(figure(r["mean"]), f"{name}: mean return") for name, r in result.rows.items()]
    verdict = Verdict(f"{len(result.rows)} policies compared", sentence, _level(result, best))
    head = Head(f"Comparison: {result.env}", f"{result.env} · {about}", verdict, facts=facts)
    return compose(head, [_table(result), *_differences(result), _returns(result), _reproduce(command)])


def _level(result: Standings, best: str) -> str:
    """With which others the best one could change places."""
    pairs = [{d.policy, d.other} for d in result.differences if d.low <= 0 <= d.high]
    others = [name for name in result.rows if name != best and {best, name} in pairs]
    return f"It cannot be told apart from {' and '.join(others)}." if others else ""


def _table(result: Standings) -> Section:
    rows = [
        (name, figure(r["mean"]), figure(r["std"]), figure(r["worst_20_mean"]), figure(r["quantile_10"]),
         percent(r["survival"]))
        for name, r in result.rows.items()
    ]  # fmt: skip
    head = ("policy", "mean", "deviation", "worst 20 %", "10 % quantile", "survived")
    about = (
        "Over the domains: the mean return, its standard deviation, the mean of the worst fifth, what nine in ten "
        "domains exceed, and the share of rollouts that lasted until the time limit."
    )
    return Section("table", "Table", "What they earn", html.paragraph(about) + html.table(head, rows))


def _differences(result: Standings) -> list[Section]:
    if not result.differences:
        return []
    plot = html.figure(
        _differences_plot(result.differences),
        "What you see: by how much the first policy of each pair earns more on the same domains, with its interval. An "
        "interval that crosses zero means that they cannot be told apart.",
    )
    words = html.items(str(difference) for difference in result.differences)
    return [Section("differences", "Differences", "Who is better", plot + words)]


def _differences_plot(differences: tuple[Difference, ...]) -> Plot:
    names = [html.text(f"{d.policy} − {d.other}") for d in differences]
    rows = range(len(names))
    dots = points([d.mean for d in differences], rows, "difference", "@blue", size=9)
    above, below = (short([abs(getattr(d, end) - d.mean) for d in differences]) for end in ("high", "low"))
    reach = {"array": above, "arrayminus": below}
    dots["error_x"] = {"type": "data", "symmetric": False, "color": "@blue", "thickness": 2, "width": 5, **reach}
    dots["hovertemplate"] = "%{x:.4g}<extra></extra>"
    ends = [len(names) - 0.4, -0.6]
    layout = {
        "xaxis": {"title": "difference in mean return"},
        "yaxis": {"tickvals": list(rows), "ticktext": names, "range": ends, "zeroline": False},
        "showlegend": False,
    }
    alt = " ".join(str(difference) for difference in differences)
    return Plot([line([0, 0], ends, "no difference", "@orange", "dash"), dots], layout, alt, 110 + 34 * len(names))


def _returns(result: Standings) -> Section:
    traces = []
    for k, (name, outcome) in enumerate(result.outcomes.items()):
        values = np.sort(np.asarray(outcome.returns, np.float64).mean(axis=1))
        shares = 100 * np.arange(1, values.size + 1) / values.size
        label = html.text(name)
        hover = {"hovertemplate": f"{label}: %{{y:.0f}} % earn at most %{{x:.4g}}<extra></extra>"}
        traces.append({**line(values, shares, label, *LOOKS[k % len(LOOKS)]), **hover})
    layout = {"xaxis": {"title": "return"}, "yaxis": {"title": "share of the domains [%]", "range": [0, 101]}}
    plot = html.figure(
        Plot(traces, layout, f"Share of the domains below each return, for {', '.join(result.outcomes)}."),
        "What you see: on which share of the domains a policy earns at most this return. A curve further to the right "
        "is better; one that rises early fails on some domains.",
    )
    return Section("returns", "Returns", "How the returns are spread", plot)


def _reproduce(command: str) -> Section:
    about = "The same policies, domains and seed give the same numbers."
    return Section("reproduce", "Reproduce", "How to reproduce it", html.paragraph(about) + html.code(command))
