"""What a page says about how far to trust a certificate."""

import dataclasses
import math
from pathlib import Path

import pytest

from spota.show.pages import coverage, read
from spota.show.pages.checks import checks


def studied(table: str, column: str) -> list[float]:
    """What a table of the docs has in a column for 20 references on 5 domains each."""
    lines = [
        [c.replace("*", "").strip() for c in row.split("|")[1:-1]] for row in table.splitlines() if row[:2] == "| "
    ]
    return [float(row[lines[0].index(column)]) for row in lines[2:] if (row[1], row[2]) == ("20", "5")]


def test_the_coverage_that_a_page_shows_is_that_of_the_docs():
    docs = (Path(__file__).parents[3] / "docs" / "coverage.md").read_text()
    tables = docs.split("## How often the bound is")[1], docs.split("## Rare crashes")[1]
    found = coverage.measured(20, 5)
    for column, method in {
        "basic p": "basic_pooled",
        "studentized r": "studentized_reference",
        "split": "split",
    }.items():
        values = [*studied(tables[0], column), *studied(tables[1], f"{column} covers")]
        assert len(values) == 10
        assert found.lowest[method] == pytest.approx(min(values), abs=0.051)
        assert found.highest[method] == pytest.approx(max(values), abs=0.051)


@pytest.mark.parametrize(("sizes", "nearest"), [((20, 1), (20, 1)), ((12, 2), (10, 1)), ((1000, 100), (50, 20))])
def test_the_studied_case_is_the_nearest_one(sizes, nearest):
    found = coverage.measured(*sizes)
    assert (found.n_G, found.n_r) == nearest


def test_every_doubt_turns_one_check(certified):
    c = read(certified).certificate
    assert c is not None
    sound = dataclasses.replace(
        c, reference_improvement=3.0, losing_share=0.0, clipped_share=0.2, n_G=20, n_r=5, largest_gap_share=0.1,
        method="split", intervals=dict.fromkeys(c.intervals, 5.0), largest_loss=math.inf, spending="cubes",
    )  # fmt: skip
    assert all(check.good for check in checks(sound, 3))
    doubtful = {
        "reference_improvement": -1.0,
        "effort_margin": None,
        "effort_gain": 1e9,
        "losing_share": 0.5,
        "clipped_share": 1.0,
        "n_G": 5,
        "threshold": 1e-9,  # less than rare failures cost
        "method": "basic_pooled",
        "intervals": {**sound.intervals, "basic_pooled": 1e9},
        "spending": "none",
    }
    for name, value in doubtful.items():
        found = list(checks(dataclasses.replace(sound, **{name: value}), 3))
        assert [check.good for check in found].count(False) == 1, name
    one_decides = dataclasses.replace(sound, method="student_t_reference", largest_gap_share=0.9)
    assert not next(check for check in checks(one_decides) if check.name == "Largest gap").good
