"""A platform, a policy and a solver of one's own, from the command line."""

import json
import tomllib
from pathlib import Path

import pytest

import spota
from spota.cli import main

SLING = '''
from dataclasses import dataclass

import jax.numpy as jnp

from spota.envs.catapult import Catapult, sample_optimum
from spota.polopt.exact import extending


@dataclass(frozen=True, eq=False)
class Sling(Catapult):
    """A catapult of one's own."""

    name = "sling"

    def reward(self, state, action, xi):
        return 1.0 * super().reward(state, action, xi)


def weak(observation):
    return jnp.full((1, *observation.shape[1:]), 0.2)


def flat(observation):
    return observation[0]


def closed_form(key, env, domains, start):
    venus = float(domains["planet"].sum())
    return extending(sample_optimum(domains["planet"].size - venus, venus), start)
'''
SETTINGS = ("--set", "spota.n_r=2", "spota.n_G=10", "spota.n_J=1", "spota.n_b=50", "spota.performance_domains=20",
            "spota.hidden=[2]", "spota.method=student_t_reference", "spota.looks=1", "spota.n_c=5")  # fmt: skip
TRAIN = (*SETTINGS, "spota.max_iterations=1", "--no-report")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("sling.py").write_text(SLING)


def run(capsys, *arguments: str) -> str:
    main(arguments)
    return capsys.readouterr().out


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def config(directory: str) -> dict:
    return tomllib.loads(Path(directory, "config.toml").read_text())


def test_a_platform_is_trained_on_and_found_again(capsys):
    told = run(capsys, "train", "./sling.py:Sling", *TRAIN, "--out", "a")
    assert "spota rollout sling.py:Sling --policy a" in told
    assert config("a")["env"] == "sling.py:Sling"
    assert json.loads(Path("a/certificate.json").read_text())["env"] == "sling"
    again = json.loads(run(capsys, "train", "--resume", "a", "--no-report", "--json"))
    assert again["certificate"] == json.loads(Path("a/certificate.json").read_text())
    assert "computed again from their blocks" in run(capsys, "verify", "a")
    assert json.loads(run(capsys, "compare", "a", "--domains", "10", "--json"))["env"] == "sling"
    run(capsys, "report", "a", "--quick")
    assert Path("a/evaluation.json").exists() and "cannot be found again" not in Path("a/report.html").read_text()

    Path("sling.py").write_text(SLING.replace("1.0 *", "2.0 *"))
    assert "(the platform's fields or code differ; undo that to go on)" in fail(capsys, "train", "--resume", "a")
    assert "sling.py:Sling has other fields or other code than when a was made" in fail(capsys, "compare", "a")
    assert "the code of sling.py:Sling is another one" in run(capsys, "verify", "a")
    run(capsys, "compare", "a", "--env", "sling.py:Sling", "--domains", "10")
    Path("a/evaluation.json").unlink(missing_ok=True)
    run(capsys, "report", "a", "--quick")
    assert "cannot be found again: sling.py:Sling has other" in Path("a/report.html").read_text()

    Path("sling.py").unlink()
    assert "there is no file sling.py in" in fail(capsys, "train", "--resume", "a")
    run(capsys, "report", "a", "--quick")  # the page is there, without rollouts
    assert "there is no file sling.py in" in Path("a/report.html").read_text()
    Path("a/policy.npz").rename("policy.npz")
    assert "policy.npz was made for 'sling', a platform of your own; say where" in fail(capsys, "compare", "policy.npz")


def test_a_policy_is_assessed_and_found_again(capsys):
    told = run(capsys, "assess", "sling.py:weak", "--env", "sling:Sling", *SETTINGS, "--no-report", "--out", "a")
    assert "Refuted" in told or "Undecided" in told
    assert (config("a")["policy"], config("a")["env"]) == ("sling.py:weak", "sling:Sling")
    main(["assess", "--resume", "a", "--no-report"])
    assert "a holds this run already, and it is finished" in capsys.readouterr().err
    Path("sling.py").write_text(SLING.replace("0.2", "0.3"))
    assert "(the policy differs; undo that to go on)" in fail(capsys, "assess", "--resume", "a", "--no-report")


