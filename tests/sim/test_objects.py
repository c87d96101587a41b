"""Objects in someone's file: found, constructed and taken as they are, and errors that have their author's line."""

import sys
from pathlib import Path

import pytest

from spota.sim.objects import is_reference, name_in, named, recorded, refuse_inside

FILE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Robot:
    mass: float = 2.0

@dataclass(frozen=True)
class Needy:
    mass: float

heavy = Robot(9.0)

def controller(observation):
    return -observation
"""


def find(reference: str):
    return named(reference, lambda _: True, "anything")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("my_robot.py").write_text(FILE)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_class_is_constructed_and_everything_else_is_taken_as_it_is():
    assert find("my_robot.py:Robot").mass == 2.0
    assert find("my_robot.py:heavy").mass == 9.0
    assert find("my_robot.py:controller")(3.0) == -3.0


def test_the_same_object_until_its_file_changes():
    first = find("my_robot.py:Robot")
    assert find("my_robot.py:Robot") is find(str(Path("my_robot.py").absolute()) + ":Robot") is first
    Path("my_robot.py").write_text(FILE.replace("2.0", "3.0"))
    assert find("my_robot.py:Robot").mass == 3.0


def test_a_module_is_imported_from_the_working_directory_or_from_anywhere():
    Path("fleet").mkdir()
    Path("fleet/robots.py").write_text(FILE)
    assert find("fleet.robots:heavy").mass == 9.0
    assert find("math:pi") == pytest.approx(3.14159, abs=1e-4)


def test_a_file_may_import_what_lies_beside_it_and_hides_nothing_that_is_installed():
    Path("parts").mkdir()
    Path("parts/masses.py").write_text("HEAVY = 7.0\n")
    Path("parts/jax.py").write_text("from masses import HEAVY\n")
    assert find("parts/jax.py:HEAVY") == 7.0
    import jax

    assert hasattr(jax, "jit")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("my_robt.py:Robot", "my_robt.py:Robot: there is no file my_robt.py in "),
        ("my_robot.py:Robto", "my_robot.py has no 'Robto'; did you mean 'Robot'?"),
        ("my_robot.py:Needy", r"my_robot.py:Needy is a class that cannot be .* missing 1 .*'mass'.*write mine = Needy"),
        ("no_such_module:Robot", "no_such_module cannot be imported: ModuleNotFoundError: No module named"),
        ("math:pie", "math has no 'pie'; did you mean 'pi'?"),
        ("dividing.py:x", r"dividing.py cannot be imported: ZeroDivisionError: .* \(dividing.py, line 2: x = 1 / 0\)"),
        ("leaving.py:x", r"leaving.py cannot be imported: SystemExit: 3 \(leaving.py, line 2: sys.exit\(3\)\)"),
        ("broken.py:x", r"broken.py is no Python: .* \(broken.py, line 1: def f\(:\)"),
        ("lacking.py:x", r"No module named 'nothing_like_it' \(lacking.py, line 1: import nothing_like_it\)"),
    ],
)
def test_mistakes_are_one_sentence_with_the_authors_line(reference, message):
    Path("dividing.py").write_text("y = 1\nx = 1 / 0\n")
    Path("leaving.py").write_text("import sys\nsys.exit(3)\n")
    Path("broken.py").write_text("def f(:\n")
    Path("lacking.py").write_text("import nothing_like_it\n")
    with pytest.raises(ValueError, match=message):
        find(reference)


def test_the_wrong_kind_is_told():
    with pytest.raises(ValueError, match=r"my_robot.py:controller is the function controller; name a number\."):
        named("my_robot.py:controller", lambda found: isinstance(found, float), "a number")
    with pytest.raises(ValueError, match=r"my_robot.py:heavy is of the kind Robot; name a number\."):
        named("my_robot.py:heavy", lambda found: isinstance(found, float), "a number")


def test_what_exists_as_a_path_is_a_path():
    assert is_reference("my_robot.py:Robot") and is_reference("fleet.robots:heavy") and is_reference("../a.py:x")
    assert not any(map(is_reference, ("cart-pole", "runs/a", "policy.npz", "runs/12:30", ":x", "a.py:", r"C:\a.npz")))
    Path("runs:a").mkdir()
    assert not is_reference("runs:a")
    assert name_in("my_robot.py:Robot") == "Robot"


def test_a_run_keeps_one_spelling_of_a_file(tmp_path):
    assert {recorded(f"{p}my_robot.py:x") for p in ("", "./", "parts/../", f"{tmp_path}/")} == {"my_robot.py:x"}
    assert recorded("../else.py:x") == f"{tmp_path.parent}/else.py:x"
    assert (recorded("fleet.robots:heavy"), recorded("cart-pole")) == ("fleet.robots:heavy", "cart-pole")


@pytest.mark.parametrize("reference", ["runs/a/my_robot.py:Robot", "runs/b/../a/x.py:y", "runs.a.x:y"])
def test_code_that_comes_with_a_run_is_not_executed(reference):
    with pytest.raises(ValueError, match=r"runs/a/config.toml names .*, which lies inside the run"):
        refuse_inside(Path("runs/a"), None, "cart-pole", reference)


def test_code_beside_a_run_is_ones_own():
    refuse_inside(Path("runs/a"), "my_robot.py:Robot", "runs/my_robot.py:Robot", "fleet.robots:heavy", None)
