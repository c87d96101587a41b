"""Swing-up by energy, with a hand-over to balancing near upright, for the Cart-Pole and the Qube.

The driven body (the cart, the arm) does work on the pole until the pole can stand; then the linear regulator holds
it. The policy has no memory and so no hysteresis: it hands over as soon as the pole is within reach of the regulator,
a region so wide that a caught pole stays inside it.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from spota.envs.cart_pole import CartPole, CartPoleSwingUp
from spota.envs.qube import Qube, QubeSwingUp
from spota.policies.lqr import lqr
from spota.policies.network import Linear
from spota.sim.env import Platform


@dataclass(frozen=True)
class Tuning:
    """The constants of a swing-up; q is the cart's position [m] or the arm's angle [rad]."""

    pump: float
    """Largest voltage that feeds the pole [V]."""
    gain: float
    """Voltage a unit of missing energy, in units of m g l [V]."""
    lead: float
    """1/T of the driven body's first-order lag T, for the timing of the pump [1/s]."""
    ahead: float
    """How far the pole is predicted, to make up for the action delay [s]."""
    stiffness: float
    """How much faster than the nominal pole the pumped one may fall: a stiffer pole asks for more energy [-]."""
    spring: float
    """Pull towards the centre [V/q]."""
    wall: float
    """Pull that grows with the cube of the distance: the ends of the rail, or of the cable [V/q³]."""
    brake: float
    """Drag on the driven body [V s/q]."""
    tilt: float
    """The regulator takes over within this angle from upright … [rad]"""
    fall: float
    """… if e + ė/λ, the part of the motion that grows by itself, is within this one [rad] …"""
    reach: float
    """… and, beyond `UPRIGHT`, if the driven body is within this distance of its centre [q]."""


UPRIGHT = 0.3  # [rad] within which the regulator acts wherever the driven body is

# Found by random search on 400 random domains; tests/policies/test_energy.py has the shares that they reach on others.
CART_POLE = Tuning(
    pump=7.4, gain=110.0, lead=15.0, ahead=0.005, stiffness=1.24,
    spring=17.0, wall=2100.0, brake=1.0, tilt=1.57, fall=0.58, reach=0.12,
)  # fmt: skip
QUBE = Tuning(
    pump=1.77, gain=13.0, lead=6.7, ahead=0.017, stiffness=2.7,
    spring=0.65, wall=0.18, brake=0.042, tilt=0.35, fall=1.18, reach=2.0,
)  # fmt: skip


class EnergySwingUp(eqx.Module):
    """Acts on error states (q, e, q̇, ė): the driven body's position, the pole's angle from upright, velocities."""

    balance: Linear
    rate: float  # λ = √(m g l / I) [1/s], how fast the nominal pole falls from upright
    volts: float
    tuning: Tuning = eqx.field(static=True)

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The regulator's action where it holds the pole, else that of the swing-up."""
        action = jnp.where(self.holds(observation)[None], self.balance(observation), self.swing(observation))
        return jnp.clip(action, -1.0, 1.0)

    def holds(self, observation: Float[Array, "d *n"]) -> Bool[Array, "*n"]:
        """Whether the regulator acts: the pole comes up, and there is room to catch it."""
        k, (q, e, _, e_dot) = self.tuning, observation
        rising = (jnp.abs(e) < k.tilt) & (jnp.abs(e + e_dot / self.rate) < k.fall)
        return rising & ((jnp.abs(e) < UPRIGHT) | (jnp.abs(q) < k.reach))

    def energy(self, e: Float[Array, "*n"], e_dot: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The energy of a stiffer pole in units of m g l: 0 at rest upright, −2 at rest hanging."""
        return (e_dot / (self.rate * self.tuning.stiffness)) ** 2 / 2 + jnp.cos(e) - 1

    def swing(self, observation: Float[Array, "d *n"]) -> Float[Array, "1 *n"]:
        """Feed the pole what it lacks, and keep the driven body near its centre.

        The pole gains ∫ ė cos e dq̇. A body that follows its voltage with a lag T does most work when the voltage has
        the sign of ė cos e + sin e / T.
        """
        k, (q, e, q_dot, e_dot) = self.tuning, observation
        e, e_dot = e + k.ahead * e_dot, e_dot + k.ahead * self.rate**2 * jnp.sin(e)
        direction = jnp.where(e_dot * jnp.cos(e) + k.lead * jnp.sin(e) < 0, -1.0, 1.0)
        feed = jnp.clip(-k.gain * self.energy(e, e_dot), -k.pump, k.pump) * direction
        return (feed - k.spring * q - k.wall * q**3 - k.brake * q_dot)[None] / self.volts

    def brake(self, observation: Float[Array, "d *n"]) -> Float[Array, "1 *n"]:
        """Take from the pole what it has more than at rest, hanging, and keep the driven body near its centre."""
        k, (q, e, q_dot, e_dot) = self.tuning, observation
        direction = jnp.where(e_dot * jnp.cos(e) + k.lead * jnp.sin(e) < 0, -1.0, 1.0)
        taken = jnp.clip(k.gain * (self.energy(e, e_dot) + 2), 0.0, k.pump) * direction
        return (-taken - k.spring * q - k.wall * q**3 - k.brake * q_dot)[None] / self.volts


def energy(env: Platform) -> EnergySwingUp:
    """The swing-up of the Cart-Pole or the Qube; on their balancing tasks it is the regulator with a wide reach."""
    if isinstance(env, CartPole | CartPoleSwingUp):
        falling, tuning = 3 / 4, CART_POLE  # I = 4/3 m l_p² with the half length l_p
    elif isinstance(env, Qube | QubeSwingUp):
        falling, tuning = 3 / 2, QUBE  # I = 1/3 m l_p² with the whole length l_p
    else:
        raise ValueError(f"The energy swing-up is made for the Cart-Pole and the Qube, not for {env.name}.")
    g, l_p = (env.domain[name].nominal_value for name in ("gravity", "pole_length"))
    return EnergySwingUp(lqr(env), (falling * g / l_p) ** 0.5, env.actions[0].high, tuning)
