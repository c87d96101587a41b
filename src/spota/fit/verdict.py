"""What recordings say about a table, as a value and in words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from spota.fit.recording import Recording

Answer = Literal["covered", "not covered", "unclear"]
FILE = "applies.json"
"""Where a run keeps what `spota applies RUN …` found."""


@dataclass(frozen=True)
class Explained:
    """One position: how far it moves, and what the best machine of any kind leaves of that."""

    name: str
    unit: str
    moved: float
    """Root mean square of the movement within a segment."""
    left: float
    """The same of what is not explained: sensor noise and model error."""
    correlation: float
    """For how many samples an error lasts."""

    @property
    def share(self) -> float:
        """Of the movement, what is explained."""
        return 1 - (self.left / self.moved) ** 2 if self.moved > 0 else 0.0


@dataclass(frozen=True)
class Evidence:
    """One parameter: where the machine seems to be, and whether the table goes there."""

    name: str
    unit: str
    near: float
    """Where it is if the table is hardly believed."""
    low: float
    high: float
    """Where the table begins and ends."""
    score: float
    """t: standard deviations off what the table expects."""
    speaks_against: bool
    spread: float
    """Standard deviation after the recordings, over that of the platform's table; 1 is nothing learned."""
    seen: bool
    """Whether the recordings tell about it: they narrow it to half of the platform's usual spread, or less."""
    surprise: float
    """−log of the probability of such a score among machines of the table; 0 if the recordings hardly tell."""

    def __str__(self) -> str:
        """One phrase."""
        unit = "" if self.unit == "-" else f" {self.unit}"
        if self.near > self.high:
            return f"{self.name} near {self.near:.3g}{unit}, the table ends at {self.high:.3g}"
        if self.near < self.low:
            return f"{self.name} near {self.near:.3g}{unit}, the table begins at {self.low:.3g}"
        return f"{self.name} near {self.near:.3g}{unit}, {abs(self.score):.1f} standard deviations off the middle"


@dataclass(frozen=True)
class Coverage:
    """The answer, and what it rests on."""

    env: str
    answer: Answer
    why: str
    recordings: tuple[tuple[str, str], ...]
    """Names and SHA-256."""
    explained: tuple[Explained, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    p_value: float | None = None
    level: float | None = None
    machines: int = 0
    outside: dict[str, float] = field(default_factory=dict)
    """Of every signal the share of samples outside of the band that holds 95 % of the table's machines."""
    bands: dict[str, np.ndarray] = field(default_factory=dict, compare=False)
    """For the picture; not kept in files."""

    @staticmethod
    def unclear(env: str, recordings: Sequence[Recording], why: str) -> "Coverage":
        """Nothing can be told."""
        return Coverage(env, "unclear", why, _named(recordings))

    @staticmethod
    def refused(env: str, recordings: Sequence[Recording], explained: tuple[Explained, ...], why: str) -> "Coverage":
        """It is not this platform, or not as recorded."""
        return Coverage(env, "not covered", why, _named(recordings), explained)

    @staticmethod
    def judged(
        env: str,
        recordings: Sequence[Recording],
        explained: tuple[Explained, ...],
        evidence: tuple[Evidence, ...],
        p_value: float,
        level: float,
        machines: int,
        bands: dict[str, np.ndarray],
    ) -> "Coverage":
        """The answer of the test."""
        out = (bands["recorded"] < bands["low"]) | (bands["recorded"] > bands["high"])
        outside = {e.name: float(out[:, i].mean()) for i, e in enumerate(explained)}
        answer, why = _answer(evidence, p_value, level)
        rest = (_named(recordings), explained, evidence, p_value, level, machines, outside, bands)
        return Coverage(env, answer, why, *rest)

    @property
    def covered(self) -> bool:
        """Whether the table holds for the machine, as far as the recordings can tell."""
        return self.answer == "covered"

    def __str__(self) -> str:
        """The answer in sentences."""
        head = {
            "covered": "Covered: ",
            "not covered": "Not covered: ",
            "unclear": "Not enough excitation to tell: ",
        }[self.answer]
        lines = [f"{head}{self.why}."]
        if self.p_value is not None and self.level is not None:
            lines.append(
                f"p = {self.p_value:.3f} ({self.machines} machines of the table, simulated with the same commands; "
                f"refused below {self.level:g})."
            )
        silent = [e.name for e in self.evidence if not e.seen]
        if self.answer == "covered" and silent:
            lines.append(f"These recordings say nothing about {', '.join(silent)}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For applies.json."""
        kept = {"env": self.env, "answer": self.answer, "why": self.why, "p_value": self.p_value, "level": self.level}
        return {
            "format": 1, **kept, "machines": self.machines, "outside": self.outside, "text": str(self),
            "recordings": [{"name": name, "sha256": sha256} for name, sha256 in self.recordings],
            "signals": [{**asdict(e), "share": e.share} for e in self.explained],
            "parameters": [asdict(e) for e in self.evidence],
        }  # fmt: skip


def _answer(evidence: tuple[Evidence, ...], p_value: float, level: float) -> tuple[Answer, str]:
    if p_value < level:
        against = [e for e in evidence if e.speaks_against] or list(evidence[:1])
        beyond = [e for e in against if not e.low <= e.near <= e.high]
        where = "outside your table" if beyond else "at the rim of your table, where almost no machine is"
        return "not covered", f"your machine is {where}: {'; '.join(map(str, (beyond or against)[:3]))}"
    seen = [e.name for e in evidence if e.seen]
    if not seen:
        told = min(evidence, key=lambda e: e.spread)
        return "unclear", (
            f"no parameter is known twice as well as before (most is known of {told.name}, whose spread shrinks to "
            f"{100 * told.spread:.0f} %); record a chirp that moves everything"
        )
    return "covered", f"a machine of this table can have made the recordings, which tell about {', '.join(seen)}"


def _named(recordings: Sequence[Recording]) -> tuple[tuple[str, str], ...]:
    return tuple((r.name, r.sha256) for r in recordings)
