"""`spota verify`: whether a run is as it was written."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from spota.commands.output import console, print_json
from spota.commands.running import say
from spota.runs.verification import Verification
from spota.runs.verification import verify as look_at

EDITED = 1
"""The exit code if something is not as it was written."""


def verify(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    json: bool = False,
) -> None:
    """Find out whether anything in a run was edited, exchanged or damaged after it was written.

    All checksums are compared: of the settings, the blocks, the policy, the table of distributions, and the
    certificates with the blocks that they come from. Then the certificates are computed again from these blocks, which
    takes some seconds. The exit code is 0 if everything fits, and 1 if not.

    It is a test of integrity, not of origin: someone who writes a whole run anew is not found out.

    Args:
        run: A run directory.
        json: Print one JSON document instead of words.
    """
    found = look_at(run)
    if json:
        figures = {"checked": found.checked, "wrong": found.wrong, "skipped": found.skipped}
        print_json({"run": str(run), "intact": found.intact, **figures})
    else:
        say(_words(run, found), console)
    if not found.intact:
        sys.exit(EDITED)


def _words(run: Path, found: Verification) -> str:
    lines = [*found.wrong, *found.skipped]
    lines += [f"As written: {', '.join(found.checked)}."] if found.checked else []
    end = f"{run} is as it was written." if found.intact else f"{run} was changed: do not rely on its certificate."
    return "\n".join([*lines, end])
