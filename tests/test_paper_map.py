"""docs/paper_map.md must name labels that the paper has and functions that we have."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
LABELS = set((DOCS / "paper_labels.txt").read_text().split())
ROWS = re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|$", (DOCS / "paper_map.md").read_text(), re.M)


def test_the_map_is_read():
    assert len(ROWS) >= 12


@pytest.mark.parametrize(("label", "function"), ROWS)
def test_label_and_function_exist(label, function):
    assert label in LABELS
    parts = function.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name)
        return
    pytest.fail(f"{function} does not exist")


def test_every_label_named_in_a_docstring_is_the_papers():
    source = "\n".join(p.read_text() for p in (DOCS.parent / "src").rglob("*.py"))
    named = set(re.findall(r"\b(?:eq|tab|fig|sec|algo)_[A-Z]\w+|\beq_(?:edr|sys_dyn|optgap\w*)", source))
    assert named - LABELS == set()
