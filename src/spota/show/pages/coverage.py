"""The intervals by name, and how often each has been right on problems whose truth is known.

`coverage.json` is the file that `spota reproduce coverage --seed 0` writes; docs/coverage.md shows all of it.
"""

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

UNITS = {"pooled": "single gaps", "reference": "whole references"}
"""What an interval takes for independent."""
INTERVALS = {
    "basic": "basic",
    "percentile": "percentile",
    "bca": "BCa",
    "studentized": "bootstrap-t",
    "student_t": "Student's t",
}


@dataclass(frozen=True)
class Measured:
    """Coverage by method, in percent, on the studied cases that are nearest to a certificate's sample sizes."""

    n_G: int
    n_r: int
    nominal: float
    sets: int
    """Independent comparisons behind each figure."""
    lowest: Mapping[str, float]
    highest: Mapping[str, float]
    """Over the problems of the study."""

    def words(self, method: str) -> str:
        """From the worst problem to the best one."""
        if method not in self.lowest:
            return "not measured"
        low, high = self.lowest[method], self.highest[method]
        return f"{low:.0f} %" if round(low) == round(high) else f"{low:.0f} to {high:.0f} %"


def measured(n_G: int, n_r: int) -> Measured:
    """The figures for n_G references with n_r domains each, or for the sizes next to them."""
    study = _study()
    near_G = _nearest(n_G, {row["case"]["n_G"] for row in study["cases"]})
    near_r = _nearest(n_r, {row["case"]["n_r"] for row in study["cases"]})
    studied = [*study["cases"], *study["crashes"]]
    rows = [row for row in studied if (row["case"]["n_G"], row["case"]["n_r"]) == (near_G, near_r)]
    methods = rows[0]["covers_mean"]
    values = {method: [row["covers_mean"][method] for row in rows] for method in methods}
    lowest, highest = ({m: pick(v) for m, v in values.items()} for pick in (min, max))
    return Measured(near_G, near_r, study["nominal"], rows[0]["sets"], lowest, highest)


def interval_name(method: str) -> str:
    """studentized_reference → bootstrap-t, whole references."""
    if method == "split":
        return "split, ordinary and rare"
    kind, _, unit = method.rpartition("_")
    return f"{INTERVALS[kind]}, {UNITS[unit]}" if kind else "MRP, before outlier rejection"


@functools.cache
def _study() -> dict[str, Any]:
    return json.loads(resources.files("spota.show.pages").joinpath("coverage.json").read_text("utf-8"))


def _nearest(size: int, studied: set[int]) -> int:
    """By ratio; of two equally near ones the smaller, whose intervals are worse."""
    return min(sorted(studied), key=lambda s: abs(math.log(size / s)))
