"""A run on a machine → one page like the others."""

import numpy as np

from spota.deploy.aftermath import Aftermath
from spota.deploy.log import Ticks
from spota.deploy.phases import PHASES
from spota.show.pages import html
from spota.show.pages.html import Section
from spota.show.pages.page import Head, compose
from spota.show.pages.traces import Plot, line, points
from spota.show.pages.words import Fact, Verdict
from spota.text import figure, percent

COLOURS = ("@blue", "@orange", "@green", "@purple")
MOST_POINTS = 2000


def deployment_page(about: Aftermath, ticks: Ticks, title: str, command: str) -> str:
    """The page; `title` says which policy on which device, `command` how it was run."""
    finished, void = about.cause == "finished", about.covered == "not covered"
    ended = "It ran to its end" if finished else "It was stopped safely"
    verdict = Verdict(f"{ended}; its certificate is void here" if void else ended, about.words)
    facts = [
        Fact(figure(about.returned) if about.returned is not None else "–", "return, from measurements"),
        Fact(f"{about.steps} of {about.wanted_steps}", "steps"),
        Fact(percent(about.in_time), "commands within their period"),
        Fact(f"{about.rate:.0f} Hz", "the device's rate"),
    ]
    status = "void" if void else "certified" if finished else "refuted"
    head = Head(title, title, verdict, status, facts)
    parts = [_meaning(about), _signals(ticks), _time(about, ticks), _delays(about), _reproduce(command)]
    return compose(head, [part for part in parts if part is not None])


def _meaning(about: Aftermath) -> Section:
    notes = html.items(about.notes) if about.notes else html.paragraph("The policy did not act.")
    if about.covered is None:
        notes += html.paragraph("Whether a certificate speaks of this machine: spota applies RUN recording.npz tells.")
    return Section("meaning", "Meaning", "What it means", notes)


def _signals(ticks: Ticks) -> Section | None:
    rows = np.flatnonzero(ticks["arrived"])
    if not rows.size:
        return None
    rows = rows[:: max(1, rows.size // MOST_POINTS)]
    time = (ticks["device_time"][rows] - ticks["device_time"][rows[0]]) / 1e9
    body = html.figure(_phases(ticks, rows, time), "What you see: the phases, one after the other.", "Phases")
    positions = [i for i, s in enumerate(ticks.contract.observations) if not s.unit.endswith("/s")]
    units = list(dict.fromkeys(ticks.contract.observations[i].unit for i in positions))
    for unit in units:
        some = [i for i in positions if ticks.contract.observations[i].unit == unit]
        names = [ticks.contract.observations[i].name for i in some]
        body += html.figure(_curves(time, ticks.observation[rows][:, some], names, unit), "", ", ".join(names))
    names = [s.name for s in ticks.contract.actions]
    explanation = "What you see: the command that was sent, within all limits."
    body += html.figure(_curves(time, ticks.sent[rows], names, ticks.contract.actions[0].unit), explanation, "Commands")
    return Section("signals", "Signals", "What it did", body)


def _curves(time: np.ndarray, values: np.ndarray, names: list[str], unit: str) -> Plot:
    if unit == "rad":  # an angle that comes round is no motion
        turns = np.abs(np.diff(values, axis=0, prepend=values[:1])) > np.pi
        values = np.where(turns, np.nan, values)
    traces = [line(time, values[:, i], html.text(n), COLOURS[i % len(COLOURS)], width=1.3) for i, n in enumerate(names)]
    layout = {"xaxis": {"title": "time [s]"}, "yaxis": {"title": f"[{unit}]"}, "showlegend": len(names) > 1}
    return Plot(traces, layout, f"{', '.join(names)} over time.", 260)


def _phases(ticks: Ticks, rows: np.ndarray, time: np.ndarray) -> Plot:
    trace = line(time, ticks["phase"][rows].astype(int), "phase", "@blue")
    axis = {"tickvals": list(range(1, len(PHASES))), "ticktext": list(PHASES[1:]), "range": [0.5, 5.5]}
    return Plot([trace], {"xaxis": {"title": "time [s]"}, "yaxis": axis, "showlegend": False}, "Phases over time.", 210)


def _time(about: Aftermath, ticks: Ticks) -> Section:
    rows = [(name, *(f"{1e6 * share[p]:.0f}" for p in share)) for name, share in _shares(about).items()]
    table = html.table(("in µs", "median", "99 %", "99.9 %", "largest"), rows) if rows else ""
    words = (
        f"{about.late} frames were late and {about.missed} were skipped for newer ones. The device measured steps of "
        f"{1e3 * about.measured_dt:.4g} ms; its watchdog held it in {about.watchdog} frames."
    )
    work = ticks["work"][ticks.answered] * 1e6
    plot = ""
    if work.size:
        some = work[:: max(1, work.size // MOST_POINTS)]
        dots = points(np.arange(some.size), some, "work", "@blue", size=3)
        layout = {
            "xaxis": {"title": "frame"},
            "yaxis": {"title": "work [µs]", "rangemode": "tozero"},
            "showlegend": False,
        }
        plot = html.figure(
            Plot([dots], layout, "Work of every frame.", 240), "What you see: our work from frame to command."
        )
    return Section("time", "Time", "How it held its time", html.paragraph(words) + table + plot)


def _shares(about: Aftermath) -> dict[str, dict[str, float]]:
    found = {"age of the data": dict(about.age), "our own work": dict(about.work)}
    return {name: share for name, share in found.items() if len(share) == 4}


def _delays(about: Aftermath) -> Section | None:
    if not about.delay:
        return None
    steps, counts = list(about.delay), list(about.delay.values())
    bars = {"type": "bar", "x": steps, "y": counts, "marker": {"color": "@blue"}, "name": "commands"}
    layout = {"xaxis": {"title": "steps until a command acted", "type": "category"}, "yaxis": {"title": "commands"}}
    plot = Plot([bars], {**layout, "showlegend": False}, "How many commands acted after how many steps.", 240)
    return Section(
        "delay", "Delay", "When commands acted", html.figure(plot, "What you see: what the device's echoes tell.")
    )


def _reproduce(command: str) -> Section:
    about = "The recording beside this page has every tick."
    return Section("again", "Again", "How it was run", html.paragraph(about) + html.code(command))
