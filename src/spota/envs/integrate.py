"""What the mechanical platforms share: the integrator and the quadratic cost."""

from collections.abc import Sequence

import jax.numpy as jnp

from spota.sim.env import Scalar

Coordinates = tuple[Scalar, ...]


def symplectic_euler(
    position: Coordinates, velocity: Coordinates, acceleration: Coordinates, dt: float
) -> tuple[Coordinates, Coordinates]:
    """New velocity first, then the position with the new velocity: energy errors stay bounded."""
    velocity = tuple(v + dt * a for v, a in zip(velocity, acceleration, strict=True))
    position = tuple(q + dt * v for q, v in zip(position, velocity, strict=True))
    return position, velocity


def exponentiated_cost(
    state: Coordinates, action: Coordinates, Q: Sequence[float], R: Sequence[float], sharpness: float
) -> Scalar:
    """exp(sharpness · (sᵀQs + aᵀRa)) with diagonal weights, the form of eq_rewfcn_QBB and eq_rewfcn_QCP."""
    cost = sum(w * v**2 for w, v in zip((*Q, *R), (*state, *action), strict=True))
    return jnp.exp(sharpness * cost)


def wrap(angle: Scalar) -> Scalar:
    """The same angle in (−π, π]."""
    return jnp.pi - (jnp.pi - angle) % (2 * jnp.pi)
