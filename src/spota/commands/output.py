"""How commands speak: one JSON document on standard output, or words and tables for people."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDTH_OF_A_FILE = 160
"""Columns of a table that no terminal limits."""


def _width(stream) -> int | None:
    return None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_OF_A_FILE


console = Console(highlight=False, emoji=False, width=_width(sys.stdout))
progress_console = Console(stderr=True, highlight=False, emoji=False, width=_width(sys.stderr))


def warn(text: str) -> None:
    """A warning on standard error."""
    progress_console.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=not progress_console.is_terminal)


def say(text: str, where: Console = progress_console) -> None:
    """Sentences for people, on standard error unless told otherwise; only a terminal breaks lines."""
    where.print(text, markup=False, soft_wrap=not where.is_terminal)


def command(*words: str | Path) -> str:
    """A command of ours as a shell takes it, whatever its paths are called."""
    return shlex.join(["spota", *map(str, words)])


def print_json(document: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write one JSON document to standard output."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table with a title; the first column is text, the others are figures."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
