"""A real Ray on this machine: two workers, one of which dies, and code of one's own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spota.cluster.connecting import engine_on
from spota.cluster.tasks import Tasks

pytest.importorskip("ray")

LAB = '''
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from spota.envs.catapult import Catapult, sample_optimum
from spota.polopt.exact import extending


@dataclass(frozen=True, eq=False)
class Sling(Catapult):
    """A catapult of one's own."""

    name = "sling"


def deadly(key, env, domains, start):
    """Kills its worker once, in the first task with a domain on Venus."""
    del key, env
    venus, mark = float(domains["planet"].sum()), Path("killed")
    if venus and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return extending(sample_optimum(domains["planet"].size - venus, venus), start)


def wrong(key, env, domains, start):
    """Raises as soon as it is a reference, which has two domains."""
    if domains["planet"].size == 2:
        raise ValueError("the rope is torn.")
    return start
'''
SETTINGS = ("--set", "spota.n_c=5", "spota.n_r=2", "spota.n_G=6", "spota.n_J=1", "spota.n_b=50", "spota.looks=1",
            "spota.performance_domains=20", "spota.hidden=[2]", "spota.method=student_t_reference",
            "spota.max_iterations=1", "--beta", "0.001", "--no-report")  # fmt: skip


def train(where: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "spota.cli", "train", "lab.py:Sling", *arguments, *SETTINGS]
    return subprocess.run(command, capture_output=True, text=True, cwd=where)


def test_a_worker_that_dies_costs_time_only(tmp_path):
    (tmp_path / "lab.py").write_text(LAB)
    done = train(tmp_path, "--solver", "lab.py:deadly", "--on", "ray:2", "--out", "a", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["env"] == "lab.py:Sling"  # and no word of Ray's
    assert (tmp_path / "killed").exists()
    lines = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    lost, finished = ([line for line in lines if word in line] for word in ("lost", "worker"))
    assert [line["lost"] for line in lost] == ["its process died"]
    assert sorted(line["block"] for line in finished) == [
        "iteration-01/candidate/task-001", *(f"iteration-01/references/task-00{i}" for i in range(1, 7))
    ]  # fmt: skip


@pytest.mark.slow  # a second cluster
def test_a_solver_that_raises_ends_the_run_with_its_own_words(tmp_path):
    (tmp_path / "lab.py").write_text(LAB)
    failed = train(tmp_path, "--solver", "lab.py:wrong", "--on", "ray:1", "--out", "b")
    told = " ".join(failed.stderr.split())
    assert failed.returncode == 2 and "Traceback" not in told and "ray::" not in told
    assert "error: the rope is torn. It was problem" in told and "whose first domain is (planet=" in told
    assert (tmp_path / "b/iteration-01/candidate.npz").exists()


def test_nobody_answers():
    with pytest.raises(ValueError, match=r"--on ray://127.0.0.1:1: nobody answers there.*Is the cluster up"):
        engine_on("ray://127.0.0.1:1", Tasks()).__enter__()
