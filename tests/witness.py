"""A session with an emulated device on a virtual clock, and what its drive really did."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from spota import policies
from spota.deploy.emulator import Emulator, drawn_domain, emulator
from spota.deploy.faults import Faults
from spota.deploy.inference import Controller, controller_of
from spota.deploy.log import Ticks
from spota.deploy.mission import Mission
from spota.deploy.phases import CALIBRATION, PHASES, PLACEMENT, STOP
from spota.deploy.rules import Rules
from spota.deploy.session import Ended
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from spota.envs import make
from spota.policies.contract import Contract

BALL, CART = make("ball-balancer"), make("cart-pole")
CONTROLLERS = {env.name: controller_of(policies.own_controller(env), Contract.of(env)) for env in (BALL, CART)}
WATCHDOG = 3 * 2_000_000
"""Nanoseconds after which the device takes its safe command by itself."""


@dataclass
class Witness:
    """What the drive really did, and when."""

    emulator: Emulator
    times: list[int] = field(default_factory=list)
    commands: list[float] = field(default_factory=list)

    def __post_init__(self):
        drive, step = self.emulator.device.drive, self.emulator.device.drive.step

        def seen(now: int) -> None:
            step(now)
            self.times.append(now)
            self.commands.append(float(np.abs(drive.acting).max()))

        drive.step = seen  # type: ignore[method-assign]

    def rests_from(self, moment: int) -> bool:
        return not any(c for t, c in zip(self.times, self.commands, strict=True) if t >= moment)


def mission(env, controller: Controller | None = None, **more) -> Mission:
    given = {"steps": 60, "checking": 0.06, "rules": Rules(of_last_500=12), "accuracy": 0.03}
    return Mission(env, controller or CONTROLLERS[env.name], **{**given, **more})


def lived(
    env, what: Wear | Faults, phase: int | None, line: Callable[[Emulator], VirtualLink] = VirtualLink, **more
) -> tuple[Ended, Witness]:
    """A session with a fault in a phase, and what the device saw of it, also after it was left alone."""
    wear, faults = (
        (what, Faults())
        if isinstance(what, Wear)
        else (Wear(), replace(what, during=None if phase is None else PHASES[phase]))
    )
    made = emulator(env, drawn_domain(env, 0, nominal=True), wear, faults, seed=3)
    witness = Witness(made)
    link = line(made)
    place = 0.0 if env is BALL and phase == PLACEMENT else None
    ended = mission(env, **{"place": place, **more}).session(link).run()
    made.advance(link.now() + 2 * WATCHDOG)
    return ended, witness


def with_phase(phase: int):
    """A platform that has something to do in that phase."""
    return CART if phase == CALIBRATION else BALL


def at_step(n: int, what) -> Controller:
    """The ball's controller, which does something strange in its nth step of the run; 100 warm it up."""
    own, seen = CONTROLLERS[BALL.name], []

    def act(observation: np.ndarray, into: np.ndarray) -> None:
        own(observation, into)
        seen.append(1)
        if len(seen) == 100 + n:
            what(into)

    return act


def check_log(ticks: Ticks) -> None:
    """No tick is missing, none is told twice, and the end is in it."""
    assert ticks.lost == 0
    assert (np.diff(ticks["host_time"]) > 0).all()
    assert (np.diff(ticks["seq"][ticks["arrived"]]) > 0).all()
    numbers = ticks["number"][ticks["number"] > 0]
    assert numbers.tolist() == list(range(1, numbers.size + 1))
    assert (np.diff(ticks["phase"]) >= 0).all()


def check_rest(ended: Ended, witness: Witness) -> None:
    """From the stop on the device has at most its watchdog's time to come to rest."""
    rows = np.flatnonzero(ended.ticks["phase"] == STOP)
    last = int(ended.ticks["host_time"][rows[0] if rows.size else -1])
    assert witness.rests_from(last + WATCHDOG)
    assert witness.times[-1] > last + WATCHDOG
    if rows.size:
        assert (ended.ticks.sent[rows] == 0).all()
