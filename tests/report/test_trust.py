"""What a page says about how far to trust a certificate."""

import dataclasses
from pathlib import Path

import pytest

from spota.report import coverage, read
from spota.report.checks import checks


def test_the_coverage_that_a_page_shows_is_that_of_the_docs():
    docs = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text().split("## How often the bound is")[1]
    lines = [[c.strip(" *") for c in line.split("|")[1:-1]] for line in docs.splitlines() if line.startswith("| ")]
    head, rows = lines[0], [row for row in lines[2:] if (row[1], row[2]) == ("20", "5")]
    found = coverage.measured(20, 5)
    columns = {"basic p": "basic_pooled", "studentized r": "studentized_reference", "MRP": "mrp"}
    for column, method in columns.items():
        values = [float(row[[h.replace("*", "") for h in head].index(column)]) for row in rows]
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
        method="studentized_reference", intervals=dict.fromkeys(c.intervals, 5.0), spending="halves",
    )  # fmt: skip
    assert all(check.good for check in checks(sound, 3))
    doubtful = {
        "reference_improvement": -1.0,
        "effort_margin": None,
        "effort_gain": 1e9,
        "losing_share": 0.5,
        "clipped_share": 1.0,
        "n_G": 5,
        "largest_gap_share": 0.9,
        "method": "basic_pooled",
        "intervals": {**sound.intervals, "basic_pooled": 1e9},
        "spending": "none",
    }
    for name, value in doubtful.items():
        found = list(checks(dataclasses.replace(sound, **{name: value}), 3))
        assert [check.good for check in found].count(False) == 1, name
