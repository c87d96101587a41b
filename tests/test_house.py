"""A module imports only from those above it in docs/architecture.md."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "spota"


def storeys() -> list[str]:
    """The modules of the house from the foundation up, as the docs list them."""
    block = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    return re.findall(r"^  (\w+)(?:\.py|/)", block, re.M)


def imports(path: Path) -> set[str]:
    """The storeys of spota that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "spota":
            parts = (node.module or "").split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found


def test_every_module_has_its_storey():
    present = {p.stem for p in PACKAGE.glob("*.py")} | {
        p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()
    }
    assert present - {"__init__"} == set(storeys())


def test_modules_import_only_from_above_in_the_list():
    order = storeys()
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for other in imports(path) & set(order):
            assert other == own or order.index(other) < order.index(own), f"{path.name} imports {other}"


def test_nothing_below_the_commands_prints():
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        prints = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]
        assert own in ("commands", "cli") or not prints, path


def test_the_walk_names_files_that_exist_and_at_most_fifteen():
    text = (ROOT / "docs" / "architecture.md").read_text()
    steps = re.findall(r"^(\w+(?:/\w+)?)(?: → (\w+(?:/\w+)?))?", text.split("```")[3], re.M)
    named = {name for step in steps for name in step if name}
    assert 10 <= len(named) <= 15
    assert not [name for name in named if not (PACKAGE / f"{name}.py").exists()]
    assert len(text.splitlines()) <= 50  # one screen


def test_no_function_has_more_than_sixty_lines_of_code():
    for path in (p for room in ("src", "tests", "benchmarks", "examples") for p in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1 - _help_lines(node)
                assert lines <= 60, f"{path.name}: {node.name} has {lines} lines"


def _help_lines(function: ast.FunctionDef) -> int:
    """Of its docstring, which is a command's help."""
    return len((ast.get_docstring(function, clean=False) or "").splitlines())
