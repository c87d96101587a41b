"""`prediction.py` for simulators that the host steps: nothing can be differentiated there, so machines are compared.

A segment with k unknowns is simulated k + 1 times, once as it is and once with each of them a little larger, all of it
side by side in batches of the platform's `at_once` machines.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from spota.fit.acting import acting
from spota.fit.coordinates import Coordinates
from spota.fit.recording import is_rate
from spota.fit.segments import Normal, Segments
from spota.sim import devices
from spota.sim.host import HostEnv
from spota.sim.replaying import replay

STEP = 2.0**-9
"""What is added to a coordinate, in prior standard deviations: far above the rounding of 32 bits, and little."""
PART = 1e-4
"""What is added to a beginning, of the signal's range."""
CHUNK = 4096
"""Segments whose commands are delayed at once."""


def predicted(
    env: HostEnv, coordinates: Coordinates, z: Any, start: Any, segments: Segments
) -> Float[np.ndarray, "t q n"]:
    """What is left to explain of every segment, for the machine z[:, i] and the beginning start[:, i] of each."""
    rows = (jnp.asarray(z, jnp.float32), jnp.asarray(segments.commands))
    pieces = devices.chunks(rows, CHUNK)
    domains, commands = devices.gather([(_told(env, coordinates, segments.history, *piece), n) for piece, n in pieces])
    seen = replay(env, domains, np.asarray(start, np.float64), commands, segments.every)
    positions = [i for i, s in enumerate(env.observations) if not is_rate(s)]
    off = segments.positions - seen[:, positions]
    turned = np.array([float(env.observations[i].unit == "rad") for i in positions])[:, None]
    return off - 2 * np.pi * turned * np.round(off / (2 * np.pi))


def linearised(
    env: HostEnv, coordinates: Coordinates, z: Any, start: Any, segments: Segments, weights: Any, free: Any
) -> Normal:
    """The parts of a Gauss-Newton step, segment by segment."""
    parts = [_normal(*jacobians(env, coordinates, z[:, i], start[:, i], segments.chosen(i), free), weights)
             for i in _batches(env, segments.n, free)]  # fmt: skip
    matrix, gradient, cost = (np.concatenate(x, axis=-1) for x in zip(*parts, strict=True))
    return matrix, gradient, cost


def jacobians(
    env: HostEnv, coordinates: Coordinates, z: Any, start: Any, segments: Segments, free: Bool[np.ndarray, "p"]
) -> tuple[Float[np.ndarray, "t q n"], Float[np.ndarray, "t q k n"]]:
    """Residuals and their differences by the free coordinates and the beginning; by others they are zero."""
    p, n = z.shape
    step = np.concatenate([np.full(p, STEP), [PART * (s.high - s.low) for s in env.observations]])
    moving = np.flatnonzero(np.concatenate([free, np.ones(len(env.observations), bool)]))
    point = np.repeat(np.concatenate([z, start])[:, None], moving.size + 1, axis=1)
    point[moving, 1 + np.arange(moving.size)] += step[moving, None]
    point = point.reshape(step.size, -1)
    r = predicted(env, coordinates, point[:p], point[p:], segments.chosen(np.tile(np.arange(n), moving.size + 1)))
    r = r.reshape(*r.shape[:2], moving.size + 1, n)
    J = np.zeros((*r.shape[:2], step.size, n))
    J[:, :, moving] = (r[:, :, 1:] - r[:, :, :1]) / step[moving, None]
    return r[:, :, 0], J


def _batches(env: HostEnv, n: int, free: Bool[np.ndarray, "p"]) -> list[np.ndarray]:
    """Segments in groups, each of which fills the platform's batch with its differences."""
    width = max(1, env.at_once // (1 + int(np.sum(free)) + len(env.observations)))
    return [np.arange(first, min(first + width, n)) for first in range(0, n, width)]


def _normal(r: np.ndarray, J: np.ndarray, weights: Float[np.ndarray, "t q"]) -> Normal:
    matrix = np.einsum("tqin,tq,tqjn->ijn", J, weights, J, optimize=True)
    gradient = np.einsum("tqin,tq,tqn->in", J, weights, r, optimize=True)
    return matrix, gradient, np.einsum("tqn,tq->n", r**2, weights)


@eqx.filter_jit
def _told(
    env: HostEnv, coordinates: Coordinates, history: int, z: Float[Array, "p n"], commands: Float[Array, "steps a n"]
) -> tuple[dict[str, Float[Array, "n"]], Float[Array, "t a n"]]:
    """The domain of every segment's machine, and the commands that reach its physics."""

    def one(x: Float[Array, "p"], given: Float[Array, "steps a"]) -> Any:
        domain = coordinates.domain(x)
        return domain, acting(env, domain, given, history)

    return jax.vmap(one, in_axes=-1, out_axes=-1)(z, commands)
