"""`spota report`: one page about a run, to open, print or send."""

import webbrowser
from pathlib import Path
from typing import Annotated

import tyro

from spota.commands.output import console, print_json, warn
from spota.commands.progress import bar
from spota.files.atomic import check_writable


def report(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: RUN/report.html)")] = None,
    open: bool = False,
    quick: bool = False,
    json: bool = False,
) -> None:
    """Write one page about a run: its certificate, how far to trust it, plots, and the policy at work.

    The page is one file that opens without a network; send it to whom you like. It works for runs that are certified,
    refuted, undecided, not finished, for assessments and for plain trainings, and says which it is.

    Args:
        run: A run directory.
        out: The file to write.
        open: Show it in a browser.
        quick: Without what takes a minute: sweeps, attribution, and the search for the worst domain.
        json: Print one JSON document that names the file.
    """
    from spota.show import pages  # slow to import

    check_writable(out or run / "report.html")
    for note in pages.read(run).edited:
        warn(note)
    with bar("reading …") as show:
        written = pages.write(run, out=out, full=not quick, tell=show)
    if open:
        webbrowser.open(written.resolve().as_uri())
    if json:
        print_json({"run": str(run), "file": str(written), "bytes": written.stat().st_size})
        return
    console.print(f"Wrote {written}: open it in a browser.", soft_wrap=True, markup=False)
