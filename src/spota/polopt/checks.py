"""What every optimizer checks in its settings."""

from typing import Any

from spota.sim.env import Env


def at_least_one(settings: Any, *names: str) -> None:
    """Refuse counts below one."""
    for name in names:
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} = {getattr(settings, name)}: must be at least 1.")


def positive(settings: Any, *names: str) -> None:
    """Refuse what is not a positive number."""
    for name in names:
        if not getattr(settings, name) > 0:
            raise ValueError(f"{name} = {getattr(settings, name)}: must be positive.")


def divides(name: str, value: int, env: Env) -> None:
    """Refuse a number that does not divide the steps of an episode, and name the next one that does."""
    if env.max_steps % value:
        fits = max(d for d in range(1, value) if env.max_steps % d == 0)
        raise ValueError(f"{name} = {value} does not divide the {env.max_steps} steps of {env.name}; write {fits}.")
