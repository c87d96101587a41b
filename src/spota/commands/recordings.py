"""Recordings that people name on the command line, with what was done to them before anybody looks at them."""

from collections import defaultdict
from collections.abc import Sequence

from spota.commands.output import say
from spota.fit.recording import Recording
from spota.fit.recording_file import read_all
from spota.sim.env import Platform

NAMED = 2
"""How many recordings a note names; the others are counted."""


def read_recordings(sources: Sequence[str], env: Platform) -> list[Recording]:
    """Every recording that is named; what was left out, interpolated or not used is said on standard error."""
    found = read_all(sources, env)
    about: dict[str, list[str]] = defaultdict(list)
    for recording in found:
        for note in recording.notes:
            about[note].append(recording.name)
    for note, names in about.items():
        say(f"{_listed(names)}: {note}")
    return found


def _listed(names: Sequence[str]) -> str:
    others = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {others} more" if others > 0 else "")
