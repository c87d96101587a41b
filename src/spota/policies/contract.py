"""What a policy was made for: names, units and ranges of what it sees and does, the platform and its time step."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spota.sim.env import Platform, Signal


@dataclass(frozen=True)
class Contract:
    """Travels with every policy and its file; a policy runs only where its contract holds."""

    env: str
    dt: float
    observations: tuple[Signal, ...]
    actions: tuple[Signal, ...]

    @classmethod
    def of(cls, env: Platform) -> "Contract":
        """The contract of an environment."""
        return cls(env.name, env.dt, env.observations, env.actions)

    @property
    def observation_scale(self) -> tuple[float, ...]:
        """Factors that bring observations to order one."""
        return tuple(1 / max(abs(s.low), abs(s.high)) for s in self.observations)

    @property
    def action_scale(self) -> tuple[float, ...]:
        """Factors from physical commands, around the middle of their range, to [−1, 1]."""
        return tuple(2 / (s.high - s.low) for s in self.actions)

    def check(self, env: Platform):
        """Refuse an environment that shows or takes other signals than the policy was made for."""
        mine, theirs = ([(s.name, s.unit) for s in (*c.observations, *c.actions)] for c in (self, Contract.of(env)))
        if mine != theirs:
            raise ValueError(
                f"The policy was made for {self.env!r} ({_names(self)}), "
                f"but {env.name!r} has {_names(Contract.of(env))}; "
                f"run it with --env {self.env}, or train one for {env.name}."
            )
        if self.dt != env.dt:
            raise ValueError(f"The policy was made for steps of {self.dt} s, but {env.name} has {env.dt} s.")

    def to_json(self) -> str:
        """As text; `from_json` reads it."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Contract":
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Contract":
        """Read plain values; a signal whose range is empty is refused."""
        observed, acted = ([_signal(signal) for signal in values[kind]] for kind in ("observations", "actions"))
        return cls(values["env"], values["dt"], tuple(observed), tuple(acted))


def _signal(signal: Mapping[str, Any]) -> Signal:
    if not signal["low"] < signal["high"]:
        name, low, high = (signal[what] for what in ("name", "low", "high"))
        raise ValueError(f"the signal {name!r} ranges from {low} to {high}, which is no range.")
    return Signal(signal["name"], signal["unit"], signal["low"], signal["high"])


def _names(contract: Contract) -> str:
    return f"{', '.join(s.name for s in contract.observations)} → {', '.join(s.name for s in contract.actions)}"
