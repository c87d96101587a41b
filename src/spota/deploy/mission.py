"""Everything that a run on a platform's machine consists of, put together: phases, ranges, limits, the log's size."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from spota import policies
from spota.deploy.hardware import ends, hardware_of
from spota.deploy.inference import Controller, begin_episode, controller_of
from spota.deploy.judgement import Judgement
from spota.deploy.links import Link
from spota.deploy.phases import CALIBRATION, CHECKS, PLACEMENT, RUN, STOP
from spota.deploy.procedures import Acting, BallTo, Checks, Nothing, Procedure, RailEnds, SwingUp
from spota.deploy.rules import Rules
from spota.deploy.session import Session
from spota.envs import make
from spota.policies.contract import Contract
from spota.sim.domain import DomainDistribution
from spota.sim.env import Env, Platform

RING = 0.775
"""Where the ball starts: this share of the way from the plate's centre to its edge, as in training."""
WARM_UP = 100
"""Inferences before the first frame."""


@dataclass(frozen=True)
class Mission:
    """What is to be done with a device."""

    env: Platform
    controller: Controller
    steps: int
    rules: Rules = Rules()  # noqa: RUF009, frozen
    place: float | None = None
    """The angle of the ball's start point [°]; None leaves the ball where it is."""
    accuracy: float = 0.01
    """Of the ball's start point [m]."""
    patience: float = 60.0
    """Seconds that calibration and placement may take, each."""
    checking: float = 1.0
    """Seconds over which the device's rate is measured."""
    calibrated: Mapping[str, float] | None = None
    """What an earlier calibration of the same machine has found: then there is none."""

    def session(self, link: Link, known: Mapping[str, float] | None = None) -> Session:
        """Ready to run; `known` are measured parameters beyond those that the device tells."""
        device, env = link.introduction, self.env
        told = {**device.known, **(known or {})}
        for name in told:
            _ = env.domain[name]  # which must exist
        zero = np.zeros(len(env.observations))
        judgement = Judgement(env, {**told, **_parameters(self.calibrated or {})})
        calibration = self._calibration(judgement.domain, zero)
        procedures: dict[int, Procedure] = {
            CHECKS: Checks(device.dt, device.safe, self.checking, self.rules.rate),
            CALIBRATION: calibration,
            PLACEMENT: self._placement(judgement.domain),
            RUN: Acting(self.controller, self.steps),
        }
        self._warm_up(judgement)
        seconds = self.checking + 2 * self.patience + self.steps * device.dt
        ranges = _ranges(env, self.rules.beyond, judgement.domain)
        rules, rows = self.rules, 2 * round(seconds / device.dt)
        return Session(link, procedures, judgement, rules, ranges, zero=zero, rows=rows)

    def _calibration(self, domain: dict[str, float], zero: np.ndarray) -> Procedure:
        hardware = hardware_of(self.env)
        if hardware.zeroed is None:
            return Nothing()
        if self.calibrated is not None:
            zero[hardware.zeroed] = self.calibrated["zero"]
            return Nothing()
        return RailEnds(self.env.dt, domain, zero, self.patience + 10)

    def _placement(self, domain: Mapping[str, float]) -> Procedure:
        env = self.env
        if self.place is not None and env.name != "ball-balancer":
            raise ValueError(f"--place is for the ball-balancer; {env.name} has no ball to place.")
        if env.name in ("cart-pole", "qube"):
            swing, contract = policies.energy(_as_known(env, domain)), Contract.of(env)
            return SwingUp(controller_of(swing, contract), controller_of(swing.brake, contract), env.dt, self.patience)
        if self.place is not None:
            radius, angle = RING * domain["plate_length"] / 2, math.radians(self.place)
            target = radius * math.cos(angle), radius * math.sin(angle)
            return BallTo(target, env.dt, self.accuracy, self.patience)
        return Nothing()

    def _warm_up(self, judgement: Judgement) -> None:
        observation, into = np.zeros(len(self.env.observations)), np.zeros(len(self.env.actions))
        for _ in range(WARM_UP):
            self.controller(observation, into)
            judgement.danger(observation)
        begin_episode(self.controller)


def gentle(rules: Rules) -> Rules:
    """For the tests of a busy machine and for virtual time: what stops a run because the host was late, off."""
    return replace(rules, in_a_row=10**6, of_last_500=501, oldest=3600.0, jump=10**6)


def _as_known(env: Platform, domain: Mapping[str, float]) -> Platform:
    """The platform whose nominal machine is the one that is known: a swing-up is made for that one."""
    rows = {name: replace(row, nominal=domain[name]) for name, row in env.domain.items()}
    return env.with_domain(DomainDistribution(rows))


def _parameters(calibrated: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in calibrated.items() if name != "zero"}


def _ranges(env: Platform, beyond: float, domain: Mapping[str, float]) -> dict[int, np.ndarray]:
    """What values may be in each phase, [2, d]: while a pole is swung up, all that the swing-up's sensors may show."""
    own = _wide(env, beyond)
    if isinstance(env, Env):
        for at, end in ends(env.name, env.params(dict(domain))).items():
            own[:, at] = np.maximum(np.abs(own[:, at]), beyond * end) * [-1, 1]
    before = own
    if hardware_of(env).hangs and env.name in ("cart-pole", "qube"):
        before = _wide(make(f"{env.name}-swing-up"), 2 * beyond)
    return {CHECKS: before, CALIBRATION: before, PLACEMENT: before, RUN: own, STOP: before}


def _wide(env: Platform, beyond: float) -> np.ndarray:
    low, high = np.array([(s.low, s.high) for s in env.observations]).T
    middle, half = (low + high) / 2, beyond * (high - low) / 2
    return np.stack([middle - half, middle + half])
