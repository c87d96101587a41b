"""Sections about the policy at work: in motion, over each parameter, what its return depends on, where it fails."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spota.show import animation
from spota.show.animation import Recording
from spota.show.pages import domain_figures, html
from spota.show.pages.html import Section
from spota.show.pages.material import Material
from spota.text import figure, percent

CAUSES = 6
"""Parameters that a table of a worst domain names."""
FOUND = {"searched": "found by a search within the distribution", "drawn": "among random draws"}


def motion(m: Material) -> Section | None:
    """The policy on three machines."""
    if m.evaluation is None:
        return Section("motion", "In motion", "The policy at work", html.paragraph(m.missing, "quiet"))
    if not m.evaluation.recordings:
        return None
    n = m.evaluation.failures.n
    worst = "the worst one that a search found" if m.evaluation.full else "the worst of them"
    about = (
        f"The same policy on three machines: the nominal one, the median of {n} random ones, and {worst}. The curve "
        "below each picture is what drives it."
    )
    about += _source(m.evaluation.recordings)
    player = animation.fragment(m.evaluation.recordings)
    return Section("motion", "In motion", "The policy at work", html.paragraph(about) + player)


def _source(recordings: Sequence[Recording]) -> str:
    """Who drew what is shown of somebody else's simulator."""
    curves = next((r for r in recordings if r.scene == "curves"), None)
    if curves is None:
        return " The pictures are its own simulator's." if recordings[0].film else ""
    return (
        " What you see is what its sensors would read without noise, each signal over its own range: there is no "
        f"picture of the machine, because {curves.why_curves}."
    )


def sweeps(m: Material) -> Section | None:
    """One small plot per parameter, what matters most first."""
    if m.evaluation is None or not m.evaluation.sweeps:
        return None
    found = sorted(m.evaluation.sweeps, key=lambda s: -np.ptp(s["policies"]["policy"]["mean"]))
    low = min(min(s["policies"]["policy"]["quantile_10"]) for s in found)
    high = max(max(s["policies"]["policy"]["quantile_90"]) for s in found)
    margin = 0.04 * (high - low) or 1.0
    plots = "".join(_sweep(s, low - margin, high + margin) for s in found)
    about = (
        "What you see: the return if one parameter takes all its possible values and the others stay nominal; what "
        f"matters most comes first. Line: mean of {found[0]['rollouts']} rollouts. Shade: the middle 80 % of them. "
        "Dotted: the nominal value. All plots have the same scale."
    )
    return Section(
        "sweeps", "Parameters", "What each parameter does", html.paragraph(about) + html.block(plots, "grid")
    )


def _sweep(sweep: Mapping[str, Any], low: float, high: float) -> str:
    axis = sweep["axes"][0]
    unit = f" [{axis['unit']}]" if axis["unit"] != "-" else ""
    beside = f"{axis['meaning'] or axis['name']}{unit}"
    return html.figure(domain_figures.sweep_plot(sweep, low, high), title=axis["name"], beside=beside)


def attribution(m: Material) -> Section | None:
    """Shares of the variance, and what to measure first."""
    explanation = m.evaluation.explanation if m.evaluation is not None else None
    if explanation is None:
        return None
    variance, measure, _ = explanation["words"].split("\n")
    body = html.paragraph(variance)
    if explanation["indices"] is not None:
        body += html.figure(
            domain_figures.attribution(explanation["indices"]),
            "What you see: how much of the spread of the return each parameter accounts for, alone and together with "
            "others, with 95 % intervals. “start and noise” would remain if the machine were known exactly.",
        )
    body += html.heading("Measure this first") + html.paragraph(measure)
    return Section("attribution", "Attribution", "Which parameter costs the return", body)


def worst(m: Material) -> Section | None:
    """The worst domains, and why they are."""
    explanation = m.evaluation.explanation if m.evaluation is not None else None
    if explanation is None:
        return None
    body = html.paragraph(explanation["words"].split("\n")[2])
    for domain in explanation["worst"]:
        title = f"{figure(domain['returns'])} on average, {percent(domain['survival'])} survive"
        body += html.heading(title, beside=FOUND[domain["found"]]) + _causes(domain, explanation)
    return Section("worst", "Worst domains", "The worst domains", body)


def _causes(domain: Mapping[str, Any], explanation: Mapping[str, Any]) -> str:
    """What is unusual about a domain, most harmful first."""
    gains = domain["recovery"]
    rows = []
    for name in sorted(gains, key=lambda n: -gains[n])[:CAUSES]:
        unit = "" if explanation["units"][name] == "-" else f" {explanation['units'][name]}"
        there, nominal = (f"{values[name]:.3g}{unit}" for values in (domain["domain"], explanation["nominal"]))
        rows.append((name, f"{gains[name]:+.0f}", there, nominal, percent(domain["quantile"][name])))
    return html.table(("parameter", "gained if nominal", "there", "nominal", "draws below it"), rows)
