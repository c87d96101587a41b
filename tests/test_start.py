"""How a command starts: what it imports, and the compiled programs that it keeps."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import jax
import pytest

import spota
from spota.cli import COMMANDS, command, main
from spota.sim import compiled

SLOW = ("jax", "equinox", "numpyro", "scipy", "matplotlib", "plotly")

TRAINING = """
import sys
sys.path.insert(0, {place!r})
from spota.sim import compiled
kept = compiled.keep_programs()
import hashlib, jax, numpy as np
from point_mass import PointMass
from spota.policies import fnn
from spota.polopt.analytic import Analytic
from spota.polopt.solve import solve
env, key = PointMass(), jax.random.key(0)
optimizer = Analytic(iterations=3, rows=3, warm_up=1)
solution = solve(optimizer, key, env, env.domain.sample(key, 3), fnn(key, env, (4,)))
words = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(solution.policy))
print(kept is not None, hashlib.sha256(words).hexdigest(), float(solution.score.returns).hex())
"""


def python(code: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_nothing_slow(arguments):
    code = (
        f"import sys\nfrom spota.cli import main\ntry: main({arguments!r})\nexcept SystemExit: pass\n"
        f"print([name for name in {SLOW!r} if name in sys.modules])"
    )
    assert python(code).splitlines()[-1] == "[]"


def test_help_of_a_command_imports_nothing_that_it_does_not_need():
    code = (
        f"import sys\nfrom spota.cli import main\nfor command in {[*COMMANDS]!r}:\n"
        "    try: main([command, '--help'])\n    except SystemExit: pass\n"
        "print([name for name in ('scipy.stats', 'numpyro', 'matplotlib', 'plotly') if name in sys.modules])"
    )
    assert python(code).splitlines()[-1] == "[]"


def test_the_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"spota {version('spota')}\n"


def test_every_command_has_the_first_line_of_its_help():
    for name, line in COMMANDS.items():
        assert (command(name).__doc__ or "").splitlines()[0] == line


def test_everything_that_spota_names_is_there():
    for name in spota.__all__:
        assert getattr(spota, name) is not None
    assert set(spota.__all__) <= set(dir(spota))
    assert python("import spota; print(spota.stats.__name__)") == "spota.stats\n"
    with pytest.raises(AttributeError, match="'trian'"):
        spota.trian  # noqa: B018  # type: ignore[attr-defined]


@pytest.mark.slow
def test_results_are_the_same_with_and_without_kept_programs(tmp_path):
    code = TRAINING.format(place=str(Path(__file__).parent))
    kept, none = {"SPOTA_CACHE": str(tmp_path)}, {"SPOTA_CACHE": "off"}
    first, again, without = python(code, **kept), python(code, **kept), python(code, **none)
    assert first == again == without.replace("False", "True")
    assert any(tmp_path.glob("*/*-cache"))


def test_a_damaged_cache_costs_time_only(tmp_path):
    command = [sys.executable, "-m", "spota.cli", "rollout", "catapult", "--policy", "policy.npz", "--json"]
    spota.save(spota.fnn(jax.random.key(0), spota.make("catapult"), (4,)), tmp_path / "policy.npz")
    told = []
    for _ in range(2):
        environment = {**os.environ, "SPOTA_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        assert not done.stderr
        told.append(json.loads(done.stdout))
        for file in tmp_path.glob("cache/*/*-cache"):
            file.write_bytes(file.read_bytes()[:100])
    assert told[0] == told[1]


def test_where_programs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SPOTA_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = compiled.cache_directory()
    assert here is not None and here.parent == tmp_path / "spota"
    monkeypatch.setattr(compiled, "_cpu", lambda: "another CPU")
    assert compiled.cache_directory() != here
    monkeypatch.setenv("SPOTA_CACHE", str(tmp_path / "mine"))
    mine = compiled.cache_directory()
    assert mine is not None and mine.parent == tmp_path / "mine"
    monkeypatch.setenv("SPOTA_CACHE", "off")
    assert compiled.cache_directory() is None
    assert compiled.keep_programs() is None


def test_a_place_that_cannot_be_written_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPOTA_CACHE", str(tmp_path / "file"))
    assert compiled.keep_programs() is None


def test_a_cache_that_is_too_large_loses_its_oldest_half(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}-cache").write_bytes(bytes(10))
        os.utime(tmp_path / f"{i}-cache", (i, i))
    compiled._prune(tmp_path, largest=40)
    assert len(list(tmp_path.iterdir())) == 4
    compiled._prune(tmp_path, largest=39)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2-cache", "3-cache"]
