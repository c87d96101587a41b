"""Host environments: other people's simulators, a batch of machines with hidden state that the host steps.

A pure `Env` is compiled with us. A simulator in C or Python cannot be: here `rollout` compiles what is ours (noise,
policy, scaling, delay) as one step, and calls the physics between two of them. Above `rollout` nobody knows which.
"""

import abc
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, UInt8, UInt32

from spota.sim.env import Platform

HostDomains = Mapping[str, Float[np.ndarray, "n"]]
"""Domains by name, as the host has them."""
Draw = Callable[[], UInt8[np.ndarray, "height width 3"]]
"""What a machine looks like now: red, green and blue, the uppermost row first."""


class MachineError(Exception):
    """What `Machines` may raise when one of them breaks: which one, so that the error can name its domain."""

    def __init__(self, machine: int | None, what: str):
        """The machine's number in the batch, if that is known, and what happened."""
        super().__init__(what)
        self.machine = machine


class NoPictureError(Exception):
    """Why a machine cannot be drawn, as a clause: "there is no picture, because …"."""


@runtime_checkable
class Machines(Protocol):
    """n simulators side by side at one moment; arrays are [channel, n].

    They may have a method `picture()`, a `Draw` of the first one, which pages then show in motion.
    """

    def observe(self) -> Float[np.ndarray, "d n"]:
        """The ideal observation of every machine, in the order of `observations`."""
        ...

    def step(
        self, command: Float[np.ndarray, "a n"], active: Bool[np.ndarray, "n"]
    ) -> tuple[Float[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
        """Let the commands, in physical units, act for one time step: reward, and whether the machine failed in it.

        What inactive machines do is not looked at; they may stand still.
        """
        ...

    def close(self) -> None:
        """Free what the simulators hold."""
        ...


@dataclass(frozen=True, eq=False)
class HostEnv(Platform):
    """A platform whose physics are somebody else's."""

    at_once: ClassVar[int] = 1024
    """How many machines run side by side at most; further rollouts wait for them."""
    time_limit: ClassVar[float] = 60.0
    """Seconds after which a call that does not answer counts as hanging."""
    goes_on: ClassVar[bool] = True
    """Whether the physics of a machine that has failed go on, so that recordings can be followed there."""

    @property
    def patience(self) -> float | None:
        """The time limit, or None if the machines see to it themselves."""
        return self.time_limit

    @abc.abstractmethod
    def open(self, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]) -> Machines:
        """One machine per domain, at its start state; the same domain and seed give the same episode, in any batch."""

    def pictured(
        self, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]
    ) -> contextlib.AbstractContextManager[tuple[Machines, Draw]]:
        """The machines that `open` makes, and what draws the first of them; `NoPictureError` if nothing can."""
        return _with_picture(self.open(domains, seeds))

    @property
    def lacks(self) -> str | None:
        """What must be written before machines can begin where a recording was; None if they can."""
        return "its method open_at(domains, observation)" if type(self).open_at is HostEnv.open_at else None

    def open_at(self, domains: HostDomains, observation: Float[np.ndarray, "d n"]) -> Machines:
        """Optional, for recordings: one machine per domain, in the state that the ideal observation belongs to."""
        del domains, observation
        raise ValueError(f"{self.name} cannot begin where a recording was; write {self.lacks}.")

    def stale(self, domain: Mapping[str, float]) -> list[str]:
        """What the simulator still has from before after this domain was applied: a sentence each, for `check`."""
        del domain
        return []


@contextlib.contextmanager
def _with_picture(machines: Machines) -> Iterator[tuple[Machines, Draw]]:
    try:
        draw = getattr(machines, "picture", None)
        if draw is None:
            raise NoPictureError("its machines have no method picture()")
        yield machines, draw
    finally:
        machines.close()
