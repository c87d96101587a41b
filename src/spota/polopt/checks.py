"""What is checked of every solver: its settings, and the kind of what it returns."""

from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from spota.sim.checks import described
from spota.sim.env import Platform


def at_least_one(settings: Any, *names: str) -> None:
    """Refuse counts below one."""
    for name in names:
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} = {getattr(settings, name)}: must be at least 1; {_usual(settings, name)}.")


def positive(settings: Any, *names: str) -> None:
    """Refuse what is not a positive number."""
    for name in names:
        if not getattr(settings, name) > 0:
            raise ValueError(f"{name} = {getattr(settings, name)}: must be positive; {_usual(settings, name)}.")


def _usual(settings: Any, name: str) -> str:
    """What to write instead."""
    default = next(field.default for field in fields(settings) if field.name == name)
    return "leave it out to have none" if default is None else f"write e.g. {name}={default:g}"


def divides(name: str, value: int, env: Platform) -> None:
    """Refuse a number that does not divide the steps of an episode, and name the next one that does."""
    if env.max_steps % value:
        fits = max(d for d in range(1, value) if env.max_steps % d == 0)
        raise ValueError(f"{name} = {value} does not divide the {env.max_steps} steps of {env.name}; write {fits}.")


def refuse_another_kind(who: str, found: Any, given: Any, what: str) -> None:
    """Refuse a policy or a state that is of another kind, or has other shapes, than the one that was given."""
    if jax.tree.structure(found) != jax.tree.structure(given):
        raise ValueError(
            f"{who} returned {described(found)}, but the {what} that it was given is {described(given)}; return one of "
            "the same kind: the given one with other numbers."
        )
    for (path, old), new in zip(jax.tree.leaves_with_path(given), jax.tree.leaves(found), strict=True):
        if np.shape(new) != np.shape(old):
            raise ValueError(
                f"{who} returned a {what} whose {_named(path)} has shape {np.shape(new)}, but the given one has "
                f"{np.shape(old)}; keep the shapes."
            )


def refuse_nan(who: str, policy: Any) -> None:
    """Refuse a policy with parameters that are not finite, and name the first."""
    for path, leaf in jax.tree.leaves_with_path(policy):
        if not np.isfinite(np.asarray(leaf, np.float64)).all():
            raise ValueError(
                f"{who} returned a policy whose {_named(path)} is not finite; look for a division by zero or for steps "
                "that are too large."
            )


def all_finite(policy: Any) -> Bool[Array, ""]:
    """Whether all parameters are."""
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(policy)]).all()


def _named(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".") or "value"
