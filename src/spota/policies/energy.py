"""Swing-up by energy, with a hand-over to balancing near upright, for the Cart-Pole and the Qube.

The driven body (the cart, the arm) is accelerated so that it does work on the pole until the pole's energy is that of
standing upright; a linear regulator then catches it. The policy has no memory. It hands over where the regulator is
able to hold the pole, so that balancing never leads back out of that region.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from spota.envs.cart_pole import CartPoleParams, CartPoleSwingUp, CartPole
from spota.envs.qube import Qube, QubeParams, QubeSwingUp
from spota.policies.lqr import lqr
from spota.policies.network import Linear
from spota.types import Env


class EnergySwingUp(eqx.Module):
    """Works on error states (q, e, q̇, ė): the driven body's position, the pole's angle from upright, velocities."""

    balance: Linear
    rate: float  # √(m g l / I) [1/s]: how fast the pole falls from upright
    inertia: float  # [V s²/unit of q] that accelerate the driven body
    damping: float  # [V s/unit of q] that its friction and back-EMF take
    volts: float
    pump: float  # largest acceleration that feeds the pole [unit of q/s²]
    gain: float  # acceleration a unit of energy
    centring: float  # [1/s²]
    braking: float  # [1/s]
    catch_tilt: float  # [rad]
    catch_fall: float  # [rad]
    surplus: float

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The regulator's action where it can hold the pole, else that of the swing-up."""
        action = jnp.where(self.holds(observation), self.balance(observation), self.swing(observation)[None])
        return jnp.clip(action, -1, 1)

    def holds(self, observation):
        e, e_dot = observation[1], observation[3]
        return (jnp.abs(e) < self.catch_tilt) & (jnp.abs(e + e_dot / self.rate) < self.catch_fall)

    def energy(self, observation):
        e, e_dot = observation[1], observation[3]
        return (e_dot / self.rate) ** 2 / 2 + jnp.cos(e) - 1

    def swing(self, observation):
        q, e, q_dot, e_dot = observation
        direction = jnp.where(e_dot * jnp.cos(e) < 0, -1.0, 1.0)
        feed = jnp.clip(self.gain * (self.surplus - self.energy(observation)), -self.pump, self.pump) * direction
        acceleration = feed - self.centring * q - self.braking * q_dot
        return (self.inertia * acceleration + self.damping * q_dot) / self.volts


def energy(env: Env, **kw) -> EnergySwingUp:
    xi = env.params({name: values[0] for name, values in env.domain.nominal().items()})
    f = float
    if isinstance(env, CartPole | CartPoleSwingUp):
        drive = xi.eta_g * xi.K_g * xi.k_m / (xi.R_m * xi.r_mp)
        d = dict(
            rate=f(jnp.sqrt(0.75 * xi.g / xi.l_p)),
            inertia=f((xi.m_p + xi.J_eq) / (drive * xi.eta_m)),
            damping=f((drive * xi.K_g * xi.k_m / xi.r_mp + xi.B_eq) / (drive * xi.eta_m)),
            volts=8.0,
            pump=10.0,
            gain=20.0,
            centring=30.0,
            braking=2.0,
            catch_tilt=0.35,
            catch_fall=0.15,
            surplus=0.0,
        )
    else:
        drive = xi.k_m / xi.R_m
        d = dict(
            rate=f(jnp.sqrt(xi.m_p * xi.g * xi.l / xi.I_p)),
            inertia=f((xi.J_r + xi.m_p * xi.l_r**2) / drive),
            damping=f(xi.k_m),
            volts=4.5,
            pump=60.0,
            gain=200.0,
            centring=20.0,
            braking=2.0,
            catch_tilt=0.35,
            catch_fall=0.15,
            surplus=0.0,
        )
    d.update(kw)
    return EnergySwingUp(lqr(env), **d)
