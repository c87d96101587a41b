"""A run directory → one self-contained page: what was certified, how far to trust it, and the policy at work.

write("runs/a")                # runs/a/report.html
write("runs/a", full=False)    # without what takes a while: sweeps, attribution, the search for the worst domain
"""

from pathlib import Path

from spota.analysis.standings import Standings
from spota.files.atomic import write_atomically
from spota.fit.fitting import Fit
from spota.show.pages.comparison import comparison_page
from spota.show.pages.evaluation import Evaluation, Tell, evaluate_run
from spota.show.pages.fit import fit_page
from spota.show.pages.material import Material
from spota.show.pages.page import page
from spota.show.pages.reading import read
from spota.show.pages.story import Story
from spota.sim.env import Platform

__all__ = ["Evaluation", "Material", "Story", "Tell", "page", "read", "write", "write_comparison"]


def write(
    directory: str | Path,
    env: Platform | None = None,
    *,
    out: str | Path | None = None,
    full: bool = True,
    tell: Tell | None = None,
) -> Path:
    """Write the page of a run: to report.html in its directory, unless told another file.

    What is computed for the page is kept in the run directory, so that the next time is quick. `env` is the platform,
    if the run was given its own as a Python object.
    """
    story = read(directory)
    try:
        material = Material(story, evaluate_run(story, env, full, tell))
    except ValueError as reason:  # no policy, or one that cannot be run: the page says so
        material = Material(story, None, str(reason))
    return _write(Path(out) if out else story.directory / "report.html", page(material))


def write_comparison(result: Standings, path: str | Path, *, about: str, command: str) -> Path:
    """Write the page of a comparison; `about` says which domains, `command` how to get it again."""
    return _write(Path(path), comparison_page(result, about, command))


def write_fit(found: Fit, path: str | Path, command: str) -> Path:
    """Write the page of a fit; `command` says how to get it again."""
    return _write(Path(path), fit_page(found, command))


def _write(path: Path, text: str) -> Path:
    return write_atomically(path, lambda file: file.write(text.encode()))
