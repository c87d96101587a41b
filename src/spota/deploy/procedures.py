"""What a phase does, tick by tick: checks, calibration to the ends, placement by a controller, the policy's run."""

import enum
from collections.abc import MutableMapping
from typing import Protocol, runtime_checkable

import numpy as np

from spota.deploy.inference import Controller
from spota.envs.cart_pole import RAIL_MARGIN


class Status(enum.Enum):
    """How far a procedure is."""

    WORKING = enum.auto()
    DONE = enum.auto()
    FAILED = enum.auto()


WORKING, DONE, FAILED = Status
WINDOW = 0.25
"""Seconds over which measurements are averaged before anything is concluded from them."""


@runtime_checkable
class Procedure(Protocol):
    """One phase of a run."""

    moves: bool
    """Whether it sends anything but the safe command."""
    reason: str
    """Why it has failed."""

    def act(self, observation: np.ndarray, time: int, into: np.ndarray) -> Status:
        """Write the command for this observation, measured at that time of the device [ns]."""
        ...


class Average:
    """Means over windows of so many ticks, one after the other."""

    def __init__(self, ticks: int, width: int):
        """Of that many numbers."""
        self._ticks, self._seen = max(1, ticks), 0
        self._sum = np.zeros(width)
        self.mean = np.zeros(width)
        self.windows = 0

    def add(self, values: np.ndarray) -> bool:
        """Whether a window is full; then `mean` has its mean."""
        self._sum += values
        self._seen += 1
        if self._seen < self._ticks:
            return False
        np.divide(self._sum, self._seen, out=self.mean)
        self._sum[:] = 0.0
        self._seen = 0
        self.windows += 1
        return True


class Checks:
    """The device rests while its rate is measured over a second, and its echoes are waited for."""

    moves = False

    def __init__(self, dt: float, safe: tuple[float, ...], seconds: float = 1.0, tolerance: float = 0.05):
        """`tolerance` is the share by which the measured time step may differ from the promised one."""
        self._dt, self._safe, self._tolerance = dt, np.array(safe), tolerance
        self._gaps, self._seen = np.zeros(max(2, round(seconds / dt))), 0
        self._last: tuple[int, int] | None = None
        self.measured_dt = 0.0
        self.seq = self.echo = 0
        """Set by the loop: the newest frame's number, and the command that it echoes."""
        self.reason = ""

    def act(self, observation: np.ndarray, time: int, into: np.ndarray) -> Status:
        """Send the safe command, and measure."""
        del observation
        into[:] = self._safe
        if self._last is not None:
            self._gaps[self._seen] = (time - self._last[0]) / max(1, self.seq - self._last[1])
            self._seen += 1
        self._last = time, self.seq
        return WORKING if self._seen < self._gaps.size else self._judged()

    def _judged(self) -> Status:
        self.measured_dt = float(np.median(self._gaps)) / 1e9
        if abs(self.measured_dt / self._dt - 1) > self._tolerance:
            self.reason = (
                f"the device steps every {1e3 * self.measured_dt:.3g} ms, and promised {1e3 * self._dt:.3g} ms"
            )
            return FAILED
        if self.echo == 0:
            self.reason = "the device has taken none of the zero commands"
            return FAILED
        return DONE


class Nothing:
    """A phase that this platform does not need."""

    moves = False
    reason = ""

    def act(self, observation: np.ndarray, time: int, into: np.ndarray) -> Status:
        """Rest for one tick."""
        del observation, time
        into[:] = 0.0
        return DONE


class RailEnds:
    """Drive the cart slowly to both ends of its rail and back to the middle, which is zero from then on."""

    moves = True
    SPEED, PUSH, GAIN = 0.12, 1.2, 12.0
    """Wanted speed [m/s], voltage against friction [V], and that a unit of missing speed adds [V s/m]."""
    STILL, SHORTEST, CENTRED = 2e-3, 0.15, 0.02
    """Windows apart by less are an end [m]; a rail has at least so much; the middle is reached within [m]."""

    def __init__(self, dt: float, known: MutableMapping[str, float], zero: np.ndarray, seconds: float = 40.0):
        """Writes the rail's length into `known`, and the middle into `zero[0]`."""
        self._known, self._zero = known, zero
        self._average = Average(round(WINDOW / dt), 4)
        self._ends: list[float] = []
        self._last: float | None = None
        self._left = round(seconds / dt)
        self._integral, self._dt = 0.0, dt
        self.reason = ""

    def act(self, observation: np.ndarray, time: int, into: np.ndarray) -> Status:
        """Left, right, middle."""
        del time
        self._left -= 1
        if self._left < 0:
            self.reason = "the ends of the rail were not reached in time"
            return FAILED
        full = self._average.add(observation)
        if len(self._ends) < 2:
            wanted = -self.SPEED if not self._ends else self.SPEED
            into[:] = np.sign(wanted) * self.PUSH + self.GAIN * (wanted - observation[2])
            return self._look_for_end() if full else WORKING
        middle = sum(self._ends) / 2
        error = observation[0] - middle
        self._integral = min(max(self._integral + 10 * error * self._dt, -1.0), 1.0)
        into[:] = -25.0 * error - 8.0 * observation[2] - self._integral
        if full and abs(self._average.mean[0] - middle) < self.CENTRED and abs(self._average.mean[2]) < 0.05:
            self._zero[0] = middle
            return DONE
        return WORKING

    def _look_for_end(self) -> Status:
        """Whether the cart stands still although it is pushed."""
        here, last = float(self._average.mean[0]), self._last
        self._last = here
        if last is None or abs(here - last) > self.STILL:
            return WORKING
        self._ends.append(here)
        self._last = None
        if len(self._ends) < 2:
            return WORKING
        length = self._ends[1] - self._ends[0]
        if length < self.SHORTEST:
            self.reason = f"the ends of the rail are {length:.3f} m apart; is the cart stuck?"
            return FAILED
        self._known["rail_length"] = length + 2 * RAIL_MARGIN
        return WORKING


