"""A simulator of your own: a puck on ice, pushed to the middle. It is trained and assessed in seconds.

A platform is one frozen dataclass. Its methods are written for ONE domain with plain scalars; spota runs thousands side
by side. ξ, the parameters of the domain, is an argument of every method.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

import spota
from spota.sim.effects import Effects, ObservationNoise
from spota.sim.env import Scalar

# 1. What you know only roughly, with units.
NU = spota.DomainDistribution(
    mass=spota.Parameter(spota.TruncatedNormal(0.5, 0.1), "kg", "mass of the puck", "m", sign="positive"),
    friction=spota.Parameter(spota.Uniform(0.1, 0.5), "N s/m", "viscous friction", "B", sign="nonnegative"),
)


class Puck(eqx.Module):
    """The state: position [m] and velocity [m/s]."""

    x: Scalar
    v: Scalar


# 2. The platform.
@dataclass(frozen=True, eq=False)
class Ice(spota.Env):
    """Push a puck to the middle of the ice and keep it there."""

    domain: spota.DomainDistribution = NU
    effects: Effects = Effects(noise=ObservationNoise((0.01, 0.01)))  # noqa: RUF009, frozen

    name = "ice"
    dt = 0.1  # [s]
    max_steps = 50
    max_reward = 1.0
    observations = (spota.Signal("x", "m", -1.0, 1.0), spota.Signal("v", "m/s", -1.0, 1.0))
    actions = (spota.Signal("force", "N", -1.0, 1.0),)

    def params(self, domain: Mapping[str, Any]) -> tuple[Scalar, Scalar]:
        """ξ as the equations use it."""
        return domain["mass"], domain["friction"]

    def start(self, key: Key[Array, ""], xi: Any) -> Puck:
        """Somewhere on the ice, at rest."""
        del xi
        return Puck(jax.random.uniform(key, minval=-0.8, maxval=0.8), jnp.zeros(()))

    def observe(self, state: Puck, xi: Any) -> tuple[Scalar, ...]:
        """One scalar for each of `observations`."""
        del xi
        return state.x, state.v

    def reward(self, state: Puck, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        """1 in the middle with nothing to do, less elsewhere; never below `min_reward`, which is 0."""
        del xi
        return jnp.exp(-4.0 * state.x**2 - 0.1 * action[0] ** 2)

    def step(self, state: Puck, action: tuple[Scalar, ...], xi: Any) -> Puck:
        """m a = F − B v; first the new velocity, then the position."""
        mass, friction = xi
        v = state.v + self.dt * (action[0] - friction * state.v) / mass
        return Puck(state.x + self.dt * v, v)

    def danger(self, state: Puck, xi: Any) -> tuple[Scalar, ...]:
        """Above 1 the puck has left the ice: a failure, after which it earns nothing."""
        del xi
        return (jnp.abs(state.x),)


# 3. Train it, and ask for a second opinion.
SMALL = {"n_r": 5, "n_G": 10, "n_J": 10, "hidden": (8,)}
SHORT = {"iterations": 100, "rows": 100}


def main() -> None:
    """Print two certificates of the same policy."""
    ice = Ice()
    once = {"n_c": 200, "max_iterations": 1}
    trained = spota.train(ice, beta=2.5, solver="analytic", settings=SMALL | once, candidate=SHORT, reference=SHORT)
    print("Trained:", trained.certificate, sep="\n")
    own = {"settings": SMALL | {"n_c": 200}, "candidate": SHORT, "reference": SHORT}
    again = spota.assess(trained.policy, ice, beta=2.5, solver="analytic", seed=1, **own)
    print("\nAssessed once more, with other random domains:", again.certificate, sep="\n")


if __name__ == "__main__":
    main()
