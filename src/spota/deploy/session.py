"""The loop: the device paces, the host supervises. A frame comes, it is judged, answered and logged; then the next.

The newest frame wins. Missed ticks are skipped, never made up for. Whatever goes wrong, the device gets its safe
command, several times, before the line is closed; should we not be able to send it, its watchdog acts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from spota.deploy.age import Age
from spota.deploy.judgement import Judgement
from spota.deploy.links import Link, LostError, UnreachableError
from spota.deploy.log import Log, Ticks
from spota.deploy.phases import IDLE, PHASES, RUN, STOP
from spota.deploy.procedures import Checks, Procedure, Status
from spota.deploy.realtime import undisturbed
from spota.deploy.rules import Rules
from spota.deploy.signals import Pending, noticed
from spota.deploy.supervisor import STOPS, Cause, Event, Situation, after, stopped

FIRST = 1.0
"""Seconds to wait for the first frame."""
SPARE = 200
"""Rows of a log beyond those that were planned."""
EVENTS = {Status.WORKING: Event.FRAME, Status.DONE: Event.DONE, Status.FAILED: Event.FAILED}


@dataclass(frozen=True)
class Ended:
    """How it ended, and everything that happened."""

    cause: Cause
    phase: int
    """In which phase the cause was."""
    words: str
    """One sentence."""
    ticks: Ticks
    measured_dt: float = 0.0
    known: Mapping[str, float] = field(default_factory=dict)
    """The domain's parameters, as far as they were measured; the others are nominal."""
    zero: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """What was subtracted from the measurements in the end."""
    echoes: bool = True
    """Whether the device says which command acted."""


