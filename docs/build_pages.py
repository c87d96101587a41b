"""What the build of the docs makes itself: the start page, the changelog, the schemas, the commands from --help."""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
WIDTH = "96"  # characters of a help text
HERE = "<!-- commands -->"


def on_files(files: Files, config: Any) -> Files:
    """README and changelog are pages, too, whose links lose the way into docs/; the schemas lie beside them."""
    for page, source in (("index.md", "README.md"), ("changelog.md", "CHANGELOG.md")):
        text = (ROOT / source).read_text("utf-8")
        text = text.replace("](docs/", "](").replace("](CHANGELOG.md)", "](changelog.md)")
        files.append(File.generated(config, page, content=text))
    for schema in sorted((ROOT / "src" / "spota" / "files" / "schemas").glob("*.json")):
        files.append(File.generated(config, f"schema/{schema.name}", content=schema.read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put every command's help where the page asks for it."""
    return markdown.replace(HERE, commands()) if page.file.src_path == "commands.md" else markdown


def commands() -> str:
    """One section per command."""
    from spota.cli import COMMANDS

    return "\n\n".join(f"## spota {name}\n\n```text\n{help_of(name)}\n```" for name in COMMANDS)


def help_of(command: str) -> str:
    """What `spota COMMAND --help` prints, without colours."""
    from spota.cli import main

    os.environ["COLUMNS"] = WIDTH
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([command, "--help"])
    return re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue()).strip()
