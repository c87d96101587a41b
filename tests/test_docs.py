"""The docs speak of commands, flags, names and files that exist; the site builds; the examples run."""

import functools
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import tyro

import spota
from spota.certify.settings import Spota
from spota.cli import COMMANDS, command
from spota.cluster.tasks import Tasks
from spota.envs.catapult import expected_return, true_optimum
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in FENCED.findall(page.read_text()) if name == language]


def command_lines() -> list[str]:
    lines = [line for page in PAGES for text in blocks(page, "") for line in text.splitlines()]
    return sorted({line for line in lines if line.startswith("spota ")})


def mentions() -> list[str]:
    """Commands in the middle of a sentence; they may have placeholders."""
    return sorted({m for page in PAGES for m in re.findall(r"`(spota [a-z][^`\n]*)`", page.read_text())})


def without_effect(command: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(command)
    def told(*positional, **named):
        return positional, named

    return told


def parse(arguments: list[str]) -> Any:
    commands = {name: without_effect(command(name)) for name in COMMANDS}
    return tyro.extras.subcommand_cli_from_dict(commands, prog="spota", args=arguments)


def flags(command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    with pytest.raises(SystemExit):
        parse([command, "--help"])
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*(?:\.[\w-]+)*", capsys.readouterr().out))


def test_there_is_something_to_check():
    told = {line.split()[1] for line in command_lines()}
    assert told == set(COMMANDS)
    assert len(mentions()) > 5


@pytest.mark.parametrize("line", command_lines())
def test_a_command_line_parses(line):
    positional, _ = parse(shlex.split(line, comments=True)[1:])
    assert positional


def test_a_wrong_flag_does_not_parse(capsys):
    with pytest.raises(SystemExit):
        parse(["train", "cart-pole", "--preste", "quick"])
    assert "--preste" in capsys.readouterr().err


@pytest.mark.parametrize("mention", mentions())
def test_a_command_in_a_sentence_exists(mention, capsys):
    command, *rest = mention.replace("[", "").replace("]", "").split()[1:]
    if command in COMMANDS:
        assert {word for word in rest if word.startswith("-")} <= flags(command, capsys)
    else:
        assert hasattr(spota, command), mention


@pytest.mark.parametrize("name", re.findall(r"--set ((?:[\w.]+=\S+ ?)+)", "\n".join(p.read_text() for p in PAGES)))
def test_settings_exist(name):
    tables = {"spota": (Spota,), "candidate": (Analytic, PPO), "reference": (Analytic, PPO), "tasks": (Tasks,)}
    for assignment in name.strip("`) ").split():
        table, _, setting = assignment.partition("=")[0].rpartition(".")
        assert not table or setting in {f.name for kind in tables[table] for f in fields(kind)}, assignment


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_compiles_and_uses_names_that_exist(page):
    for text in blocks(page, "python"):
        if not text.startswith("--8<--"):
            compile(text, page.name, "exec")
            for name in re.findall(r"\bspota\.(\w+)", text):
                assert hasattr(spota, name), f"{page.name}: spota.{name}"


def make_targets() -> Iterator[str]:
    for page in PAGES:
        yield from re.findall(r"(?:^|`)make ([a-z-]+)(?:`|  )", page.read_text(), re.M)


def test_make_targets_exist():
    defined = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert {"demo", "test", "docs"} <= set(make_targets()) <= set(defined)


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert links and not missing


def test_the_readme_says_what_is_promised_and_what_is_not():
    text = (ROOT / "README.md").read_text()
    promise, rest = text.split("## What the certificate promises")[1].split("## What it does not promise")
    refusal = rest.split("\n## ")[0]
    assert all(word in promise for word in ("average", "95 %", "UCBOG", "worst fifth"))
    assert all(word in refusal for word in ("one machine", "outside the table", "cannot find", "leaves out"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does; a link or an anchor that leads nowhere fails it."""
    pytest.importorskip("mkdocs")
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def test_the_references_are_generated(site):
    commands = (site / "commands.html").read_text()
    for name, line in COMMANDS.items():
        assert f'id="spota-{name}"' in commands
        assert line in commands.replace("&#39;", "'").replace("&quot;", '"')
    python = (site / "python.html").read_text()
    for name in spota.__all__:
        assert re.search(rf'id="spota\.[\w.]*\b{name}"', python), name


def test_the_site_fetches_nothing(site):
    loads = re.compile(r"""<(?:script|img|iframe)[^>]*\bsrc=["']?https?:|<link[^>]*stylesheet[^>]*https?:""")
    pages = list(site.rglob("*.html"))
    assert len(pages) > 10
    assert not [page.name for page in pages if loads.search(page.read_text())]


@pytest.mark.slow
def test_a_platform_of_ones_own_is_trained_and_assessed(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_env.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert said.count("Certified: ") == 2
    assert said.count("Earns at least") == 2


def test_controllers_are_compared_on_the_same_domains(capsys):
    runpy.run_path(str(ROOT / "examples" / "same_domains.py"), run_name="__main__")
    assert re.search(r"lqr is better than 1.5 times its gains by \d+ \[\d", capsys.readouterr().out)


@pytest.mark.slow
def test_an_optimizer_of_ones_own_finds_the_optimum(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_solver.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "Certified: " in said and "effort margin" in said
    earned = float(re.findall(r"Earns at least (\S+) on average", said)[0])
    assert earned > 1.1 * expected_return(true_optimum())  # a new network pulls 1 m and earns −39.7


def test_a_policy_of_ones_own_balances(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_policy.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert int(re.findall(r"feedback: (\d+) of 2500, 100% survived", said)[0]) > 2300


def test_a_policy_with_a_memory_of_ones_own_balances(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_memory.py"), run_name="__main__")
    filtered, plain = (int(earned) for earned in re.findall(r": (\d+) of 2500, 100% survived", capsys.readouterr().out))
    assert 2300 < filtered < plain  # a filter delays


def test_the_cart_pole_in_mujoco_earns_what_ours_does(capsys):
    pytest.importorskip("mujoco")
    runpy.run_path(str(ROOT / "examples" / "mujoco_cart_pole.py"), run_name="__main__")
    theirs, ours = map(float, re.findall(r"cart-pole: (\S+) of 2500", capsys.readouterr().out))
    assert theirs == pytest.approx(ours, rel=0.01)


def test_the_hopper_falls_without_a_policy(capsys):
    pytest.importorskip("mujoco")
    pytest.importorskip("gymnasium")
    runpy.run_path(str(ROOT / "examples" / "mujoco_hopper.py"), run_name="__main__")
    assert "of 1300, 0% survived" in capsys.readouterr().out


def test_gymnasiums_pendulum_of_mujoco_is_sound(capsys):
    pytest.importorskip("mujoco")
    pytest.importorskip("imageio", reason="Gymnasium's MuJoCo environments need it: pip install 'gymnasium[mujoco]'")
    runpy.run_path(str(ROOT / "examples" / "gymnasium_pendulum.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "every parameter moves a trajectory: 4 of 4 move" in said and "✗" not in said
    assert int(re.findall(r"without a command: (\d+) of 200", said)[0]) < 200


def test_every_example_is_run():
    tested = set(re.findall(r'"(\w+\.py)"\), run_name', Path(__file__).read_text()))
    elsewhere = {"sb3_cart_pole.py", "device.py"}  # tests/policies/test_sb3.py, tests/deploy/test_docs_devices.py
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == tested | elsewhere


@pytest.mark.slow
def test_gymnasiums_cart_pole_is_checked_trained_and_swept(capsys):
    pytest.importorskip("gymnasium")
    runpy.run_path(str(ROOT / "examples" / "gymnasium_cart_pole.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "every parameter moves a trajectory: 3 of 3 move" in said and "✗" not in said
    assert int(re.findall(r"a pole of 0.2 kg: (\d+) of 500", said)[0]) > 100  # random commands last for 20 steps
