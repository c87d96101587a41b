"""A fit → one page: what was learned about the machine, what only in combination, and how well it predicts."""

import numpy as np

from spota.fit.fitting import Fit
from spota.show.pages import html
from spota.show.pages.html import Section
from spota.show.pages.page import Head, compose
from spota.show.pages.traces import Plot, line, points, short
from spota.show.pages.words import Fact, Verdict


def fit_page(found: Fit, command: str) -> str:
    """The page of a fit; `command` says how to get it again."""
    known = [row for row in found.learned if row.identified]
    names = ", ".join(row.name for row in known) or "nothing alone"
    held = found.held_out
    sentence = (
        f"{len(found.fitted)} recordings of one machine identify {names}. The table has {found.sampled.z.shape[0]} "
        "whole rows: machines that could have made them."
    )
    advice = "Read the warnings below before you rely on it." if found.warnings else ""
    facts = [
        Fact(f"{error:.3g} {unit}", f"error of {name}, half a second ahead, not fitted")
        for (name, unit), error in zip(held.signals, held.error, strict=True)
    ]
    s = found.sampled
    facts += [Fact(f"{s.r_hat:.3f}", "R-hat of four chains"), Fact(str(s.divergences), "divergences")]
    head = Head(
        f"Fit: {found.env.name}", f"{found.env.name} · a table for one machine", Verdict("Fitted", sentence, advice),
        "warned" if found.warnings else "certified", facts,
    )  # fmt: skip
    sections = [_learned(found), *_together(found), _predicted(found), _doubts(found), _reproduce(found, command)]
    return compose(head, sections)


def _learned(found: Fit) -> Section:
    rows = [
        (row.name, row.unit, f"{row.prior_mean:.4g} ± {row.prior_std:.2g}", f"{row.mean:.4g} ± {row.std:.2g}",
         f"{row.low:.4g} … {row.high:.4g}", f"{100 * row.ratio:.0f} %", row.at_edge and f"at the {row.at_edge} end")
        for row in found.learned
    ]  # fmt: skip
    head = ("parameter", "unit", "before", "after", "90 % of the rows", "spread left", "")
    about = (
        "Spread left: the standard deviation after the recordings over that before. What stays near 100 % is not known "
        "any better than the prior said; the recordings do not excite it, or know it only in combination."
    )
    body = html.paragraph(about) + html.table(head, rows, words=(0, 1, 6)) + _spread_plot(found)
    return Section("learned", "Learned", "What the recordings tell", body)


def _spread_plot(found: Fit) -> str:
    names = [html.text(row.name) for row in found.learned]
    places = range(len(names))
    dots = points([100 * row.ratio for row in found.learned], places, "spread left", "@blue", size=9)
    dots["hovertemplate"] = "%{x:.0f} %<extra></extra>"
    ends = [len(names) - 0.4, -0.6]
    layout = {
        "xaxis": {"title": "spread left [% of the prior's]", "range": [0, 115]},
        "yaxis": {"tickvals": list(places), "ticktext": names, "range": ends, "zeroline": False},
        "showlegend": False,
    }
    alt = "; ".join(f"{row.name} {100 * row.ratio:.0f} %" for row in found.learned)
    traces = [line([100, 100], ends, "nothing learned", "@orange", "dash"), dots]
    words = "What you see: how much of its spread a parameter still has. At the dashed line nothing was learned."
    return html.figure(Plot(traces, layout, f"Spread left: {alt}.", 110 + 26 * len(names)), words)


def _together(found: Fit) -> list[Section]:
    if not found.combinations:
        return []
    about = "These are known together and not alone: if one is larger, the others must follow, and the rows keep that."
    body = html.paragraph(about) + html.items(str(one) for one in found.combinations)
    return [Section("together", "Together", "What only occurs together", body + _pair_plot(found))]


def _pair_plot(found: Fit) -> str:
    """The two parameters of the tightest combination, row by row."""
    (first, _), (second, _), *_ = found.combinations[0].parts
    rows = found.env.domain
    x, y = (np.asarray(rows[name].marginal.values)[::4] for name in (first, second))  # type: ignore[attr-defined]
    layout = {
        "xaxis": {"title": f"{first} [{rows[first].unit}]"},
        "yaxis": {"title": f"{second} [{rows[second].unit}]"},
    }
    layout["showlegend"] = False  # type: ignore[assignment]
    alt = f"{first} against {second}: correlation {np.corrcoef(x, y)[0, 1]:.2f}."
    plot = Plot([points(short(x), short(y), "rows", "@blue/0.4", size=5)], layout, alt)
    return html.figure(plot, "What you see: rows of the table, a quarter of them.", f"{first} and {second}")


def _predicted(found: Fit) -> Section:
    held = found.held_out
    rows = [
        (name, unit, f"{error:.3g}", f"{nominal:.3g}", f"{100 * share:.0f} %")
        for (name, unit), error, nominal, share in zip(
            held.signals, held.error, held.nominal_error, held.coverage, strict=True
        )
    ]
    about = (
        f"{held.segments} half seconds that were not fitted, predicted from where they began: the root mean square of "
        "the error of the mean prediction, the same with the platform's nominal values, and the share of samples in "
        "bands that should hold 90 %."
    )
    head = ("signal", "unit", "error", "nominal values", "in the 90 % bands")
    return Section(
        "predicted", "Predicted", "What was not fitted", html.paragraph(about) + html.table(head, rows, (0, 1))
    )


def _doubts(found: Fit) -> Section:
    log = "; ".join(f"{name} {value:.3f}" for name, value in found.tempering.items())
    lines = [
        *found.warnings,
        f"Errors were taken for what serves held-out recordings better (mean log density of a sample: {log}).",
        f"An error lasts for {', '.join(f'{tau:.0f}' for tau in found.noise.tau)} samples: so many count as one.",
        "The rows are about this machine only, as far as the recordings reach; the simulator's gaps are theirs.",
        "Recordings that were fitted are no evidence for the table; ask spota applies about others.",
    ]
    return Section("doubts", "Doubts", "How far to trust it", html.items(lines))


def _reproduce(found: Fit, command: str) -> Section:
    lines = "\n".join(sha256 for sha256 in found.env.domain.recordings)
    body = html.code(command) + html.folded("SHA-256 of the recordings", html.code(lines))
    return Section("reproduce", "Reproduce", "How to reproduce it", body)
