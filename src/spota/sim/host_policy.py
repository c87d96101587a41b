"""Policies that jax cannot trace: NumPy, `if`, another runtime. They run on the host, between two compiled steps.

A function in NumPy is tried once, on a few observations: whether it takes many side by side or one at a time, and
whether it gives the same answer twice. What it returns is checked in the words of whoever wrote it.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.sim.acting import remembers
from spota.sim.checks import SEVERAL, check_policy, described, users_line
from spota.sim.env import Platform, Policy, Signal
from spota.text import check_choice

Units = Literal["normalised", "physical"]
KINDS = 64
"""Kinds of networks of which it is remembered what jax makes of them."""


@dataclass(frozen=True, eq=False)
class OwnPolicy:
    """A function with the units of its actions; rollouts make of it what their platform needs."""

    function: Callable[..., Any]
    units: Units = "normalised"

    def __post_init__(self):
        """Refuse units that nobody knows."""
        check_choice("units", self.units, get_args(Units))

    def __call__(self, observation: Any) -> Any:
        """What the function returns, in its own units."""
        return self.function(observation)


def policy(function: Callable[..., Any] | None = None, *, units: Units = "physical") -> Any:
    """Say of a function observation → action in which units its actions are.

        @spota.policy(units="physical")
        def controller(observation):
            return [-3.0 * observation[0]]  # volts

    Args:
        function: Observations in physical units, as an array [d, n] of n rollouts or [d] of one, to actions.
        units: physical, as the platform's actuators have them; or normalised, −1 and 1 for the ends of their range.
    """
    if function is None:
        return lambda wrapped: OwnPolicy(wrapped, units)
    return OwnPolicy(function, units)


@dataclass(frozen=True)
class InUnits:
    """A function that jax can trace, whose actions are in physical units."""

    function: Callable[..., Any]
    actuators: tuple[Signal, ...]

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The action in [−1, 1], not yet clipped."""
        return normalised(self.function(observation), self.actuators, jnp)


@dataclass(frozen=True, eq=False)
class HostPolicy:
    """A function on NumPy arrays that runs on the host, side by side or one observation after the other."""

    function: Callable[..., Any]
    env: Platform
    units: Units
    side_by_side: bool
    note: str = ""
    """What people must hear about it."""

    def __call__(self, observation: Any) -> Any:
        """The action in [−1, 1], not yet clipped: [d, *n] → [a, *n] in NumPy, from any array."""
        seen = np.asarray(observation, np.float32)
        flat = seen.reshape(seen.shape[0], -1)
        try:
            found = self.function(flat) if self.side_by_side else _one_by_one(self.function, flat)
            action = np.asarray(found, np.float32).reshape(len(self.env.actions), flat.shape[1])
        except Exception as error:
            raise ValueError(
                f"The policy for {self.env.name} broke: {type(error).__name__}: {error}{users_line(error)}."
            ) from error
        if self.units == "physical":
            action = normalised(action, self.env.actions, np)
        return action.reshape(-1, *seen.shape[1:])


def normalised(action: Any, actuators: tuple[Signal, ...], xp: Any) -> Any:
    """Physical commands as actions: −1 and 1 are the ends of the range."""
    column = (-1, *(1,) * (np.ndim(action) - 1))
    low, high = (xp.asarray([getattr(s, end) for s in actuators], xp.float32) for end in ("low", "high"))
    return (action - ((low + high) / 2).reshape(column)) * (2 / (high - low)).reshape(column)


def ready(env: Platform, given: Policy) -> Any:
    """The policy as rollouts take it: as it is if jax can trace it, else on the host; refused if neither works."""
    if isinstance(given, HostPolicy):
        return given
    if remembers(given):
        check_policy(env, given)
        return given
    function: Any = given.function if isinstance(given, OwnPolicy) else given
    units: Units = given.units if isinstance(given, OwnPolicy) else "normalised"
    found, why_not = _traced(env, function) if callable(function) else ((), "")
    if found is None:
        return _on_host(env, function, units, why_not)
    if found != (len(env.actions), SEVERAL):
        check_policy(env, cast(Policy, function))  # which says what is wrong
    return InUnits(function, env.actions) if units == "physical" else function


