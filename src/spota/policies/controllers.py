"""The classical controllers by name, and a policy beside the one of its platform."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from spota.policies.energy import energy
from spota.policies.lqr import lqr
from spota.policies.pd import pd
from spota.sim import rollout
from spota.sim.domain import Domains
from spota.sim.env import Platform, Policy

CONTROLLERS: dict[str, Callable[[Platform], Policy]] = {"pd": pd, "lqr": lqr, "energy": energy}

CLEAR = 2.0
"""Standard errors that a mean difference must have before it counts."""


def own_controller(env: Platform) -> Policy:
    """The platform's classical controller."""
    if env.controller is None:
        raise ValueError(f"{env.name} has no classical controller; start from a new network: --start new.")
    return CONTROLLERS[env.controller](env)


@dataclass(frozen=True)
class Beside:
    """A policy beside the platform's controller: returns on the same domains, with the same random numbers."""

    controller: str
    returns: Float[np.ndarray, "n"]
    controller_returns: Float[np.ndarray, "n"]
    controller_survival: float

    @classmethod
    def of(cls, env: Platform, outcome: rollout.Outcome, domains: Domains, keys: Key[Array, "n 1"]) -> "Beside":
        """From what a policy earned on domains with keys: the controller meets the same."""
        rival = rollout.returns(env, own_controller(env), domains, keys)
        mine, theirs = (np.asarray(o.returns[:, 0], np.float64) for o in (outcome, rival))
        return cls(str(env.controller), mine, theirs, float(np.mean(rival.survived)))

    @property
    def gain(self) -> float:
        """What the policy earns more, on average."""
        return float((self.returns - self.controller_returns).mean())

    @property
    def standard_error(self) -> float:
        """Of the gain, over domains."""
        return float((self.returns - self.controller_returns).std(ddof=1) / np.sqrt(self.returns.size))

    @property
    def verdict(self) -> str:
        """Whether the policy is better, worse, or neither as far as these domains tell."""
        if abs(self.gain) <= CLEAR * self.standard_error:
            return "equal"
        return "better" if self.gain > 0 else "worse"

    @property
    def warnings(self) -> list[str]:
        """What to say loudly: that the training was for nothing."""
        if self.verdict != "worse":
            return []
        return [
            f"The policy is worse than the platform's own controller: on the same {self.returns.size} unseen domains "
            f"{self.controller} earns {self._numbers(-self.gain)} more. Use {self.controller}, or train differently: "
            "from an imitation of it (--start controller), on more domains, or longer."
        ]

    def __str__(self) -> str:
        """In words."""
        how = {
            "better": f"which the policy exceeds by {self._numbers(self.gain)}",
            "worse": f"{self._numbers(-self.gain)} more than the policy",
            "equal": f"and cannot be told apart from the policy (difference {self._numbers(self.gain)})",
        }[self.verdict]
        where = f"on {self.returns.size} unseen domains"
        earned = f"{self.controller} earns {self.controller_returns.mean():.1f} {where}"
        return f"The platform's own controller {earned}, {how}."

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For a block of a run; `from_arrays` reads it."""
        return {name: np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Beside":
        """Read what `to_arrays` wrote."""
        returns = (arrays["returns"], arrays["controller_returns"])
        return cls(str(arrays["controller"]), *returns, float(arrays["controller_survival"]))

    def to_dict(self) -> dict[str, Any]:
        """For result.json."""
        return {
            "name": self.controller,
            "n": self.returns.size,
            "mean": float(self.controller_returns.mean()),
            "survival": self.controller_survival,
            "policy_mean": float(self.returns.mean()),
            "gain": self.gain,
            "gain_standard_error": self.standard_error,
            "verdict": self.verdict,
        }

    def _numbers(self, value: float) -> str:
        return f"{value:.1f} ± {CLEAR * self.standard_error:.1f}"


def beside_controller(key: Key[Array, ""], env: Platform, policy: Policy, n: int) -> Beside:
    """Run a policy and its platform's controller on n random domains, one rollout each, with the same keys."""
    k_domains, k_rollouts = jax.random.split(key)
    domains, keys = env.domain.sample(k_domains, n), jax.random.split(k_rollouts, (n, 1))
    return Beside.of(env, rollout.returns(env, policy, domains, keys), domains, keys)
