"""A small platform whose programs compile quickly: push a mass to the origin and keep it there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from spota.policies import FNN, fnn, lqr
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import Effects
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Uniform

NU = DomainDistribution(mass=Parameter(Uniform(0.5, 1.5), "kg", "mass", "m", sign="positive"))


class PointMassState(eqx.Module):
    """Position [m] and velocity [m/s]."""

    x: Scalar
    v: Scalar


@dataclass(frozen=True, eq=False)
class PointMass(Env):
    """Fails when the mass is further than 1 m away."""

    domain: DomainDistribution = NU
    effects: Effects = Effects()  # noqa: RUF009, frozen

    name = "point-mass"
    dt = 0.1
    max_steps = 20
    max_reward = 1.0
    observations = (Signal("x", "m", -1.0, 1.0), Signal("v", "m/s", -2.0, 2.0))
    actions = (Signal("F", "N", -2.0, 2.0),)
    lqr_weights = ((1.0, 0.1), (0.1,))

    def params(self, domain: Mapping[str, Any]) -> Any:
        return domain["mass"]

    def start(self, key: Key[Array, ""], xi: Any) -> PointMassState:
        del xi
        x, v = jax.random.uniform(key, (2,), minval=-0.5, maxval=0.5)
        return PointMassState(x, v)

    def equilibrium(self, xi: Any) -> PointMassState:
        del xi
        return PointMassState(jnp.zeros(()), jnp.zeros(()))

    def observe(self, state: PointMassState, xi: Any) -> tuple[Scalar, ...]:
        del xi
        return state.x, state.v

    def reward(self, state: PointMassState, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        del xi
        return jnp.exp(-(state.x**2) - 0.1 * state.v**2 - 0.01 * action[0] ** 2)

    def step(self, state: PointMassState, action: tuple[Scalar, ...], xi: Any) -> PointMassState:
        v = state.v + self.dt * action[0] / xi
        return PointMassState(state.x + self.dt * v, v)

    def danger(self, state: PointMassState, xi: Any) -> tuple[Scalar, ...]:
        del xi
        return (jnp.abs(state.x),)


def regulator(env: Env) -> FNN:
    """A network that is the LQR for small signals, where tanh is linear."""
    like, small = fnn(jax.random.key(0), env, (len(env.observations),)), 0.05
    contract = like.contract
    gains = lqr(env).gains * contract.action_scale[0] / jnp.array([contract.observation_scale])
    return FNN((small * jnp.eye(len(env.observations)), gains / small), like.biases, contract)
