"""The section about machines on which the policy fails: how many, what they have in common, and some in motion."""

from spota.show import animation
from spota.show.pages import domain_figures, html
from spota.show.pages.evaluation import Evaluation
from spota.show.pages.failures import FEWEST, Failures, Trait
from spota.show.pages.html import Section
from spota.show.pages.material import Material
from spota.sim.domain import DomainDistribution
from spota.stats.split import QUANTILE
from spota.text import figure, percent, plural

NAMED, SHOWN = 3, 6
"""Parameters that the words name, and that table and figure show."""


def failures(m: Material) -> Section | None:
    """Where the policy fails."""
    if m.evaluation is None:
        return None
    found = m.evaluation.failures
    body = html.paragraph(count_words(found))
    if found.rare:
        body += html.paragraph(meaning(found), "quiet")
    if found.count:
        body += html.heading("What they have in common") + _in_common(found, m.domain) + _examples(m.evaluation)
    return Section("failures", "Failures", "Where it fails", body + _go_on(m, m.evaluation))


def count_words(found: Failures) -> str:
    """How often it fails."""
    if not found.rare:
        return (
            f"Failures are not rare: on one machine in twenty it earns {figure(found.level)} or less, and hardly "
            "anything is left to lose below that. So rare failures cannot be told apart. Train the policy first."
        )
    if not found.count:
        return f"It failed on none of {found.n} new random machines. Rarer failures than these can show may remain."
    share = percent(found.count / found.n)
    return f"It failed on {found.count} of {found.n} new random machines, that is {share}."


def meaning(found: Failures) -> str:
    """What counts as a failure."""
    return (
        f"To fail means to earn more than {figure(found.shortfall)} less than {figure(found.level)}, a return that "
        f"{percent(1 - QUANTILE)} of the machines reach. Each machine was tried once. A certificate counts in the same "
        "way, on machines of its own."
    )


def trait_words(trait: Trait) -> str:
    """action_delay is high (their median is above 93 % of all draws)."""
    if trait.where in ("at both ends", "in the middle"):
        return f"{trait.name} is {trait.where} of its range"
    q = trait.quantile
    side = f"above {percent(q)}" if q > 0.5 else f"below {percent(1 - q)}"
    return f"{trait.name} is {trait.where} (their median is {side} of all draws)"


def common_words(found: Failures) -> str:
    """What sets the failing machines apart."""
    if found.count < FEWEST:
        return f"Too few failed to say what they have in common: {plural(found.count, 'machine')}."
    if not found.traits:
        return (
            "No single parameter sets them apart. They may fail by a combination of parameters, or by the start state "
            "and the noise."
        )
    return f"On failing machines {'; '.join(trait_words(trait) for trait in found.traits[:NAMED])}."


def _in_common(found: Failures, nu: DomainDistribution | None) -> str:
    shown = found.traits[:SHOWN]
    body = html.paragraph(common_words(found))
    if not shown:
        return body
    rows = [(t.name, t.where, _span(t.failing), _span(t.everywhere), _unit(nu, t.name)) for t in shown]
    head = ("parameter", "on failing machines", "half of them within", "half of all within", "unit")
    body += html.table(head, rows, words=(0, 1, 4))
    return body + html.figure(
        domain_figures.strips(shown),
        "What you see: a dot for each failing machine, and where its parameter lies among all draws. Dots that are "
        "spread evenly would mean that the parameter does not matter. Shown are only parameters whose difference is "
        "beyond chance, the clearest first.",
    )


def _span(ends: tuple[float, float]) -> str:
    low, high = ends
    return f"{low:.3g} … {high:.3g}"


def _unit(nu: DomainDistribution | None, name: str) -> str:
    return nu[name].unit if nu is not None and name in nu else "-"


def _examples(evaluation: Evaluation) -> str:
    if not evaluation.failing:
        return ""
    chosen = (
        "They are the quartiles by return: a quarter of the failing machines earn more than the mild one, and a "
        "quarter less than the severe one. "
    )
    about = f"{chosen * (len(evaluation.failing) == 3)}Each is shown as it was counted, with the same start and noise."
    return html.heading("In motion") + html.paragraph(about) + animation.fragment(evaluation.failing)


def _go_on(m: Material, evaluation: Evaluation) -> str:
    """Where to learn which parameter costs the return."""
    if evaluation.explanation is not None:
        return html.see("Which parameter costs the return over all machines, as spota explain finds it", "attribution")
    if m.story.own_platform:
        return ""
    kept = (m.story.directory / "policy.npz").is_file()
    source = m.story.directory if kept else f"{m.story.config.get('policy')} --env {m.story.env}"
    about = "Which parameter costs the return over all machines, what to measure first, and which machine is the worst:"
    return html.paragraph(about) + html.code(f"spota explain {source}")