class Session:
    """One connection to a device, from the checks to the safe stop."""

    def __init__(
        self,
        link: Link,
        procedures: Mapping[int, Procedure],
        judgement: Judgement,
        rules: Rules,
        ranges: Mapping[int, np.ndarray],
        *,
        zero: np.ndarray,
        rows: int,
    ):
        """`procedures` and `ranges` [2, d] go by phase; `zero` is subtracted from what is measured."""
        self._link, self._procedures, self._judgement, self._rules = link, procedures, judgement, rules
        self._ranges, self._zero = ranges, zero
        device = link.introduction
        self._dt, self._safe = device.dt, np.array(device.safe)
        low, high = np.array([(s.low, s.high) for s in device.actions]).T
        middle, half = (low + high) / 2, rules.limit * (high - low) / 2
        self._low, self._high = middle - half, middle + half
        self._observation = np.zeros(len(device.observations))
        self._command, self._wanted = self._safe.copy(), self._safe.copy()
        self._log = Log(device.contract, rows + SPARE)
        self._age, self._last_seq, self._lates = Age(), 0, 0
        self._first_motion: int | None = None
        self._missed = self._dangers = 0
        self._words = ""

    def run(self) -> Ended:
        """Go through all phases; the line is closed afterwards, whatever happens."""
        situation, at = Situation(), IDLE
        with noticed() as pending, undisturbed():
            try:
                self._link.begin()
                while situation.phase != IDLE:
                    at = at if situation.phase == STOP else situation.phase
                    event = self._tick(situation, pending)
                    situation = after(situation, event, self._rules, self._missed)
            except (LostError, UnreachableError) as error:  # it has vanished since it introduced itself
                self._words = str(error).rstrip(".")
                situation = stopped(situation, Cause.LOST)
            except Exception as error:  # of a policy, for example: stop safely first, then say so
                self._words = f"{type(error).__name__}: {error}"
                situation = stopped(situation, Cause.ERROR)
                self._stop_blindly()
            finally:
                self._link.close()
        assert situation.cause is not None
        return self._ended(situation.cause, at)

    def _tick(self, situation: Situation, pending: Pending) -> Event:
        """One frame, or the time in which there should have been one."""
        stopping = situation.phase == STOP
        if pending.event is not None and not stopping:
            return pending.event
        try:
            arrived = self._link.receive(self._patience())
            event = self._answer(situation.phase) if arrived else self._hold(situation)
        except LostError as error:
            self._words = self._words or str(error)
            return Event.LOST
        return event

    def _patience(self) -> float:
        if not self._link.inbox.taken:
            return FIRST
        return self._dt if self._lates else self._dt * (1 + self._rules.tolerance)

    def _answer(self, phase: int) -> Event:
        """A frame is there: judge it, and answer."""
        begun = self._link.now()
        event, danger, age = self._judged(phase, begun)
        if event is Event.FRAME:
            event = self._act(phase)
        else:
            self._wanted[:] = self._command[:] = self._safe
        number = self._link.send(self._command, STOP if event in STOPS else phase)
        self._write(phase, True, number, age, danger, (self._link.now() - begun) / 1e9)
        self._lates = 0
        return event

    def _judged(self, phase: int, now: int) -> tuple[Event, float, float]:
        inbox = self._link.inbox
        skipped = (inbox.seq - self._last_seq - 1) % 2**32 if self._last_seq else 0
        self._missed = max(0, skipped - self._lates)
        self._last_seq = inbox.seq
        age = self._age.of(now, inbox.time)
        if not np.isfinite(inbox.values).all():
            return Event.NOT_FINITE, 0.0, age
        np.subtract(inbox.values, self._zero, out=self._observation)
        if phase == STOP:
            return Event.FRAME, 0.0, age
        if skipped > self._rules.jump:
            return Event.JUMP, 0.0, age
        if age > self._rules.oldest:
            return Event.OLD, 0.0, age
        low, high = self._ranges[phase]
        if (self._observation < low).any() or (self._observation > high).any():
            return Event.RANGE, 0.0, age
        danger = self._judgement.danger(self._observation) if phase == RUN else 0.0
        self._dangers = self._dangers + 1 if danger > self._rules.danger else 0
        return Event.DANGER if self._dangers >= self._rules.confirm else Event.FRAME, danger, age

    def _act(self, phase: int) -> Event:
        """Let the phase's procedure choose a command, within our limits."""
        if phase == STOP:
            self._wanted[:] = self._command[:] = self._safe
            return Event.FRAME
        procedure, inbox = self._procedures[phase], self._link.inbox
        if isinstance(procedure, Checks):
            procedure.seq, procedure.echo = inbox.seq, inbox.echo
        status = procedure.act(self._observation, inbox.time, self._wanted)
        if not np.isfinite(self._wanted).all():
            raise ValueError("the policy has asked for a command that is not a number")
        np.clip(self._wanted, self._low, self._high, out=self._command)
        if procedure.moves:
            self._ramp(inbox.time)
        if status is Status.FAILED:
            self._words = procedure.reason
            self._command[:] = self._safe
        return EVENTS[status]

    def _ramp(self, time: int) -> None:
        """From the first motion on, the command may leave the safe one little by little."""
        if self._first_motion is None:
            self._first_motion = time
        share = (time - self._first_motion) / 1e9 / self._rules.ramp if self._rules.ramp else 1.0
        if share < 1:
            self._command -= self._safe
            self._command *= share
            self._command += self._safe

    def _hold(self, situation: Situation) -> Event:
        """No frame: hold the last command for a moment, then the safe one."""
        self._missed = 0
        self._lates += 1
        if self._lates > self._rules.hold or situation.phase == STOP:
            self._command[:] = self._safe
        number = 0
        if not self._link.lock_step or situation.phase == STOP:
            number = self._link.send(self._command, situation.phase)
        self._write(situation.phase, False, number, np.nan, np.nan, 0.0)
        return Event.LATE

    def _stop_blindly(self) -> None:
        """The safe command, as often as at any stop, without waiting for frames."""
        self._command[:] = self._wanted[:] = self._safe
        try:
            for _ in range(self._rules.repeats):
                self._write(STOP, self._link.receive(self._dt), self._link.send(self._safe, STOP), np.nan, np.nan, 0.0)
        except (LostError, OSError):
            return

    def _write(self, phase: int, arrived: bool, number: int, age: float, danger: float, work: float) -> None:
        log, inbox = self._log, self._link.inbox
        row, columns = log.next(), log.columns
        columns["host_time"][row] = self._link.now()
        columns["device_time"][row], columns["seq"][row], columns["echo"][row] = inbox.time, inbox.seq, inbox.echo
        columns["number"][row], columns["phase"][row], columns["arrived"][row] = number, phase, arrived
        columns["missed"][row], columns["watchdog"][row] = self._missed, bool(inbox.flags & 1)
        columns["age"][row], columns["danger"][row], columns["work"][row] = age, danger, work
        log.observation[row], log.wanted[row], log.sent[row] = self._observation, self._wanted, self._command

    def _ended(self, cause: Cause, at: int) -> Ended:
        checks = next((p for p in self._procedures.values() if isinstance(p, Checks)), None)
        more = f" ({self._words})" if self._words else ""
        where = f" in the phase {PHASES[at]}"
        words = f"Stopped safely{where}: {cause.words}{more}."
        if cause is Cause.FINISHED:
            words = "It ran to its end, and was stopped safely."
        measured = checks.measured_dt if checks else 0.0
        known, echoes = dict(self._judgement.domain), not self._link.lock_step
        return Ended(cause, at, words, self._log.cut(), measured, known, self._zero.copy(), echoes)
