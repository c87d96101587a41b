"""Every cause of a safe stop that is not the line's, in every phase: signals, errors, a lost peer, broken sensors."""

import os
import signal

import numpy as np
import pytest

from spota.deploy.emulator import Emulator
from spota.deploy.links import LostError, UnreachableError
from spota.deploy.phases import CALIBRATION, CHECKS, IDLE, PHASES, PLACEMENT, RUN, STOP
from spota.deploy.rules import Rules
from spota.deploy.supervisor import Cause
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from witness import BALL, at_step, check_log, check_rest, lived, with_phase

AFTER = 6
"""Commands of a phase before something happens in it."""


class Eventful(VirtualLink):
    """A line on which something happens in a phase, once."""

    def __init__(self, emulator: Emulator, phase: int, what):
        super().__init__(emulator)
        self.emulator, self.gone = emulator, False
        self._phase, self._what, self._commands = phase, what, 0

    def begin(self) -> None:
        if self._phase == IDLE:
            self._what(self)

    def receive(self, timeout: float) -> bool:
        if self.gone:
            raise LostError("the cable was pulled")
        return super().receive(timeout)

    def send(self, values: np.ndarray, phase: int) -> int:
        self._commands += phase == self._phase
        if phase == self._phase and self._commands == AFTER:
            self._what(self)
        return super().send(values, phase)

    def close(self) -> None:
        if not self.gone:
            super().close()


def pull_the_cable(link: Eventful) -> None:
    link.gone = True


def raise_error(_) -> None:
    raise ZeroDivisionError("of one's own")


def broken(value: float):
    """The first sensor shows that from now on."""
    return lambda link: link.emulator.device.drive.machine.sensors._offset.__setitem__(0, value)


def signalled(number: signal.Signals):
    return lambda _: os.kill(os.getpid(), number)


HAPPENINGS = {
    "ctrl-c": (signalled(signal.SIGINT), Cause.INTERRUPTED),
    "sigterm": (signalled(signal.SIGTERM), Cause.TERMINATED),
    "exception": (raise_error, Cause.ERROR),
    "lost": (pull_the_cable, Cause.LOST),
    "not a number": (broken(np.nan), Cause.NOT_FINITE),
    "infinite": (broken(-np.inf), Cause.NOT_FINITE),
    "out of range": (broken(1e3), Cause.RANGE),
}


@pytest.mark.parametrize("phase", [CHECKS, CALIBRATION, PLACEMENT, RUN], ids=lambda p: PHASES[p])
@pytest.mark.parametrize("happening", HAPPENINGS)
def test_whatever_happens_in_whichever_phase_the_device_comes_to_rest(happening, phase):
    what, cause = HAPPENINGS[happening]
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    ended, witness = lived(with_phase(phase), Wear(), phase, lambda made: Eventful(made, phase, what))
    assert ended.cause is cause and ended.phase == phase, ended.words
    assert f"in the phase {PHASES[phase]}: {cause.words}" in ended.words
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    check_log(ended.ticks)
    check_rest(ended, witness)


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_whatever_happens_while_stopping_changes_neither_cause_nor_rest(happening):
    what, _ = HAPPENINGS[happening]
    ended, witness = lived(BALL, Wear(), STOP, lambda made: Eventful(made, STOP, what), steps=20)
    assert ended.cause is Cause.FINISHED, ended.words
    check_log(ended.ticks)
    check_rest(ended, witness)


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_whatever_happens_before_the_first_command_nothing_moves(happening):
    what, cause = HAPPENINGS[happening]
    ended, witness = lived(BALL, Wear(), IDLE, lambda made: Eventful(made, IDLE, what))
    assert ended.cause is cause and cause.words in ended.words
    assert not any(witness.commands) and not ended.ticks.sent.any()


def test_a_device_that_has_left_since_it_introduced_itself_is_lost_not_an_error_of_ours():
    def leave(_) -> None:
        raise UnreachableError("udp://127.0.0.1:9 does not answer.")

    ended, _ = lived(BALL, Wear(), IDLE, lambda made: Eventful(made, IDLE, leave))
    assert ended.cause is Cause.LOST
    assert ended.words == ("Stopped safely in the phase idle: the device was lost (udp://127.0.0.1:9 does not answer).")


def ask_for_nan(into: np.ndarray) -> None:
    into[:] = np.nan


@pytest.mark.parametrize(("what", "words"), [(raise_error, "of one's own"), (ask_for_nan, "not a number")])
def test_a_policy_that_fails_is_an_error_of_our_own(what, words):
    ended, witness = lived(BALL, Wear(), None, controller=at_step(30, what), rules=Rules())
    assert ended.cause is Cause.ERROR and ended.phase == RUN and words in ended.words
    check_log(ended.ticks)
    check_rest(ended, witness)
