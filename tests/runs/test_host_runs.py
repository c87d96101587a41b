"""Whole runs on a host environment: certified, told what they cost, killed and continued, read by the commands."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import jax
import pytest

import spota
from host_point_mass import HostPointMass
from spota.certify.events import Told
from spota.cli import main
from spota.driver import drive
from spota.polopt.learning_time import learning_seconds
from spota.polopt.ppo import PPO
from spota.runs import cost
from spota.runs.plan import Plan, complete, resolve
from spota.sim.host_speed import Pace
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
    assert any(isinstance(event, Told) and "steps of the simulator" in event.text for event in told)
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


FRAIL = """
import time
from pathlib import Path
from host_point_mass import HostPointMass, Masses

class Torn(Masses):
    def step(self, command, active):
        if list(Path("run").glob("iteration-01/candidate*")) and not Path("mended").exists():
            broken()
        return super().step(command, active)

class Frail(HostPointMass):
    time_limit = 5.0

    def open(self, domains, seeds):
        return Torn(self, domains, seeds)

def broken():
    {what}
"""


@pytest.mark.slow  # a whole run each, which compiles
@pytest.mark.parametrize(
    ("what", "said"),
    [("raise OSError('the licence has expired')", "OSError: the licence has expired"), ("time.sleep(600)", "it hangs")],
    ids=["raises", "hangs"],
)
def test_a_run_whose_simulator_breaks_keeps_what_it_has_and_goes_on(tmp_path, monkeypatch, capsys, what, said):
    monkeypatch.chdir(tmp_path)
    Path("frail.py").write_text(FRAIL.format(what=what))
    command = ["train", "frail.py:Frail", "--preset", "quick", "--out", "run", "--no-report", "--set", *SETS]
    with pytest.raises(SystemExit) as stop:
        main(command)
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert stop.value.code == 2 and error.startswith("error: host-point-mass broke on ")
    assert said in error and "mass=" in error
    kept = {path: path.read_bytes() for path in Path("run", "iteration-01").glob("candidate*")}
    assert kept and not Path("run", "result.json").exists()
    Path("mended").touch()
    main(command)
    assert Path("run", "result.json").exists()
    assert {path: path.read_bytes() for path in kept} == kept


def _wait_for(directory: Path, pattern: str, process: subprocess.Popen) -> None:
    until = time.monotonic() + 600  # of a busy machine
    while not list(directory.glob(pattern)):
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_cost_is_that_of_the_steps():
    env = HostPointMass()
    told = {"spota": {**SETTINGS, "effort_references": 2}, "candidate": PPO_SETTINGS, "reference": PPO_SETTINGS}
    plan = complete(Plan(ENV, preset="quick"), env, [("here", told)])
    usual, longer = 2 * 2 * 2 + 3 * 2 * 2, 6 * 2 * 2 + 7 * 2 * 2  # updates and evaluations; two references train longer
    compared, unseen = 2 * (4 + 2) * 2 * 2, 40 + 2000
    assert cost.steps(plan, env) == ((1 + 4) * usual + 2 * longer + compared + unseen) * 20
    a_call_each = cost.simulating(cost.passes(plan), env, Pace(call=1.0, machine=0.0, opening=0.0))
    assert a_call_each == 20 * (2 * (2 + 3) + 6 + 7 + 2 + 2 + -(-2040 // 64))  # machines are side by side, 64 at most
    assert cost.simulating(cost.passes(plan), env, Pace(0.0, 1.0, 0.0)) >= cost.steps(plan, env)
    said = str(cost.Cost(60_000_000, 150.0, 50.0))
    assert "60 million" in said and "3:20 min here, 50 s of it to learn" in said
    assert "or 5:00 min if it is looked at" in str(cost.Cost(60_000_000, 150.0, 50.0, 100.0))
    assert "Beside the trainings" in str(cost.Cost(60_000_000, 150.0, None))


def test_further_looks_cost_what_their_references_do():
    env = HostPointMass()
    settings = {**SETTINGS, "looks": 3, "performance_domains": 500}
    told = {"spota": settings, "candidate": PPO_SETTINGS, "reference": PPO_SETTINGS}
    plan = complete(Plan(ENV, preset="quick"), env, [("here", told)])
    one_reference = 2 * 2 * 2 + 3 * 2 * 2 + 2 * 2 * 2  # updates, evaluations, and both sides of the comparison
    rollouts = sum(one.times * one.policies * one.rollouts for one in cost.further_passes(plan))
    assert rollouts == (4 + 8) * one_reference + 3 * 500


def test_every_policy_after_the_first_costs_something_in_a_call():
    pace = Pace(call=1.0, machine=0.1, opening=0.0, policy=0.5)
    assert pace.seconds(10, 4, 3) == 4 * (1.0 + 1.0 + 2 * 0.5)


@dataclass(frozen=True, eq=False)
class Counted(HostPointMass):
    """Counts what is simulated."""

    machines: list[int] = field(default_factory=list)

    def open(self, domains, seeds):
        self.machines.append(seeds.size)
        return super().open(domains, seeds)


@pytest.mark.slow  # a whole run, which compiles
def test_a_run_simulates_what_was_estimated():
    env = Counted()
    tables = {"spota": {**SETTINGS, "performance_domains": 500}, "candidate": PPO_SETTINGS, "reference": PPO_SETTINGS}
    plan = complete(Plan(ENV, preset="quick"), env, [("here", tables)])
    drive(plan, env)
    of_checks = sum(env.machines[: env.machines.index(64)])  # the checks before have fewer machines
    wanted = cost.steps(plan, env) / env.max_steps
    assert wanted / 1.5 < sum(env.machines) - of_checks < 1.5 * wanted
    learned = learning_seconds(plan.candidate, env, 1, 2, (4,))
    assert 0 < learned < 60


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
