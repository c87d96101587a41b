"""Sections about what the run holds: the certificate, how far to trust it, bounds, gaps, learning curves."""

import numpy as np

from spota.certify.certificate import Certificate
from spota.show.pages import html, run_figures, words
from spota.show.pages.checks import checks
from spota.show.pages.coverage import interval_name, measured
from spota.show.pages.html import Section
from spota.show.pages.material import Material
from spota.text import figure, plural


def certificate(m: Material) -> Section | None:
    """The certificate's two parts, what it promises and what it does not."""
    c = m.story.certificate
    if c is None:
        return None
    loses = html.block(html.heading("What it loses") + html.paragraph(words.gap_part(c)), "card")
    earns = html.block(html.heading("What it earns") + html.paragraph(words.performance_part(c)), "card")
    promised = html.block(html.heading("What this promises") + html.items(words.promised(c), "yes"), "part")
    not_promised = html.heading("What it does not promise") + html.items(words.not_promised(), "no")
    body = (
        html.block(loses + earns, "pair") + _loss(c) + html.block(promised + html.block(not_promised, "part"), "pair")
    )
    return Section("certificate", "Certificate", "What the certificate says", body)


def _loss(c: Certificate) -> str:
    """The loss in its parts, with what stands behind each."""
    parts = words.loss_parts(c)
    if not parts:
        return ""
    rows = [(part.name, figure(part.measured), figure(part.bound), part.source) for part in parts]
    table = html.table(("mean loss", "measured", "at most", "measured on"), rows, words=(0, 3), marked=len(rows) - 1)
    return html.heading("The loss in its parts") + table + html.paragraph(words.failures(c))


def trust(m: Material) -> Section | None:
    """Warnings, diagnostics, and all intervals with their measured coverage."""
    c = m.story.certificate
    if c is None:
        return None
    warnings = html.items(c.warnings, "warnings") if c.warnings else html.paragraph("There are none.", "quiet")
    plot = html.figure(
        run_figures.intervals(c),
        "What you see: the same run gives another upper bound with every kind of interval. The ring marks the one that "
        f"decided. Bounds to the left of the threshold would certify the policy.{_margin(c)}",
    )
    return Section(
        "trust",
        "Trust",
        "How far to trust it",
        html.heading("Warnings") + warnings + html.heading("Diagnostics") + _checks(c, len(m.story.assessed))
        + html.heading("All intervals side by side") + plot + _intervals(c),
    )  # fmt: skip


def _margin(c: Certificate) -> str:
    return f" All of them include the effort margin of {figure(c.effort_margin)}." if c.effort_margin else ""


def _checks(c: Certificate, iterations: int) -> str:
    rows = "".join(
        f'<div data-good="{"yes" if check.good else "no"}">'
        f"<dt>{html.text(check.name)} <b>{html.text(check.value)}</b></dt><dd>{html.text(check.meaning)}</dd></div>\n"
        for check in checks(c, iterations)
    )
    return f'<dl class="checks">\n{rows}</dl>\n'


def _intervals(c: Certificate) -> str:
    m = measured(c.n_G, c.n_r)
    names = sorted(c.claims, key=lambda name: c.claims[name])
    rows = [(interval_name(n), figure(c.claims[n]), m.words(n)) for n in names]
    about = (
        f"Coverage is how often each kind of interval was right at nominal {m.nominal:.0f} % where the truth is known: "
        f"{m.sets} simulated comparisons a problem, rare crashes included, with {m.n_G} references and "
        f"{plural(m.n_r, 'domain')} each, the studied case that is nearest to this run; from the worst problem "
        "to the best."
    )
    return html.table(("interval", "bound", "coverage"), rows, marked=names.index(c.method)) + html.paragraph(
        about, "quiet"
    )


def iterations(m: Material) -> Section | None:
    """UCBOG over the iterations."""
    assessed = [(i.number, i.certificate) for i in m.story.assessed if i.certificate is not None]
    if m.story.kind != "spota" or not assessed:
        return None
    one = "" if len(assessed) > 1 else " There is one iteration, so there is one point."
    plot = html.figure(
        run_figures.iterations(assessed),
        "What you see: each iteration trains a new candidate on more domains (n_c), and compares it with references on "
        f"more domains each (n_r). The run ends when the upper bound falls to the threshold.{one}",
    )
    return Section("iterations", "Iterations", "The bound over the iterations", plot)


def gaps(m: Material) -> Section | None:
    """The gap samples that were bootstrapped."""
    shown = m.story.shown
    if shown is None or shown.gaps is None:
        return None
    plot = html.figure(
        run_figures.gaps(shown.gaps, shown.certificate),
        "What you see: a dot for each domain on which the policy was compared with the reference that was trained "
        "there, with the same random numbers; columns are references. The height is what the reference earned more. "
        "Where references lost, better ones stand in; if there is none, the gap is zero.",
    )
    which = f" of iteration {shown.number}" if m.story.kind == "spota" else ""
    return Section("gaps", "Gaps", f"The gaps{which}", plot)


def returns(m: Material) -> Section | None:
    """The spread of the return over unseen domains: as the certificate measured it, else as the page did."""
    kept = m.story.kept
    if kept is not None and kept.unseen is not None and kept.certificate is not None:
        values, performance = np.asarray(kept.unseen, np.float64), kept.certificate.performance
    elif m.evaluation is not None:
        values, performance = np.asarray(m.evaluation.returns), None
    else:
        return None
    bounds = " Dashed lines are lower confidence bounds, which hold for any number of domains." if performance else ""
    plot = html.figure(
        run_figures.returns(values, performance),
        f"What you see: the return on {values.size} random domains that no training has used. A heap near zero are "
        f"machines on which it fails.{bounds}",
    )
    return Section("returns", "Returns", "What it earns on unseen domains", plot)


def learning(m: Material) -> Section | None:
    """Learning curves of whatever was trained."""
    story, parts, own = m.story, [], m.story.kind == "assess"
    if any(i.candidate for i in story.iterations):
        plot = run_figures.candidates(story.iterations, story.kept.number if story.kept and not own else None)
        title = "A candidate of our own" if own else "Candidates"
        parts.append((plot, "the mean return of each candidate on its own training domains.", title))
    if story.shown is not None and story.shown.references is not None:
        start = "the best policy that there is for it" if own else "the candidate"
        about = (
            f"every reference starts from {start}, and climbs on domains of its own. Flat lines are references "
            "that did not improve."
        )
        plot = run_figures.references(story.shown.references)
        parts.append((plot, about, f"References of iteration {story.shown.number}"))
    if story.training is not None:
        title = "" if story.kind == "training" else "The block that was not finished"
        parts.append((run_figures.training(story.training), "the mean return on the training domains.", title))
    body = "".join(html.figure(plot, f"What you see: {about}", title) for plot, about, title in parts)
    return Section("learning", "Learning", "Learning curves", html.block(body, "pair")) if parts else None