def _traced(env: Platform, function: Any) -> tuple[Any, str]:
    """The shape of the action if jax follows the observation through the function; else None, and why not.

    A network is followed once for all of its kind: that takes as long as hundreds of steps of some machines.
    """
    leaves, structure = jax.tree.flatten(function)
    if isinstance(function, eqx.Module) and all(isinstance(leaf, jax.Array) for leaf in leaves):
        return _traced_kind(env, structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves))
    return _followed(env, function)


@functools.lru_cache(maxsize=KINDS)
def _traced_kind(env: Platform, structure: Any, arrays: tuple[Any, ...]) -> tuple[Any, str]:
    """The same for a module whose numbers do not matter."""
    return _followed(env, jax.tree.unflatten(structure, [jnp.zeros(*array) for array in arrays]))


def _followed(env: Platform, function: Any) -> tuple[Any, str]:
    """Let jax follow; what comes out as a plain array was made without it: a constant, or a random number."""
    plain: list[bool] = []

    def watched(observation: Any) -> Any:
        action = function(observation)
        plain.append(isinstance(action, np.ndarray | float | list))
        return action

    try:
        action = jax.eval_shape(watched, jax.ShapeDtypeStruct((len(env.observations), SEVERAL), jnp.float32))
    except Exception as error:  # whatever a tracer provokes in code that is not written for it
        return None, str(error).split("\n")[0].rstrip(".")
    if plain[-1]:
        return None, "it does not depend on the observation"
    return getattr(action, "shape", ()), ""


def _on_host(env: Platform, function: Callable[..., Any], units: Units, why_not: str) -> HostPolicy:
    """A function that NumPy can run, many observations at once if they do not disturb each other."""
    low, high = (np.asarray([getattr(s, end) for s in env.observations])[:, None] for end in ("low", "high"))
    shares = np.random.default_rng(0).uniform(0.25, 0.75, (len(env.observations), SEVERAL))
    seen = (low + (high - low) * shares).astype(np.float32)
    alone, error = _tried(lambda: _one_by_one(function, seen), (len(env.actions), SEVERAL))
    together, error_together = _tried(lambda: function(seen.copy()), (len(env.actions), SEVERAL))
    if together is not None and (alone is None or np.allclose(alone, together, rtol=1e-4, atol=1e-5)):
        return _repeating(HostPolicy(function, env, units, True), seen)
    if alone is not None:
        return _repeating(HostPolicy(function, env, units, False), seen)
    said = error_together or error
    raise ValueError(
        f"The policy for {env.name} works neither in jax ({why_not}) nor in NumPy: {said}. It gets an array of "
        f"shape ({len(env.observations)}, n), or ({len(env.observations)},) of one rollout, and returns one row for "
        f"each actuator: {', '.join(s.name for s in env.actions)}."
    )


def _repeating(found: HostPolicy, seen: np.ndarray) -> HostPolicy:
    """Refuse a function that does not give the same answer to the same observations."""
    if not np.array_equal(found(seen), found(seen), equal_nan=True):
        raise ValueError(
            "The policy gives two different answers to the same observation: it is random, or remembers what it saw, "
            "and rollouts side by side would disturb each other. Let it depend on the observation alone."
        )
    return found


def _one_by_one(function: Callable[..., Any], seen: np.ndarray) -> np.ndarray:
    """One observation after the other; a single action may come without an axis."""
    return np.stack([np.atleast_1d(np.asarray(function(column.copy()), np.float32)) for column in seen.T], axis=1)


def _tried(run: Callable[[], Any], wanted: tuple[int, ...]) -> tuple[np.ndarray | None, str]:
    """What it returns if that has the wanted shape, or why not."""
    try:
        found = np.asarray(run(), np.float32)
    except Exception as error:
        said = " ".join(str(error).split())
        return None, f"{type(error).__name__}: {said}{users_line(error)}".rstrip(".")
    if found.shape != wanted:
        return None, f"it returned {described(found)} for {wanted[-1]} observations, where {wanted} is needed"
    return found, ""
