"""One way through: `spota train`, `spota.train` and an experiment leave the same files."""

from pathlib import Path

import pytest

import spota
from spota.cli import main
from spota.commands.experiment_runs import run_all
from spota.runs import plan

SETTINGS = {"n_c": 5, "n_r": 2, "n_G": 4, "n_J": 1, "n_b": 50, "performance_domains": 20, "max_iterations": 2,
            "hidden": (2,), "growth": "constant", "method": "student_t_reference"}  # fmt: skip
CHANGING = ("metrics.jsonl", "result.json", "report.html", ".lock")
"""Files that name seconds, or the moment at which they were written."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """The same run by all three ways."""
    places = {way: tmp_path_factory.mktemp("driven") / way for way in ("command", "python", "experiment")}
    told = [f"spota.{name}={list(value) if isinstance(value, tuple) else value}" for name, value in SETTINGS.items()]
    common = {"env": "catapult", "preset": "quick", "seed": 3}
    main(["train", "catapult", "--preset", "quick", "--seed", "3", "--out", str(places["command"]), "--set", *told])
    spota.train("catapult", preset="quick", seed=3, settings=SETTINGS, out=places["python"])
    chosen = plan.resolve(None, common, [("the test", {"spota": SETTINGS})])
    run_all({"experiment": chosen}, places["experiment"].parent)
    return places


def files(directory: Path) -> dict[str, Path]:
    return {p.relative_to(directory).as_posix(): p for p in directory.rglob("*") if p.is_file()}


def test_all_ways_leave_the_same_files(runs):
    command, python, experiment = (files(runs[way]) for way in ("command", "python", "experiment"))
    assert set(command) == set(python) == set(experiment)
    assert "report.html" in command


@pytest.mark.parametrize("other", ["python", "experiment"])
def test_what_they_hold_is_the_same(runs, other):
    mine, theirs = files(runs["command"]), files(runs[other])
    for name in mine:
        if name not in CHANGING and not name.endswith(".npz"):  # blocks name their seconds
            assert mine[name].read_bytes() == theirs[name].read_bytes(), name
