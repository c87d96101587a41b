"""Pieces of a page. All text is escaped here, so that no name from a file can become markup."""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from spota.show.pages.traces import Plot


@dataclass(frozen=True)
class Section:
    """A part of the page; the list of contents has its short name."""

    id: str
    short: str
    title: str
    body: str

    def __str__(self) -> str:
        """As HTML."""
        return f'<section id="{escape(self.id)}">\n{heading(self.title, 2)}{self.body}</section>\n'


def text(words: str) -> str:
    """Escaped, with spaces before % that do not break."""
    return escape(words).replace(" %", "&nbsp;%")


def heading(words: str, level: int = 3, beside: str = "") -> str:
    """A heading; `beside` is smaller and belongs to it."""
    more = f" <small>{text(beside)}</small>" if beside else ""
    return f"<h{level}>{text(words)}{more}</h{level}>\n"


def paragraph(words: str, kind: str = "") -> str:
    """Text, in the style of `kind`."""
    return f"<p{_class(kind)}>{text(words)}</p>\n"


def see(words: str, section: str) -> str:
    """A reference to another section of the page."""
    return f'<p><a href="#{escape(section)}">{text(words)}</a></p>\n'


def items(lines: Iterable[str], kind: str = "") -> str:
    """A list."""
    entries = "".join(f"<li>{text(line)}</li>\n" for line in lines)
    return f"<ul{_class(kind)}>\n{entries}</ul>\n"


def block(body: str, kind: str) -> str:
    """A box in the style of `kind` around what is HTML already."""
    return f"<div{_class(kind)}>\n{body}</div>\n"


def code(words: str) -> str:
    """Commands or files, as they are."""
    return f"<pre><code>{escape(words)}</code></pre>\n"


def folded(summary: str, body: str) -> str:
    """What only some readers want to see."""
    return f"<details>\n<summary>{text(summary)}</summary>\n{body}</details>\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (0,), marked: int = -1) -> str:
    """A table that scrolls by itself on a narrow screen; columns in `words` hold text, the others figures."""
    kinds = ["" if i in words else _class("number") for i in range(len(head))]
    top = "".join(f'<th scope="col"{kind}>{text(cell)}</th>' for cell, kind in zip(head, kinds, strict=True))
    lines = []
    for i, row in enumerate(rows):
        first = f'<th scope="row"{kinds[0]}>{text(row[0])}</th>'
        cells = "".join(f"<td{kind}>{text(cell)}</td>" for cell, kind in zip(row[1:], kinds[1:], strict=True))
        lines.append(f"<tr{_class('marked' if i == marked else '')}>{first}{cells}</tr>\n")
    body = "".join(lines)
    inner = f"<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>\n"
    return f'<div class="scroll" tabindex="0">\n<table>\n{inner}</table>\n</div>\n'


def figure(plot: Plot, explanation: str = "", title: str = "", beside: str = "") -> str:
    """A plot, what it shows in words, and its data for the page's script."""
    head = heading(title, 3, beside) if title else ""
    words = f"<figcaption>{text(explanation)}</figcaption>\n" if explanation else ""
    return (
        f'<figure class="figure">\n{head}<script type="application/json">{script_data(plot.to_dict())}</script>\n'
        f'<div class="plot" role="img" aria-label="{escape(plot.alt)}" style="height: {plot.height}px"></div>\n'
        f"{words}</figure>\n"
    )


def script_data(document: object) -> str:
    """JSON that is safe inside a script element."""
    words = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return words.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def download(name: str, data: bytes, words: str) -> str:
    """A link to a file that the page itself holds."""
    content = base64.b64encode(data).decode()
    address = f"data:application/octet-stream;base64,{content}"
    return f'<p><a download="{escape(name)}" href="{address}">{text(words)}</a></p>\n'
