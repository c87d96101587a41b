"""The manufacturer's proportional-derivative controller of the Ball-Balancer."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from spota.envs.ball_balancer import VOLTS, BallBalancer
from spota.sim.env import Platform


class PD(eqx.Module):
    """An outer loop from the ball to a servo angle, an inner loop from the angle to a voltage."""

    k_p: float = 3.45  # [rad/m]
    k_d: float = 2.11  # [rad s/m]
    k_servo: float = 14.0  # [V/rad]
    max_angle: float = 0.5236  # [rad]

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The action that drives the ball to the centre."""
        theta, position, velocity = observation[0:2], observation[2:4], observation[6:8]
        wanted = jnp.clip(-self.k_p * position - self.k_d * velocity, -self.max_angle, self.max_angle)
        return self.k_servo * (wanted - theta) / VOLTS


def pd(env: Platform) -> PD:
    """The controller, for the Ball-Balancer only."""
    if not isinstance(env, BallBalancer):
        raise ValueError(f"The PD controller is made for ball-balancer, not for {env.name}; use --policy lqr.")
    return PD()
