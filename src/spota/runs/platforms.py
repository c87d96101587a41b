"""The platform of a run, found again by what its config.toml says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spota.envs import make
from spota.sim.env import Platform
from spota.sim.identity import platform_sha256
from spota.sim.objects import is_reference, refuse_inside


def platform_of(directory: Path, settings: Mapping[str, Any]) -> Platform:
    """The platform; one of someone's own must be the one that the run was made with."""
    refuse_code_inside(directory, settings)
    name = str(settings.get("env"))
    env = make(name)
    if is_reference(name) and settings.get("env_sha256") != platform_sha256(env):
        raise ValueError(
            f"{name} has other fields or other code than when {directory} was made with it. Undo that, or name the "
            f"platform yourself where a command takes one: --env {name}."
        )
    return env


def refuse_code_inside(directory: Path, settings: Mapping[str, Any]) -> None:
    """Refuse settings of a run that name code inside the run, before anything is executed."""
    against = settings.get("against")
    named = [settings.get(name) for name in ("env", "solver", "policy")]
    refuse_inside(directory, *named, *(against if isinstance(against, list) else ()))
