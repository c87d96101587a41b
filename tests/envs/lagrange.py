"""Mechanics from nothing but positions: a second derivation for the Cart-Pole and the Qube, in double precision."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from spota.envs.integrate import symplectic_euler

Lagrangian = Callable[[jax.Array, jax.Array], jax.Array]
Flow = Callable[[jax.Array, jax.Array], jax.Array]  # q, q̇ → q̈

# |v|² is quadratic along a straight rod, so two Gauss points of half the mass each have its kinetic energy exactly.
GAUSS = (0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3))


def rod(points: Callable[[jax.Array, float], jax.Array], mass: float, g: float) -> Lagrangian:
    """L of a uniform rod; `points(q, share)` is where the point at that share of its length is, height last."""

    def lagrangian(q, v):
        total = jnp.zeros(())
        for share in GAUSS:
            place, velocity = jax.jvp(lambda q, share=share: points(q, share), (q,), (v,))
            total += mass / 2 * (velocity @ velocity / 2 - g * place[-1])
        return total

    return lagrangian


def flow(lagrangian: Lagrangian) -> Flow:
    """q̈ from the Euler–Lagrange equation: M q̈ = ∂L/∂q − (∂²L/∂q̇∂q) q̇."""

    def acceleration(q, v):
        M = jax.hessian(lagrangian, 1)(q, v)
        momentum_change = jax.jacobian(jax.grad(lagrangian, 1), 0)(q, v) @ v
        return jnp.linalg.solve(M, jax.grad(lagrangian, 0)(q, v) - momentum_change)

    return acceleration


def energy(lagrangian: Lagrangian, q: Any, v: Any) -> np.ndarray:
    """q̇ · ∂L/∂q̇ − L, for each row."""

    def one(q, v):
        return v @ jax.grad(lagrangian, 1)(q, v) - lagrangian(q, v)

    return np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(q), jnp.asarray(v)))


def reference(acceleration: Flow, start: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """q and q̇ at eleven moments up to the end, by an adaptive integrator."""
    half = start.size // 2
    right = jax.jit(lambda s: jnp.concatenate([s[half:], acceleration(s[:half], s[half:])]))
    moments = np.linspace(0, seconds, 11)
    solution = solve_ivp(
        lambda _, s: np.asarray(right(s)), (0, seconds), start, "DOP853", moments, rtol=1e-10, atol=1e-12
    )
    return solution.y[:half].T, solution.y[half:].T


def march(acceleration: Flow, start: np.ndarray, seconds: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """q and q̇ after every step of the platforms' own integrator."""
    half = start.size // 2

    def step(state, _):
        q, v = state[:half], state[half:]
        q, v = symplectic_euler(tuple(q), tuple(v), tuple(acceleration(q, v)), dt)
        state = jnp.stack([*q, *v])
        return state, state

    _, states = jax.jit(lambda s: jax.lax.scan(step, s, length=round(seconds / dt)))(jnp.asarray(start))
    return np.asarray(states[:, :half]), np.asarray(states[:, half:])


def drifts(acceleration: Flow, lagrangian: Lagrangian, start: np.ndarray, steps: tuple[float, ...]) -> np.ndarray:
    """The largest energy error within 5 s, for each step size."""
    first = energy(lagrangian, start[None, :2], start[None, 2:])
    paths = (march(acceleration, start, 5.0, dt) for dt in steps)
    return np.array([np.abs(energy(lagrangian, *path) - first).max() for path in paths])


def errors(acceleration: Flow, lagrangian: Lagrangian, start: np.ndarray, steps: tuple[float, ...]) -> np.ndarray:
    """The distance to the reference after 1 s, for each step size."""
    q, v = reference(flow(lagrangian), start, 1.0)
    end = np.concatenate([q[-1], v[-1]])
    paths = (march(acceleration, start, 1.0, dt) for dt in steps)
    return np.array([np.abs(np.concatenate([q[-1], v[-1]]) - end).max() for q, v in paths])
