"""Where a machine would be: segments of recordings, simulated again from their beginning with the recorded commands.

Delays may be fractions of a step here, by interpolation between two commands, so that they can be estimated like the
rest. `linearised` gives what a Gauss-Newton step needs of every segment, and keeps nothing else. Derivatives go through
the simulator if it is written in jax, and are differences of simulations if the host steps it (`host_prediction.py`).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.fit import host_prediction
from spota.fit.acting import acting
from spota.fit.coordinates import Coordinates
from spota.fit.recording import is_rate
from spota.fit.segments import Normal, Segments
from spota.sim import devices
from spota.sim.env import Env, Platform
from spota.sim.host import HostEnv
from spota.sim.rollout import pure

CHUNK = 512
"""Segments that a device simulates at once, with all their derivatives."""


def simulate(
    env: Env,
    domain: dict[str, Float[Array, ""]],
    start: Float[Array, "d"],
    commands: Float[Array, "steps a"],
    history: int,
) -> Float[Array, "t q"]:
    """The positions after every step of one segment, for one machine."""
    xi = env.params(domain)

    def body(state: Any, command: Float[Array, "a"]) -> tuple[Any, Float[Array, "q"]]:
        state = env.step(state, tuple(command), xi)
        seen = env.observe(state, xi)
        return state, jnp.stack([jnp.asarray(y) for y, s in zip(seen, env.observations, strict=True) if not is_rate(s)])

    return jax.lax.scan(body, env.at(tuple(start), xi), acting(env, domain, commands, history))[1]


def residuals(
    env: Env, domain: dict[str, Float[Array, ""]], start: Float[Array, "d"], segment: Segments
) -> Float[Array, "t q"]:
    """Measured less simulated positions of one segment; angles by the shorter way."""
    positions = simulate(env, domain, start, jnp.asarray(segment.commands), segment.history)
    off = jnp.asarray(segment.positions) - positions[segment.every - 1 :: segment.every]
    turned = jnp.array([float(s.unit == "rad") for s in env.observations if not is_rate(s)])[None]
    return off - 2 * jnp.pi * turned * jax.lax.stop_gradient(jnp.round(off / (2 * jnp.pi)))


def predicted(
    env: Platform, coordinates: Coordinates, z: Any, start: Any, segments: Segments
) -> Float[np.ndarray, "t q n"]:
    """What is left to explain of every segment, for the machine z[:, i] and the beginning start[:, i] of each."""
    if isinstance(env, HostEnv):
        return host_prediction.predicted(env, coordinates, z, start, segments)
    rows = (jnp.asarray(z, jnp.float32), jnp.asarray(start, jnp.float32), segments)
    found = devices.gather([(_left(pure(env), coordinates, *piece), n) for piece, n in devices.chunks(rows, 4 * CHUNK)])
    return np.asarray(found, np.float64)


def linearised(
    env: Platform, coordinates: Coordinates, z: Any, start: Any, segments: Segments, weights: Any, free: Any
) -> Normal:
    """The parts of a Gauss-Newton step, segment by segment; weights [t, q] are one over a variance.

    On the host derivatives cost simulations: by coordinates that are not free they are zero there.
    """
    if isinstance(env, HostEnv):
        return host_prediction.linearised(env, coordinates, z, start, segments, weights, free)
    rows = (jnp.asarray(z, jnp.float32), jnp.asarray(start, jnp.float32), segments)
    w = jnp.asarray(weights, jnp.float32)
    pieces = devices.chunks(rows, CHUNK)
    found = devices.gather([(_normal(pure(env), coordinates, w, *piece), n) for piece, n in pieces])
    matrix, gradient, cost = (np.asarray(x, np.float64) for x in found)
    return matrix, gradient, cost


def jacobians(env: Platform, coordinates: Coordinates, z: Any, start: Any, segments: Segments, free: Any) -> Any:
    """Residuals [t, q, n] and their derivatives [t, q, k, n] by the coordinates and the beginning."""
    if isinstance(env, HostEnv):
        return host_prediction.jacobians(env, coordinates, z, start, segments, free)
    rows = (jnp.asarray(z, jnp.float32), jnp.asarray(start, jnp.float32), segments)
    found = devices.gather([(_both(pure(env), coordinates, *piece), n) for piece, n in devices.chunks(rows, CHUNK)])
    return tuple(np.asarray(x, np.float64) for x in found)


def _one(env: Env, coordinates: Coordinates, point: Float[Array, "k"], segment: Segments) -> Float[Array, "t q"]:
    p = len(coordinates.names)
    return residuals(env, coordinates.domain(point[:p]), point[p:], segment)


@eqx.filter_jit
def _left(env: Env, coordinates: Coordinates, z: Any, start: Any, segments: Segments) -> Float[Array, "t q n"]:
    point = jnp.concatenate([z, start])
    return jax.vmap(lambda x, s: _one(env, coordinates, x, s), in_axes=-1, out_axes=-1)(point, segments)


@eqx.filter_jit
def _both(env: Env, coordinates: Coordinates, z: Any, start: Any, segments: Segments) -> Any:
    def one(x: Float[Array, "k"], segment: Segments) -> Any:
        f = lambda point: (lambda r: (r, r))(_one(env, coordinates, point, segment))  # noqa: E731, value beside
        jacobian, value = jax.jacfwd(f, has_aux=True)(x)
        return value, jacobian

    return jax.vmap(one, in_axes=-1, out_axes=-1)(jnp.concatenate([z, start]), segments)


@eqx.filter_jit
def _normal(env: Env, coordinates: Coordinates, weights: Any, z: Any, start: Any, segments: Segments) -> Any:
    r, J = _both(env, coordinates, z, start, segments)  # J = ∂(measured − simulated)
    matrix = jnp.einsum("tqin,tq,tqjn->ijn", J, weights, J)
    gradient = jnp.einsum("tqin,tq,tqn->in", J, weights, r)
    return matrix, gradient, jnp.einsum("tqn,tq->n", r**2, weights)
