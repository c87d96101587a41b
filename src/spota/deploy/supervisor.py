"""What happens next: a pure function of the situation and one event. Nothing here knows a device or a clock."""

import enum
from typing import NamedTuple

from spota.deploy.phases import CALIBRATION, CHECKS, IDLE, PLACEMENT, RUN, STOP
from spota.deploy.rules import Rules

WINDOW = 500
_MASK = (1 << WINDOW) - 1


class Cause(enum.Enum):
    """Why a run ended: exit code and words."""

    FINISHED = (0, "it was finished")
    LATE = (20, "too many late frames in a row")
    OFTEN_LATE = (21, "too many late frames of the last 500")
    OLD = (22, "data that were too old")
    JUMP = (23, "a jump in the sequence of frames")
    RANGE = (24, "a value far out of its range")
    NOT_FINITE = (25, "a value that is not a number")
    DANGER = (26, "danger: the machine was about to fail")
    LOST = (27, "the device was lost")
    ERROR = (28, "an error of our own")
    CHECKS = (30, "the checks failed")
    CALIBRATION = (31, "the calibration failed")
    PLACEMENT = (32, "the placement failed")
    INTERRUPTED = (130, "Ctrl-C")
    TERMINATED = (143, "SIGTERM")

    @property
    def code(self) -> int:
        """The exit code of a command that ended so."""
        return self.value[0]

    @property
    def words(self) -> str:
        """For a sentence."""
        return self.value[1]


class Event(enum.Enum):
    """What one tick brings."""

    FRAME = enum.auto()
    """A new frame, in time."""
    LATE = enum.auto()
    """None within its time."""
    DONE = enum.auto()
    """The phase has done its work."""
    FAILED = enum.auto()
    """The phase cannot do its work."""
    OLD = enum.auto()
    JUMP = enum.auto()
    RANGE = enum.auto()
    NOT_FINITE = enum.auto()
    DANGER = enum.auto()
    LOST = enum.auto()
    ERROR = enum.auto()
    INTERRUPTED = enum.auto()
    TERMINATED = enum.auto()


STOPS = {event: Cause[event.name] for event in Event if event.name in Cause.__members__ and event is not Event.LATE}
"""Events that stop everything at once."""
FAILURES = {CHECKS: Cause.CHECKS, CALIBRATION: Cause.CALIBRATION, PLACEMENT: Cause.PLACEMENT, RUN: Cause.ERROR}


class Situation(NamedTuple):
    """Where a run stands."""

    phase: int = CHECKS
    in_a_row: int = 0
    recent: int = 0
    """The last 500 ticks as bits: one for each late frame."""
    cause: Cause | None = None
    stopping: int = 0
    """How often the safe command was sent."""


def after(situation: Situation, event: Event, rules: Rules, missed: int = 0) -> Situation:
    """The next situation. `missed` frames were skipped before this one, because we came too late for them."""
    if situation.phase == IDLE:
        return situation
    if situation.phase == STOP:
        return _stopping(situation, event, rules)
    if event in STOPS:
        return stopped(situation, STOPS[event])
    if event is Event.FAILED:
        return stopped(situation, FAILURES[situation.phase])
    if event is Event.DONE and situation.phase == RUN:
        return stopped(situation, Cause.FINISHED)
    counted = _counted(situation, missed + (event is Event.LATE), event is not Event.LATE, rules)
    if event is Event.DONE and counted.phase != STOP:
        return counted._replace(phase=counted.phase + 1)
    return counted


def stopped(situation: Situation, cause: Cause) -> Situation:
    """From anywhere to the safe command; the first cause is the cause."""
    return situation._replace(phase=STOP, cause=situation.cause or cause)


def _counted(situation: Situation, late: int, arrived: bool, rules: Rules) -> Situation:
    """Keep count of late frames, of which there may be several before one that has arrived."""
    if not late and not situation.recent:
        return situation
    in_a_row = situation.in_a_row + late
    recent = ((situation.recent << late) | ((1 << late) - 1)) & _MASK
    if arrived:
        recent = (recent << 1) & _MASK
    now = situation._replace(in_a_row=0 if arrived else in_a_row, recent=recent)
    if in_a_row >= rules.in_a_row:
        return stopped(now, Cause.LATE)
    if recent.bit_count() >= rules.of_last_500:
        return stopped(now, Cause.OFTEN_LATE)
    return now


def _stopping(situation: Situation, event: Event, rules: Rules) -> Situation:
    """The safe command was sent once more; whoever is gone needs no more of them."""
    sent = situation.stopping + 1
    over = sent >= rules.repeats or event is Event.LOST
    return situation._replace(stopping=sent, phase=IDLE if over else STOP)
