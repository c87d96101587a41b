"""What a run on a machine has shown: how the loop held its time, what was earned, and what a certificate says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spota.certify.certificate import Certificate
from spota.deploy.earnings import about_return, earnings
from spota.deploy.log import Ticks
from spota.deploy.phases import PHASES
from spota.deploy.session import Ended
from spota.sim.domain import DomainDistribution
from spota.sim.env import Platform
from spota.text import percent

PERCENTILES = (50, 99, 99.9, 100)
DELAY = "action_delay"


@dataclass(frozen=True)
class Aftermath:
    """Figures of one run; shares and times are of the run itself, without checks, calibration and placement."""

    cause: str
    phase: str
    words: str
    exit_code: int
    steps: int
    """Frames that the policy answered."""
    wanted_steps: int
    rate: float
    """Frames a second of the device's clock."""
    measured_dt: float
    late: int
    """Frames that came after their time."""
    missed: int
    """Frames that were skipped, because newer ones were there."""
    in_time: float
    """Share of the device's steps that got a command within their period."""
    watchdog: int
    """Frames in which the device said that its watchdog held it."""
    age: Mapping[str, float]
    """Percentiles of the age of data [s]."""
    work: Mapping[str, float]
    """Percentiles of our own work from frame to command [s]."""
    delay: Mapping[str, int]
    """Steps until a command acted, and how often."""
    returned: float | None
    """Undiscounted return, from measurements."""
    episode: tuple[float, float] | None
    """Between which the true return of the first episode lies: as measured, and with what noise may hide of it."""
    failed: bool
    """Whether the run ended in danger."""
    assumed: tuple[float, float] | None
    """The delays that the certificate drew [steps]."""
    notes: tuple[str, ...]
    """What that means, in sentences."""
    covered: str | None = None
    """Whether the certificate's table covers this machine, as `spota applies` says; None if nobody asked."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


def aftermath(ended: Ended, env: Platform, steps: int, certificate: Certificate | None) -> Aftermath:
    """All figures of a run."""
    ticks = ended.ticks
    rows = ticks.answered
    delays = ticks.delays() if ended.echoes else np.zeros(0, int)
    earned = earnings(ended, env)
    domain = certificate.domain if certificate else {name: p.to_dict() for name, p in env.domain.items()}
    assumed = _assumed(domain)
    about = [*_about_delay(delays, assumed, certificate), *about_return(earned, env, certificate)]
    notes = about if rows.size else []
    during = ticks["phase"] == PHASES.index("run")
    return Aftermath(
        cause=ended.cause.name.lower(),
        phase=PHASES[ended.phase],
        words=ended.words,
        exit_code=ended.cause.code,
        steps=int(rows.size),
        wanted_steps=steps,
        rate=_rate(ticks, rows),
        measured_dt=ended.measured_dt,
        late=int((during & ~ticks["arrived"]).sum()),
        missed=int(ticks["missed"][rows].sum()),
        in_time=_in_time(ticks, rows, delays),
        watchdog=int(ticks["watchdog"][rows].sum()),
        age=_percentiles(ticks["age"][rows]),
        work=_percentiles(ticks["work"][rows]),
        delay={str(k): int(n) for k, n in zip(*np.unique(delays, return_counts=True), strict=True)},
        returned=earned.whole,
        episode=earned.episode,
        failed=earned.failed,
        assumed=assumed,
        notes=tuple(notes),
    )


def _rate(ticks: Ticks, rows: np.ndarray) -> float:
    if rows.size < 2:
        return 0.0
    seconds = (ticks["device_time"][rows[-1]] - ticks["device_time"][rows[0]]) / 1e9
    frames = ticks["seq"][rows[-1]] - ticks["seq"][rows[0]]
    return float(frames / seconds) if seconds > 0 else 0.0


def _in_time(ticks: Ticks, rows: np.ndarray, delays: np.ndarray) -> float:
    """Of all steps of the device in the run, those before whose end the answer to their frame had acted.

    Of a device without echoes, the share of its steps whose frames came in time and were answered.
    """
    if rows.size < 2:
        return 0.0
    if not delays.size:
        return float(rows.size / (ticks["phase"] == PHASES.index("run")).sum())
    steps = int(ticks["seq"][rows[-1]] - ticks["seq"][rows[0]]) + 1
    return min(1.0, float((delays == delays.min()).sum() / steps))


def _percentiles(values: np.ndarray) -> dict[str, float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return {}
    return {f"p{p:g}": float(v) for p, v in zip(PERCENTILES, np.percentile(finite, PERCENTILES), strict=True)}


def _assumed(domain: Mapping[str, Any]) -> tuple[float, float] | None:
    if DELAY not in domain:
        return None
    low, high = DomainDistribution.from_dict({DELAY: domain[DELAY]})[DELAY].marginal.support
    return float(low), float(high)


def _about_delay(delays: np.ndarray, assumed: tuple[float, float] | None, certificate: Certificate | None) -> list[str]:
    if assumed is None:
        return []
    if not delays.size:
        return ["The device does not say which command acted when, so its delay is not known."]
    middle, most, (low, high) = float(np.median(delays)), int(delays.max()), assumed
    who = "the certificate" if certificate else "the platform's table"
    said = f"Commands acted after {middle:g} steps (median; {most} at most); {who} assumed {low:g} to {high:g}."
    outside = float(((delays < low) | (delays > high)).mean())
    if outside > 0.01:
        said += f" {percent(outside)} lie outside, so it does not speak of this machine."
    return [said]
