"""The command line as a user meets it."""

import json
import subprocess
import sys

import pytest

from spota.cli import main


def run(capsys, *arguments: str):
    main(arguments)
    return capsys.readouterr().out


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def test_envs_lists_every_platform_with_parameters_and_units(capsys):
    text = run(capsys, "envs", "ball-balancer")
    for part in (
        "ball-balancer",
        "ball_mass",
        "N(0.005, 0.0006) ±3σ",
        "kg",
        "V_x from -5 to 5 V",
        "2000",
    ):
        assert part in text
    listed = json.loads(run(capsys, "envs", "--json"))
    names = {env["name"] for env in listed}
    assert {"ball-balancer", "cart-pole", "cart-pole-swing-up", "qube", "qube-swing-up", "catapult"} == names


def test_nominal_values_that_are_never_drawn_are_explained(capsys):
    text = run(capsys, "envs", "ball-balancer")
    assert "-0.1 *" in text and "-0.074 *" in text
    assert "* The nominal value lies outside the distribution, which never draws it" in text
    assert "*" not in run(capsys, "envs", "cart-pole")


def test_rollout_prints_a_table_or_json_with_the_same_figures(capsys):
    arguments = ("rollout", "cart-pole", "--policy", "lqr", "--domains", "20", "--seed", "3")
    document = json.loads(run(capsys, *arguments, "--json"))
    assert document["n"] == 20
    assert 0 <= document["survived"] <= 1
    assert f"{document['mean']:.1f}" in run(capsys, *arguments)
    assert json.loads(run(capsys, *arguments, "--json")) == document


def test_nominal_runs_on_the_nominal_domain(capsys):
    arguments = ("rollout", "cart-pole", "--domains", "20", "--json")
    assert json.loads(run(capsys, *arguments, "--nominal"))["std"] < json.loads(run(capsys, *arguments))["std"]


def test_unknown_platform_gets_a_suggestion(capsys):
    assert "did you mean 'cart-pole'?" in fail(capsys, "rollout", "cartpole")


def test_an_unknown_study_gets_a_suggestion(capsys):
    assert "no study 'convergense'; did you mean 'convergence'?" in fail(capsys, "reproduce", "convergense")


def test_a_mistyped_command_or_choice_gets_a_suggestion(capsys):
    assert "There is no command 'trainn'; did you mean 'train'?" in fail(capsys, "trainn", "cart-pole")
    assert "preset = 'quik' is not a choice; did you mean 'quick'?" in fail(
        capsys, "train", "catapult", "--preset", "quik"
    )
    assert "there are: tuned, quick, paper." in fail(capsys, "train", "catapult", "--preset", "fast")


def test_zero_domains_are_refused(capsys):
    assert "at least 1" in fail(capsys, "rollout", "cart-pole", "--domains", "0")


def test_nothing_to_play_is_refused(capsys, tmp_path):
    assert "at least 1" in fail(capsys, "play", "cart-pole", "--domains", "0", "--out", str(tmp_path / "a.html"))
    assert not (tmp_path / "a.html").exists()


def test_unknown_policy_is_refused(capsys):
    assert "neither a policy file, a run directory, FILE.py:NAME nor a controller" in fail(
        capsys, "rollout", "cart-pole", "--policy", "nothing.npz"
    )


def test_play_writes_a_picture(capsys, tmp_path):
    target = tmp_path / "rollout.html"
    assert str(target.name) in "".join(
        run(capsys, "play", "cart-pole", "--policy", "lqr", "--out", str(target)).split()
    )
    assert "<canvas" in target.read_text()
    assert "write .html or .gif" in fail(capsys, "play", "cart-pole", "--out", str(tmp_path / "rollout.mp4"))


def test_help_teaches_and_nothing_shows_a_traceback():
    command = [sys.executable, "-m", "spota.cli"]
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert "rollout" in shown
    wrong = subprocess.run([*command, "rollout", "cart-pole", "--polcy", "lqr"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "--policy" in wrong.stdout + wrong.stderr
    assert "Traceback" not in wrong.stderr


@pytest.mark.parametrize("arguments", [("reproduce", "--help"), ("envs", "--json")])
def test_a_reader_who_has_seen_enough_is_no_error(arguments):
    command = [sys.executable, "-m", "spota.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    process.stdout.close()
    _, told = process.communicate()
    assert (told, process.returncode) == ("", 141)


def test_a_table_is_written_and_drawn_from(capsys, tmp_path):
    table = tmp_path / "table.toml"
    assert "--domain" in run(capsys, "envs", "cart-pole", "--write", str(table))
    arguments = ("rollout", "cart-pole", "--domains", "20", "--json")
    same = json.loads(run(capsys, *arguments, "--domain", str(table)))
    assert same == json.loads(run(capsys, *arguments))
    table.write_text(table.read_text().replace("center = 0.089", "center = 0.15"))
    assert json.loads(run(capsys, *arguments, "--domain", str(table)))["mean"] != same["mean"]
    assert "N(0.15, 0.0178)" in run(capsys, "envs", "cart-pole", "--domain", str(table))


def test_what_cannot_be_asked_of_recordings_is_said(capsys, tmp_path):
    assert "neither a platform" in fail(capsys, "applies", str(tmp_path), "a.npz")
    assert "There is no recording a.npz" in fail(capsys, "applies", "cart-pole", "a.npz")
    assert "is not of a qube" in fail(capsys, "applies", "qube", "sample:cart-pole/swing-up-0")
    assert "--machines 5" in fail(capsys, "applies", "qube", "sample:qube/swing-up-0", "--machines", "5")
    assert "no parameter 'pole'" in fail(capsys, "fit", "sample:qube/swing-up-0", "--env", "qube", "--widen", "pole=3")