class SwingUp:
    """First the pole is brought to rest, hanging; then an energy-based swing-up, until it stands upright and is calm.

    A swing-up that does not catch the pole, because the machine is slower than the controller believes, is begun again.
    """

    moves = True
    NEAR = np.array([0.08, np.deg2rad(6.0), 0.15, np.deg2rad(25.0)])
    """Hand-over: means over a window within these of the upright rest [m or rad, and per second]."""
    HANGS, SLOW = np.deg2rad(170.0), 0.5
    """At rest: so far from upright [rad], and slower than that [rad/s]."""
    TRY = 10.0
    """Seconds after which a swing-up begins again, and a pole is taken to be at rest."""

    def __init__(self, swing: Controller, brake: Controller, dt: float, seconds: float = 60.0):
        """Give up after so long."""
        self._swing, self._brake, self._left = swing, brake, round(seconds / dt)
        self._resting, self._tries, self._try = True, 0, round(self.TRY / dt)
        self._average = Average(round(WINDOW / 2 / dt), 4)
        self.reason = ""

    def act(self, observation: np.ndarray, time: int, into: np.ndarray) -> Status:
        """Brake, swing, and hold."""
        del time
        (self._brake if self._resting else self._swing)(observation, into)
        self._left -= 1
        self._tries += 1
        if self._left < 0:
            self.reason = "the pole did not come up in time"
            return FAILED
        calm = self._average.add(observation)
        mean = self._average.mean
        if self._resting:
            hangs = calm and abs(observation[1]) > self.HANGS and abs(mean[3]) < self.SLOW and abs(mean[0]) < 0.05
            self._turn(bool(hangs))
            return WORKING
        if calm and bool((np.abs(mean) < self.NEAR).all()) and abs(observation[1]) < self.NEAR[1]:
            return DONE
        self._turn(False)
        return WORKING

    def _turn(self, now: bool) -> None:
        """From rest to swing, or back, when it is time."""
        if now or self._tries > self._try:
            self._resting, self._tries = not self._resting, 0


class BallTo:
    """The maker's PD controller, with a slow integral against offsets, brings the ball to a point of the plate."""

    moves = True
    K_P, K_D, K_I, K_SERVO, STEEPEST = 3.45, 2.11, 1.2, 14.0, 0.5236

    def __init__(self, target: tuple[float, float], dt: float, accuracy: float = 0.01, seconds: float = 30.0):
        """Within `accuracy` [m] of the target on average, and slow."""
        self._target, self._dt, self._accuracy = np.array(target), dt, accuracy
        self._integral, self._angle = np.zeros(2), np.zeros(2)
        self._average = Average(round(WINDOW / dt), 8)
        self._left = round(seconds / dt)
        self.reason = ""

    def act(self, observation: np.ndarray, time: int, into: np.ndarray) -> Status:
        """Tilt, and wait."""
        del time
        error = observation[2:4] - self._target
        self._integral += self._dt * error
        np.clip(self._integral, -0.15, 0.15, out=self._integral)
        np.clip(
            -self.K_P * error - self.K_D * observation[6:8] - self.K_I * self._integral,
            -self.STEEPEST, self.STEEPEST, out=self._angle,
        )  # fmt: skip
        np.subtract(self._angle, observation[0:2], out=into)
        into *= self.K_SERVO
        self._left -= 1
        if self._left < 0:
            self.reason = f"the ball did not come within {1e3 * self._accuracy:.0f} mm of its place in time"
            return FAILED
        if not self._average.add(observation):
            return WORKING
        off = float(np.hypot(*(self._average.mean[2:4] - self._target)))
        return DONE if off < self._accuracy and np.hypot(*self._average.mean[6:8]) < 0.03 else WORKING


class Acting:
    """The policy, for so many steps."""

    moves = True

    def __init__(self, controller: Controller, steps: int):
        """Steps are frames that were answered; missed ones are not made up for."""
        self._controller, self._left = controller, steps
        self.reason = ""

    def act(self, observation: np.ndarray, time: int, into: np.ndarray) -> Status:
        """Ask the policy."""
        del time
        self._controller(observation, into)
        self._left -= 1
        return DONE if self._left <= 0 else WORKING
