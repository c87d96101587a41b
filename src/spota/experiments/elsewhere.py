"""Whole runs as tasks: a worker makes one in a directory of its own, and all its files come back.

Workers need no disk in common. A run that was begun on this machine goes on here, so that no run is of two kinds.
"""

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from spota.cluster.calls import called
from spota.cluster.engine import Engine
from spota.cluster.jobs import Hear
from spota.driver import drive, drive_training
from spota.runs.plan import Plan
from spota.runs.platforms import planned
from spota.runs.training import Training

Files = dict[str, bytes]
"""What a run has written, by the names below its directory."""


def make_elsewhere(engine: Engine, works: Mapping[str, Plan | Training], directory: Path, hear: Hear) -> None:
    """Let workers make the runs of which nothing is there yet; each is complete or absent."""
    new = {name: (work,) for name, work in works.items() if not (directory / name).exists()}
    if not new:
        return
    directory.mkdir(parents=True, exist_ok=True)
    with closing(called(engine, whole_run, new, hear)) as arriving:
        for name, files in arriving:
            _written(files, directory / name)


def whole_run(work: Plan | Training) -> Files:
    """A run from its beginning to its end, in a directory that is gone afterwards; its page is written elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        if isinstance(work, Plan):
            drive(work, planned(work), directory, page=False, warn=lambda _: None)
        else:
            drive_training(work, directory, warn=lambda _: None)
        paths = [path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != ".lock"]
        return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def _written(files: Files, directory: Path) -> None:
    """The run under its name, when all of it is there."""
    new = directory.with_name(f".{directory.name}.tmp")
    shutil.rmtree(new, ignore_errors=True)
    for name, content in files.items():
        path = new / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    new.rename(directory)
