"""Whole runs on a host environment: certified, told what they cost, killed and continued, read by the commands."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest

import spota
from host_point_mass import HostPointMass
from spota.certify.events import Told
from spota.cli import main
from spota.driver import drive
from spota.polopt.ppo import PPO
from spota.runs import cost
from spota.runs.plan import Plan, complete, resolve
from spota.sim.identity import platform_sha256

ENV = f"{Path(__file__).parent.parent / 'host_point_mass.py'}:HostPointMass"
SETTINGS = {
    "n_c": 2, "n_r": 2, "n_G": 4, "n_J": 2, "looks": 1, "max_iterations": 1, "performance_domains": 40,
    "effort_references": 0, "hidden": (4,),
}  # fmt: skip
PPO_SETTINGS = {"iterations": 2, "rollouts": 2, "minibatches": 5, "evaluation_rollouts": 2, "evaluate_every": 1}
SETS = [f"spota.{n}={list(v) if isinstance(v, tuple) else v}" for n, v in SETTINGS.items()]
SETS += [f"{who}.{n}={v}" for who in ("candidate", "reference") for n, v in PPO_SETTINGS.items()]


@pytest.mark.slow  # three processes that compile
def test_a_killed_run_ends_with_the_same_numbers(tmp_path):
    told, tables = [], {"settings": SETTINGS, "candidate": PPO_SETTINGS, "reference": PPO_SETTINGS}
    whole = spota.train(ENV, preset="quick", out=tmp_path / "whole", listener=told.append, **tables)
    assert "HostPointMass" in (tmp_path / "whole" / "report.html").read_text()
    assert any(isinstance(event, Told) and "steps a second" in event.text for event in told)
    assert 0 <= whole.certificate.ucbog <= 20 and whole.certificate.env == "host-point-mass"
    command = [sys.executable, "-m", "spota.cli", "train", ENV, "--preset", "quick", "--out", str(tmp_path / "killed")]
    process = subprocess.Popen([*command, "--set", *SETS], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _wait_for(tmp_path / "killed" / "iteration-01", "candidate*", process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed" / "result.json").exists()
    plan = resolve(tmp_path / "killed" / "config.toml", {})
    again = drive(plan, spota.make(ENV), tmp_path / "killed", page=False)
    assert again.result.certificate.ucbog == whole.certificate.ucbog


def _wait_for(directory: Path, pattern: str, process: subprocess.Popen) -> None:
    until = time.monotonic() + 60
    while not list(directory.glob(pattern)):
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_cost_is_that_of_the_steps():
    env = HostPointMass()
    told = {"spota": {**SETTINGS, "effort_references": 2}, "candidate": PPO_SETTINGS, "reference": PPO_SETTINGS}
    plan = complete(Plan(ENV, preset="quick"), env, [("here", told)])
    rollouts = (1 + 4 + 2 * 3) * (2 * 2 * 2 + 3 * 2 * 2)  # candidate, references, two of them three times as long
    compared, unseen = 2 * (4 + 2) * 2 * 2, 40 + 2000
    assert cost.steps(plan, env) == (rollouts + compared + unseen) * 20
    assert "million" in str(cost.Cost(60_000_000, 300_000.0, True)) and "3:20 min" in str(
        cost.Cost(60_000_000, 300_000.0, True)
    )


def test_the_solver_there_is_ppo_and_gradients_are_refused():
    env = HostPointMass()
    assert isinstance(complete(Plan(ENV), env, []).reference, PPO)
    with pytest.raises(ValueError, match="Analytic goes through the simulator.*--solver ppo"):
        complete(Plan(ENV, solver="analytic"), env, [])


@pytest.mark.parametrize(
    "words",
    [
        ["rollout", ENV, "--policy", "POLICY", "--domains", "20"],
        ["sweep", "POLICY", "--env", ENV, "--param", "mass", "--points", "3", "--rollouts", "4"],
        ["compare", "POLICY", "POLICY2", "--env", ENV, "--domains", "20"],
    ],
)
def test_commands_work_on_it(words, tmp_path, capsys):
    for i, name in enumerate(("POLICY", "POLICY2")):
        spota.save(spota.fnn(jax.random.key(i), HostPointMass()), tmp_path / f"{name}.npz")
    main([str(tmp_path / f"{w}.npz") if w.startswith("POLICY") else w for w in words] + ["--json"])
    assert json.loads(capsys.readouterr().out)["env"] == "host-point-mass"


def test_identity_counts_fields():
    assert platform_sha256(HostPointMass()) == platform_sha256(HostPointMass())
    assert platform_sha256(HostPointMass()) != platform_sha256(HostPointMass(spread=0.1))
