"""How a device introduces itself: what it is, what it measures and takes, and what it does when the host is gone."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spota.files.documents import check, parse_json
from spota.policies.contract import Contract
from spota.sim.env import Platform, Signal

FORMAT = 1
KIND = "device contract"
WATCHDOG_STEPS = 3
"""Steps without a command after which our devices set it to zero."""


@dataclass(frozen=True)
class Introduction:
    """The contract of a device; it travels in its answer to a hello."""

    platform: str
    dt: float
    observations: tuple[Signal, ...]
    actions: tuple[Signal, ...]
    watchdog: float | None
    """Seconds without a command after which the device sets it to `safe` by itself; None if it never does."""
    safe: tuple[float, ...]
    """The command at which the device comes to rest."""
    known: Mapping[str, float] = field(default_factory=dict)
    """Domain parameters that its owner has measured, such as a length."""

    @classmethod
    def of(cls, env: Platform, watchdog: float | None, known: Mapping[str, float] | None = None) -> "Introduction":
        """A device that is like a platform, and rests at zero."""
        rest = (0.0,) * len(env.actions)
        return cls(env.name, env.dt, env.observations, env.actions, watchdog, rest, dict(known or {}))

    @property
    def contract(self) -> Contract:
        """What a policy must have been made for."""
        return Contract(self.platform, self.dt, self.observations, self.actions)

    def to_json(self) -> str:
        """As the text of a contract frame."""
        signals = {kind: [list(dataclasses.astuple(s)) for s in getattr(self, kind)] for kind in _SIGNALS}
        about = {"format": FORMAT, "platform": self.platform, "dt": self.dt, "watchdog": self.watchdog}
        return json.dumps({**about, "safe": self.safe, "known": self.known, **signals}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Introduction":
        """Read what a device says; a ValueError says what is wrong with it."""
        try:
            words = text.decode() if isinstance(text, bytes) else text
        except UnicodeDecodeError as error:
            raise ValueError("The device's contract is not UTF-8 text.") from error
        where = "The device's contract"
        values = parse_json(words, where)
        check(values, KIND, where)
        signals = {kind: tuple(_signal(s) for s in values[kind]) for kind in _SIGNALS}
        if len(values["safe"]) != len(signals["actions"]):
            raise ValueError(f"{where} has {len(values['safe'])} safe values for {len(signals['actions'])} commands.")
        return cls(
            values["platform"],
            float(values["dt"]),
            **signals,
            watchdog=values["watchdog"],
            safe=tuple(map(float, values["safe"])),
            known={name: float(value) for name, value in values.get("known", {}).items()},
        )

    def check(self, policy: Contract) -> None:
        """Refuse a policy that was made for other signals or another time step."""
        mine, theirs = ([(s.name, s.unit) for s in (*c.observations, *c.actions)] for c in (self.contract, policy))
        if mine != theirs:
            raise ValueError(
                f"The device is a {self.platform} with {_names(mine)}, but the policy was made for {policy.env}, "
                f"with {_names(theirs)}; take a policy for this device."
            )
        if abs(self.dt - policy.dt) > 1e-9:
            raise ValueError(
                f"The device has a step of {self.dt:g} s, but the policy was made for {policy.dt:g} s; "
                "set the device's rate, or train with that step."
            )


_SIGNALS = ("observations", "actions")


def _signal(values: list[Any]) -> Signal:
    name, unit, low, high = values if len(values) == 4 else ("?", "?", 0, 0)
    fits = isinstance(name, str) and isinstance(unit, str) and isinstance(low, int | float)
    if not (fits and isinstance(high, int | float) and low < high):
        raise ValueError(f"The device's contract has the signal {values}; write [name, unit, low, high].")
    return Signal(name, unit, float(low), float(high))


def _names(signals: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} [{unit}]" for name, unit in signals)
