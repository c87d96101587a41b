"""Sections → one page that needs nothing else: words, tables, plots and moving pictures in one file."""

import base64
import functools
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from importlib.metadata import version
from string import Template

from spota.show.pages import html, words
from spota.show.pages.failure_section import failures
from spota.show.pages.html import Section
from spota.show.pages.material import Material
from spota.show.pages.policy_sections import attribution, motion, sweeps, worst
from spota.show.pages.run_sections import certificate, gaps, iterations, learning, returns, trust
from spota.show.pages.setting_sections import configuration, distribution, reproduce
from spota.show.pages.story import Story
from spota.show.pages.take_section import take
from spota.show.pages.words import Fact, Verdict

ORDER: tuple[Callable[[Material], Section | None], ...] = (
    certificate, motion, failures, trust, iterations, gaps, returns, sweeps, attribution, worst, learning, distribution,
    configuration, take, reproduce,
)  # fmt: skip
"""Of the page of a run; each is absent where there is nothing to say."""


@dataclass(frozen=True)
class Head:
    """The top of a page."""

    title: str
    """Of the browser's window."""
    about: str
    """What the page is about."""
    verdict: Verdict
    status: str = ""
    """How the run ended, as `words.mark` says; it chooses the colour."""
    facts: Sequence[Fact] = ()
    notes: Sequence[str] = ()
    """Files that were edited, or could not be read."""


def page(material: Material) -> str:
    """The page of a run."""
    story = material.story
    verdict = words.verdict(story)
    title = f"{verdict.title}: {story.env}, {story.directory.name}"
    notes = (*story.edited, *story.damaged)
    head = Head(title, _about(story), verdict, words.mark(story), tuple(words.facts(story)), notes)
    return compose(head, [section for make in ORDER if (section := make(material)) is not None])


def compose(head: Head, parts: Sequence[Section]) -> str:
    """A whole page as text."""
    return Template(_read("page.html")).substitute(
        title=escape(head.title),
        style=_read("page.css"),
        status=escape(head.status),
        about=escape(head.about),
        verdict=escape(head.verdict.title),
        sentence=html.text(head.verdict.sentence),
        advice=html.paragraph(head.verdict.advice, "advice") if head.verdict.advice else "",
        facts=_facts(head.facts),
        notes=html.block(html.heading("Files that were edited, or could not be read") + html.items(head.notes), "notes")
        if head.notes
        else "",
        contents="".join(f'<li><a href="#{part.id}">{escape(part.short)}</a></li>\n' for part in parts),
        sections="".join(map(str, parts)),
        footer=f"Written by spota {escape(version('spota'))}. This page needs no network.",
        plotly=_plotly(),
        script=_read("page.js"),
    )


def _about(story: Story) -> str:
    kinds = {"spota": "SPOTA", "assess": f"an assessment of {story.config.get('policy', 'a policy')}"}
    what = kinds.get(story.kind, f"a training with {story.config.get('algo', 'one optimizer')}")
    return f"{story.env} · {what} · seed {story.config.get('seed', '–')} · {story.directory.name}"


def _facts(facts: Sequence[Fact]) -> str:
    rows = "".join(f"<div><dt>{html.text(f.label)}</dt><dd>{html.text(f.value)}</dd></div>\n" for f in facts)
    return f'<dl class="facts">\n{rows}</dl>\n' if rows else ""


@functools.cache
def _plotly() -> str:
    """The library as compressed text: less than half of its size; the page's script unpacks it."""
    from plotly.offline import get_plotlyjs  # slow to import

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()


def _read(name: str) -> str:
    return resources.files("spota.show.pages").joinpath(name).read_text("utf-8")
