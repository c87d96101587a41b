"""What a run on a machine has shown: how the loop held its time, what was earned, and what a certificate says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spota.certify.certificate import Certificate
from spota.deploy.judgement import Judgement
from spota.deploy.log import Ticks
from spota.deploy.phases import PHASES
from spota.deploy.session import Ended
from spota.sim.domain import DomainDistribution
from spota.sim.env import Platform
from spota.text import figure, percent

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
    failed: bool
    """Whether the run ended in danger."""
    assumed: tuple[float, float] | None
    """The delays that the certificate drew [steps]."""
    notes: tuple[str, ...]
    """What that means, in sentences."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


def aftermath(ended: Ended, env: Platform, steps: int, certificate: Certificate | None) -> Aftermath:
    """All figures of a run."""
    ticks = ended.ticks
    rows = ticks.answered
    delays = ticks.delays()
    rewards = Judgement(env, ended.known).rewards(ticks.observation[rows], ticks.sent[rows])
    returned = float(rewards.sum()) if rewards is not None else None
    domain = certificate.domain if certificate else {name: p.to_dict() for name, p in env.domain.items()}
    assumed = _assumed(domain)
    failed = ended.cause.name == "DANGER"
    notes = [*_about_delay(delays, assumed, certificate), *_about_return(returned, rows.size, env, certificate)]
    notes += _about_noise(env) if rows.size else []
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
        in_time=_in_time(ticks, rows),
        watchdog=int(ticks["watchdog"][rows].sum()),
        age=_percentiles(ticks["age"][rows]),
        work=_percentiles(ticks["work"][rows]),
        delay={str(k): int(n) for k, n in zip(*np.unique(delays, return_counts=True), strict=True)},
        returned=returned,
        failed=failed,
        assumed=assumed,
        notes=tuple(notes),
    )


def _rate(ticks: Ticks, rows: np.ndarray) -> float:
    if rows.size < 2:
        return 0.0
    seconds = (ticks["device_time"][rows[-1]] - ticks["device_time"][rows[0]]) / 1e9
    frames = ticks["seq"][rows[-1]] - ticks["seq"][rows[0]]
    return float(frames / seconds) if seconds > 0 else 0.0


def _in_time(ticks: Ticks, rows: np.ndarray) -> float:
    """Of all steps of the device in the run, those before whose end the answer to their frame had acted."""
    if rows.size < 2:
        return 0.0
    delays = ticks.delays()
    fastest = delays.min() if delays.size else 0
    steps = int(ticks["seq"][rows[-1]] - ticks["seq"][rows[0]]) + 1
    return min(1.0, float((delays == fastest).sum() / steps))


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
    if not delays.size or assumed is None:
        return []
    middle, most, (low, high) = float(np.median(delays)), int(delays.max()), assumed
    who = "the certificate" if certificate else "the platform's table"
    said = f"Commands acted after {middle:g} steps (median; {most} at most); {who} assumed {low:g} to {high:g}."
    outside = float(((delays < low) | (delays > high)).mean())
    if outside > 0.01:
        said += f" {percent(outside)} lie outside, so it does not speak of this machine."
    return [said]


def _about_noise(env: Platform) -> list[str]:
    """What sensor noise alone costs a return that is measured: the certificate's returns come from true states."""
    noise = env.effects.noise
    if noise is None:
        return []
    seen = np.random.default_rng(0).normal(size=(2000, len(noise.std))) * noise.std
    rewards = Judgement(env).rewards(seen, np.zeros((2000, len(env.actions))))
    if rewards is None:
        return []
    return [
        f"With the platform's sensor noise, perfect rest at zero would measure "
        f"{figure(env.max_steps * float(rewards.mean()))} in {env.max_steps} steps; certificates count true states."
    ]


def _about_return(returned: float | None, steps: int, env: Platform, certificate: Certificate | None) -> list[str]:
    if not steps:
        return []
    if returned is None:
        return ["The return cannot be measured on this platform."]
    earned = f"Earned {figure(returned)} in {steps} steps, from measurements."
    if certificate is None:
        return [earned]
    own = certificate.performance
    if own is None or not own.in_range:
        return [earned, f"The certificate bounds the loss by {figure(certificate.ucbog)}, on average over machines."]
    scale = steps / env.max_steps
    above = "above" if returned >= own.mean_lower * scale else "below"
    return [
        f"{earned} The certificate promises at least {figure(own.mean_lower)} in {env.max_steps} steps on average over "
        f"machines, and {figure(own.worst_lower)} in the worst {percent(own.worst_share)}: this run is {above} the "
        "average's bound. One run on one machine proves neither.",
        f"Its references earn at most {figure(certificate.ucbog)} more, on average over machines.",
    ]
