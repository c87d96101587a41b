"""The paper's protocol on a machine (sec_simtoreal_results): start points, repetitions, policies in random order.

Ball-Balancer: eight start points at equal distance from the centre, to which a PD controller brings the ball, five
repetitions, 2000 steps. Cart-Pole: calibration to both ends of the rail, an energy-based swing-up, hand-over near
upright, ten repetitions, 4000 steps. Rewards come from measurements.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spota.deploy.hardware import hardware_of
from spota.deploy.judgement import Judgement
from spota.deploy.links import Link, UnreachableError
from spota.deploy.log import Ticks
from spota.deploy.mission import Mission
from spota.deploy.rules import Rules
from spota.deploy.session import Ended
from spota.deploy.sources import Deployable
from spota.deploy.supervisor import Cause
from spota.sim.env import Platform

ATTEMPTS = 3
"""How often a trial that the device spoils is tried."""
AGAIN = 1.0
"""Seconds until a device that does not answer is asked again; by then it has forgotten a controller that is gone."""
COUNTS = (Cause.FINISHED, Cause.DANGER)
"""Ends that are the policy's own; every other one is the device's or ours, and spoils the trial."""
QUITS = (Cause.INTERRUPTED, Cause.TERMINATED)
END = 0.5
"""The last seconds of a trial, which say whether the task was solved."""
CENTRED = 0.03
"""The ball is in the middle within this distance, on average over the end [m]."""


@dataclass(frozen=True)
class Protocol:
    """What is tried on a platform."""

    starts: tuple[float | None, ...]
    """Angles of the ball's start points [°]; None is the only start of a pole."""
    repetitions: int
    steps: int

    @staticmethod
    def of(env: Platform) -> "Protocol":
        """The paper's, for its two platforms; an episode ten times for others."""
        if env.name == "ball-balancer":
            return Protocol(tuple(45.0 * i for i in range(8)), 5, 2000)
        return Protocol((None,), 10, 4000 if env.name == "cart-pole" else env.max_steps)


@dataclass(frozen=True)
class Planned:
    """One trial to come."""

    policy: str
    start: float | None
    repetition: int


@dataclass(frozen=True)
class Tried:
    """One trial that was made."""

    planned: Planned
    returned: float
    """NaN if the device spoiled every attempt."""
    steps: int
    solved: bool
    words: str
    spoiled: tuple[str, ...]
    """Why earlier attempts do not count."""

    @property
    def counts(self) -> bool:
        """Whether it says something about the policy."""
        return bool(np.isfinite(self.returned))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For a block of a run; `from_arrays` reads it."""
        words = {"policy": self.planned.policy, "words": self.words, "spoiled": json.dumps(self.spoiled)}
        start = np.nan if self.planned.start is None else self.planned.start
        numbers = {"start": start, "repetition": self.planned.repetition, "returned": self.returned}
        both = {**words, **numbers, "steps": self.steps, "solved": self.solved}
        return {name: np.asarray(value) for name, value in both.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Tried":
        """Read what `to_arrays` wrote."""
        start = float(arrays["start"])
        planned = Planned(str(arrays["policy"]), None if np.isnan(start) else start, int(arrays["repetition"]))
        spoiled = tuple(json.loads(str(arrays["spoiled"])))
        found = float(arrays["returned"]), int(arrays["steps"]), bool(arrays["solved"])
        return cls(planned, *found, str(arrays["words"]), spoiled)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rest = {"returned": self.returned, "steps": self.steps, "solved": self.solved, "words": self.words}
        return {**vars(self.planned), **rest, "spoiled": self.spoiled}


def planned(protocol: Protocol, policies: Sequence[str], seed: int) -> list[Planned]:
    """Every policy from every start, as often as the protocol says, in random order."""
    every = [
        Planned(policy, start, repetition)
        for repetition in range(protocol.repetitions)
        for start in protocol.starts
        for policy in policies
    ]
    return [every[i] for i in np.random.default_rng(seed).permutation(len(every))]


class Rig:
    """A machine on which trials are made, one after the other; it is calibrated once."""

    def __init__(
        self, env: Platform, connect: Callable[[], Link], rules: Rules, known: Mapping[str, float] | None = None
    ):
        """`connect` opens a line to the device; every attempt has its own."""
        self._env, self._connect, self._rules, self._known = env, connect, rules, known
        self._calibrated: dict[str, float] | None = None

    def tried(self, plan: Planned, policy: Deployable, protocol: Protocol, keep: Callable[[Ended], None]) -> Tried:
        """Make a trial; an attempt that the device spoils is made again, and told. `keep` hears of every attempt."""
        spoiled: list[str] = []
        for _ in range(ATTEMPTS):
            link = self._connected()
            ended = self._attempt(link, plan, policy, protocol)
            keep(ended)
            if ended.cause in QUITS:
                raise KeyboardInterrupt
            if ended.cause is Cause.ERROR:
                raise ValueError(f"{plan.policy}: {ended.words}")
            if ended.cause in COUNTS:
                return self._outcome(plan, ended, protocol, tuple(spoiled))
            spoiled.append(ended.words)
        return Tried(plan, float("nan"), 0, False, spoiled[-1], tuple(spoiled))

    def _connected(self) -> Link:
        """A device that is gone ends the protocol, and spoils no trial: the same command goes on when it is back."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._connect()
            except UnreachableError:
                time.sleep(AGAIN)
        return self._connect()

    def _attempt(self, link: Link, plan: Planned, policy: Deployable, protocol: Protocol) -> Ended:
        mission = Mission(self._env, policy.controller, protocol.steps, self._rules, plan.start)
        ended = replace(mission, calibrated=self._calibrated).session(link, self._known).run()
        zeroed = hardware_of(self._env).zeroed
        if zeroed is not None and ended.cause in COUNTS:
            self._calibrated = {"zero": float(ended.zero[zeroed]), "rail_length": ended.known["rail_length"]}
        return ended

    def _outcome(self, plan: Planned, ended: Ended, protocol: Protocol, spoiled: tuple[str, ...]) -> Tried:
        ticks, rows = ended.ticks, ended.ticks.answered
        rewards = Judgement(self._env, ended.known).rewards(ticks.observation[rows], ticks.sent[rows])
        returned = float(rewards.sum()) if rewards is not None else float("nan")
        lasted = ended.cause is Cause.FINISHED and rows.size == protocol.steps
        return Tried(plan, returned, int(rows.size), lasted and solved(self._env, ticks), ended.words, spoiled)


def solved(env: Platform, ticks: Ticks) -> bool:
    """Whether the task was solved in the end: the ball in the middle, or the pole still upright."""
    if env.name != "ball-balancer":
        return True
    end = ticks.answered[-max(1, round(END / env.dt)) :]
    return bool(np.hypot(*ticks.observation[end, 2:4].mean(axis=0)) < CENTRED)