def test_an_optimizer_solves_and_is_found_again(capsys):
    run(capsys, "train", "catapult", "--solver", "sling.py:closed_form", *TRAIN, "--out", "a")
    mine, theirs = spota.load("a/policy.npz"), spota.train("catapult", settings=_settings()).policy
    assert isinstance(mine, spota.FNN)
    assert float(mine.biases[-1][0]) == pytest.approx(float(theirs.biases[-1][0]), rel=1e-4)  # it is a closed form, too
    assert (config("a")["solver"], config("a")["candidate"]) == ("sling.py:closed_form", "own_sling.closed_form")
    run(capsys, "train", "--resume", "a", "--no-report")
    assert "computed again from their blocks" in run(capsys, "verify", "a")
    Path("sling.py").write_text(SLING.replace("float(domains", "0.5 * float(domains"))
    told = fail(capsys, "train", "--resume", "a", "--no-report")
    assert "solver_sha256 is" in told and "(the solver's code differs; undo that to go on)" in told


def _settings() -> dict:
    pairs = [setting.removeprefix("spota.").split("=") for setting in SETTINGS[1:]]
    values = {name: value if name == "method" else json.loads(value) for name, value in pairs}
    return {**values, "hidden": tuple(values["hidden"]), "max_iterations": 1}


def test_other_commands_take_them_too(capsys):
    assert "A catapult of one's own." in run(capsys, "envs", "sling.py:Sling")
    rollout = ("rollout", "sling.py:Sling", "--domains", "10", "--json")
    assert json.loads(run(capsys, *rollout, "--policy", "sling.py:weak"))["env"] == "sling"
    set_of = json.loads(run(capsys, "domains", "sling.py:Sling", "-n", "5", "--json"))
    assert set_of["file"] == "runs/sling-domains-0.json"
    shown = run(capsys, "sweep", "sling.py:weak", "--env", "sling.py:Sling", "--param", "planet", "--rollouts", "2")
    assert "weak" in shown
    trained = json.loads(run(capsys, "train", "sling.py:Sling", "--algo", "analytic", "--domains", "2", "--hidden", "2",
                             "--set", "iterations=1", "--out", "b", "--json"))  # fmt: skip
    assert trained["env"] == config("b")["env"] == "sling.py:Sling"


def test_python_takes_them_by_name_and_goes_on_with_the_commands_run(capsys):
    run(capsys, "train", "sling.py:Sling", *TRAIN, "--out", "a")
    again = spota.train("sling.py:Sling", settings=_settings(), out="a")
    assert again.certificate.to_dict() == json.loads(Path("a/certificate.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "sling.py:Slin"), "sling.py has no 'Slin'; did you mean 'Sling'?"),
        (("train", "sling.py:weak"), "sling.py:weak is the function weak; name a platform: a class that extends"),
        (("rollout", "sling.py:Sling", "--policy", "sling.py:flat"), "it lacks the axis of actuators: write action[N"),
        (("rollout", "sling.py:Sling", "--policy", "sling.py:Sling"), "of the kind Sling; name a policy: a function"),
        (("train", "catapult", "--solver", "sling.py:weak"), "weak(observation) cannot be called with (key, env, dom"),
        (("train", "catapult", "--solver", "simplex"), "There is no solver 'simplex'; there are: default"),
        (("assess", "sling.py:weak"), "does not know its platform; add --env"),
        (("play", "sling.py:Sling", "--policy", "sling.py:weak"), "sling has no animation"),
    ],
)
def test_mistakes_end_with_one_sentence(capsys, arguments, message):
    assert message in fail(capsys, *arguments)
    assert not Path("runs").exists()


def test_code_that_comes_with_a_run_is_never_executed(capsys):
    run(capsys, "train", "sling.py:Sling", *TRAIN, "--out", "a")
    Path("a/sling.py").write_text(f"{SLING}\nopen('executed', 'w')\n")
    for name in ("config.toml", ".config-as-made.toml"):
        Path("a", name).write_text(Path("a", name).read_text().replace("sling.py:Sling", "a/sling.py:Sling"))
    Path("sling.py").unlink()
    for arguments in (("train", "--resume", "a"), ("compare", "a"), ("explain", "a")):
        assert "a/sling.py:Sling, which lies inside the run" in fail(capsys, *arguments)
    run(capsys, "report", "a", "--quick")
    with pytest.raises(SystemExit):  # its blocks are those of other settings
        main(["verify", "a"])
    assert not Path("executed").exists()
