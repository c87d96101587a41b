"""Where a machine would be: segments of recordings, simulated again from their beginning with the recorded commands.

Delays may be fractions of a step here, by interpolation between two commands, so that they can be estimated like the
rest. `linearised` gives what a Gauss-Newton step needs of every segment, and keeps nothing else.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.fit.coordinates import Coordinates
from spota.fit.recording import is_rate
from spota.fit.segments import Segments
from spota.sim import devices
from spota.sim.env import Env

CHUNK = 512
"""Segments that a device simulates at once, with all their derivatives."""

Normal = tuple[Float[np.ndarray, "k k n"], Float[np.ndarray, "k n"], Float[np.ndarray, "n"]]
"""JᵀWJ, JᵀWr and rᵀWr of every segment, for the p coordinates and then the d of its beginning."""


def simulate(
    env: Env,
    domain: dict[str, Float[Array, ""]],
    start: Float[Array, "d"],
    commands: Float[Array, "steps a"],
    history: int,
) -> Float[Array, "t q"]:
    """The positions after every step of one segment, for one machine."""
    xi = env.params(domain)
    columns = {name: value[None] for name, value in domain.items()}  # effects are written for batches: here, of steps
    acting = env.effects.reach(_delayed(env, commands, domain, history).T, columns).T

    def body(state: Any, command: Float[Array, "a"]) -> tuple[Any, Float[Array, "q"]]:
        state = env.step(state, tuple(command), xi)
        seen = env.observe(state, xi)
        return state, jnp.stack([jnp.asarray(y) for y, s in zip(seen, env.observations, strict=True) if not is_rate(s)])

    return jax.lax.scan(body, env.at(tuple(start), xi), acting)[1]


def residuals(
    env: Env, domain: dict[str, Float[Array, ""]], start: Float[Array, "d"], segment: Segments
) -> Float[Array, "t q"]:
    """Measured less simulated positions of one segment; angles by the shorter way."""
    positions = simulate(env, domain, start, jnp.asarray(segment.commands), segment.history)
    off = jnp.asarray(segment.positions) - positions[segment.every - 1 :: segment.every]
    turned = jnp.array([float(s.unit == "rad") for s in env.observations if not is_rate(s)])[None]
    return off - 2 * jnp.pi * turned * jax.lax.stop_gradient(jnp.round(off / (2 * jnp.pi)))


def predicted(env: Env, coordinates: Coordinates, z: Any, start: Any, segments: Segments) -> Float[np.ndarray, "t q n"]:
    """What is left to explain of every segment, for the machine z[:, i] and the beginning start[:, i] of each."""
    rows = (jnp.asarray(z, jnp.float32), jnp.asarray(start, jnp.float32), segments)
    found = devices.gather([(_left(env, coordinates, *piece), n) for piece, n in devices.chunks(rows, 4 * CHUNK)])
    return np.asarray(found, np.float64)


def linearised(env: Env, coordinates: Coordinates, z: Any, start: Any, segments: Segments, weights: Any) -> Normal:
    """The parts of a Gauss-Newton step, segment by segment; weights [t, q] are one over a variance."""
    rows = (jnp.asarray(z, jnp.float32), jnp.asarray(start, jnp.float32), segments)
    w = jnp.asarray(weights, jnp.float32)
    pieces = devices.chunks(rows, CHUNK)
    found = devices.gather([(_normal(env, coordinates, w, *piece), n) for piece, n in pieces])
    matrix, gradient, cost = (np.asarray(x, np.float64) for x in found)
    return matrix, gradient, cost


def jacobians(env: Env, coordinates: Coordinates, z: Any, start: Any, segments: Segments) -> Any:
    """Residuals [t, q, n] and their derivatives [t, q, k, n] by the coordinates and the beginning."""
    rows = (jnp.asarray(z, jnp.float32), jnp.asarray(start, jnp.float32), segments)
    found = devices.gather([(_both(env, coordinates, *piece), n) for piece, n in devices.chunks(rows, CHUNK)])
    return tuple(np.asarray(x, np.float64) for x in found)


def _delayed(
    env: Env, commands: Float[Array, "steps a"], domain: dict[str, Float[Array, ""]], history: int
) -> Float[Array, "t a"]:
    """The command that acts in every step; a fraction of a step lies between two of them."""
    name = env.effects.delay.parameter
    if name not in domain or history == 0:
        return commands[history:]
    delay = jnp.clip(domain[name], 0.0, history)
    whole = jnp.clip(jnp.floor(jax.lax.stop_gradient(delay)).astype(jnp.int32), 0, max(history - 1, 0))
    part = delay - whole
    steps = commands.shape[0] - history
    now = jax.lax.dynamic_slice_in_dim(commands, history - whole, steps)
    before = jax.lax.dynamic_slice_in_dim(commands, history - whole - 1, steps)
    return (1 - part) * now + part * before


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
