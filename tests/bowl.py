"""A platform whose returns are known in closed form: three decisions, each of which costs what the parameters say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import ActionDelay, Effects
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Constant, Integers, TruncatedNormal, Uniform

NU = DomainDistribution(
    strong=Parameter(Uniform(-1.0, 1.0), "m", "where the bowl is", nominal=0.2),
    weak=Parameter(TruncatedNormal(1.0, 0.1), "kg", "a little more", sign="positive"),
    idle=Parameter(Uniform(0.0, 1.0), "-", "nothing"),
    fixed=Parameter(Constant(3.0), "s", "what is known"),
    action_delay=Parameter(Integers(0, 2), "steps", "delay", nominal=0.0, sign="nonnegative"),
)
STEPS = 3


@dataclass(frozen=True, eq=False)
class Bowl(Env):
    """The return is −Σ (a − strong)² − weak − start over three steps; the action is the policy's constant."""

    domain: DomainDistribution = NU
    effects: Effects = Effects(delay=ActionDelay(longest=2))  # noqa: RUF009, frozen

    name = "bowl"
    dt = 1.0
    max_steps = STEPS
    max_reward = 0.0
    min_reward = -10.0
    observations = (Signal("start", "-", 0.0, 1.0),)
    actions = (Signal("a", "m", -1.0, 1.0),)

    def params(self, domain: Mapping[str, Any]) -> Any:
        return domain["strong"], domain["weak"]

    def start(self, key: Key[Array, ""], xi: Any) -> Any:
        del xi
        return 0.1 * jax.random.uniform(key)

    def observe(self, state: Any, xi: Any) -> tuple[Scalar, ...]:
        del xi
        return (state,)

    def reward(self, state: Any, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        return -((action[0] - xi[0]) ** 2) - xi[1] - state

    def step(self, state: Any, action: tuple[Scalar, ...], xi: Any) -> Any:
        del action, xi
        return state


class Hold(eqx.Module):
    """Always the same action."""

    action: Scalar

    def __call__(self, observation):
        return jnp.broadcast_to(jnp.asarray(self.action, jnp.float32), (1, *observation.shape[1:]))
