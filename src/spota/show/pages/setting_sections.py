"""Sections about what a run was given: the distribution, the configuration, and how to get the same again."""

import platform
from importlib.metadata import version

import numpy as np
import tomli_w

from spota.show.pages import domain_figures, html
from spota.show.pages.html import Section
from spota.show.pages.material import Material
from spota.show.pages.story import BLOCKS, Story
from spota.text import duration


def distribution(m: Material) -> Section | None:
    """The table of the distribution, and where the drawn domains lie in it."""
    nu = m.domain
    if nu is None:
        return None
    about = (
        "Machines are drawn from this table, each parameter by itself. Whatever this page says about unseen domains "
        "holds for draws from it. N(μ, σ) is a normal law, cut at ±3σ; U(a, b) is uniform."
    )
    rows = [(name, str(p.marginal), f"{p.nominal_value:.4g}", p.unit, p.meaning, p.symbol) for name, p in nu.items()]
    head = ("parameter", "distribution", "nominal", "unit", "meaning", "symbol")
    body = html.paragraph(about) + html.table(head, rows, words=(0, 1, 3, 4, 5))
    drawn = _drawn(m)
    if drawn:
        body += html.figure(
            domain_figures.domains(drawn, nu),
            "What you see: a line per parameter, from its smallest to its largest possible value, and where on it the "
            "domains lie that were trained on.",
            "The domains that were drawn",
        )
    return Section("distribution", "Distribution", "The distribution of the machines", body)


def _drawn(m: Material) -> dict[str, dict[str, np.ndarray]]:
    shown, drawn = m.story.shown, {}
    if shown is not None and shown.references is not None:
        drawn["references"] = dict(shown.references.domains)
    if shown is not None and shown.candidate is not None:
        drawn["candidate"] = dict(shown.candidate.domains)
    if drawn and m.evaluation is not None and m.evaluation.explanation is not None:
        there = m.evaluation.explanation["worst"][0]["domain"]
        drawn["worst found"] = {name: np.array([value]) for name, value in there.items()}
    return drawn


def configuration(m: Material) -> Section:
    """Everything that decided the result."""
    body = html.folded("config.toml", html.code(tomli_w.dumps(dict(m.story.config))))
    return Section("configuration", "Configuration", "The configuration", body)


def reproduce(m: Material) -> Section:
    """Commands, versions and costs."""
    story, here = m.story, m.story.directory
    from_python = story.config.get("solver") == "own" or "platform" in story.config
    again = f"spota {story.command} --config {here / 'config.toml'} --out runs/again\n"
    about = (
        "The run was started from Python, with objects of its own; the same call gives the same numbers."
        if from_python
        else "The same settings and the same seed give the same numbers on the same kind of machine."
    )
    sha = story.certificate.policy_sha256 if story.certificate else None
    facts = {
        "spota": version("spota"),
        "jax": version("jax"),
        "Python": platform.python_version(),
        "seed": str(story.config.get("seed", "–")),
        "policy, SHA-256": sha or "–",
        "run directory": str(here),
    }
    body = html.paragraph(about) + html.code(("" if from_python else again) + f"spota report {here}")
    body += html.table(("this page", "was made with"), facts.items(), words=(0, 1)) + _costs(story) + _workers(story)
    return Section("reproduce", "Reproduce", "How to reproduce it", body)


def _workers(story: Story) -> str:
    """Who has worked, and who was lost."""
    done = [line for line in story.tasks if "worker" in line]
    lost = [line for line in story.tasks if "lost" in line]
    if not done and not lost:
        return ""
    hosts: dict[str, list[float]] = {}
    for line in done:
        hosts.setdefault(str(line["worker"]).rpartition("/")[0], []).append(float(line["seconds"]))
    rows = [(host, str(len(times)), duration(sum(times))) for host, times in sorted(hosts.items())]
    again = len({line["block"] for line in lost})
    tasks = "no task" if not again else "1 task" if again == 1 else f"{again} tasks"
    about = f"{len(lost)} worker{'' if len(lost) == 1 else 's'} were lost, and {tasks} begun anew"
    reasons = sorted({str(line["lost"]) for line in lost})
    text = f"{about}{': ' + '; '.join(reasons) if reasons else ''}. No number depends on it."
    body = html.table(("machine", "tasks", "time of its workers"), rows, words=(0,))
    return html.heading("Who has worked on it") + body + html.paragraph(text)


def _costs(story: Story) -> str:
    names = [b for b in BLOCKS if any(b in i.seconds for i in story.iterations)]
    if not names:
        return ""
    rows = [
        (str(i.number), *(duration(i.seconds[b]) if b in i.seconds else "–" for b in names)) for i in story.iterations
    ]
    return html.heading("What it took") + html.table(("iteration", *names), rows)
