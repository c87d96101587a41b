"""The platform of a run, found again by what its config.toml says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from spota.certify.certificate import table_sha256
from spota.envs import make
from spota.files.documents import read_json
from spota.sim import table_file
from spota.sim.env import Platform
from spota.sim.identity import platform_sha256
from spota.sim.objects import is_reference, refuse_inside


@runtime_checkable
class Settings(Protocol):
    """What a plan and a training both say about their platform."""

    @property
    def env(self) -> str:
        """The platform: a name or `file.py:name`."""
        ...

    @property
    def domain(self) -> str | None:
        """The table's file or directory; None for the platform's own table."""
        ...

    @property
    def domain_sha256(self) -> str | None:
        """The digest of that table."""
        ...


def planned(settings: Settings, directory: Path | None = None) -> Platform:
    """The platform of a plan or a training, with the table as the run keeps it or, before there is one, its file's."""
    return make(settings.env, domain=_table(directory, settings.domain, settings.domain_sha256))


def table_digest(settings: Settings, env: Platform) -> str | None:
    """What config.toml says about the table that was named; nothing about a platform's own."""
    return None if settings.domain is None else table_sha256(env.domain.to_dict())


def keep_table(directory: Path, settings: Settings, env: Platform) -> None:
    """Leave the table in the run, so that the run needs its file no more."""
    if settings.domain is not None and not (directory / table_file.KEPT).is_file():
        table_file.save(env, directory / table_file.KEPT, f"the table of {settings.domain}")


def _table(directory: Path | None, domain: str | None, sha256: str | None) -> str | Path | None:
    """The table's copy in the run, if it is the same one; else its file."""
    kept = directory / table_file.KEPT if directory is not None else None
    if domain is None or kept is None or not kept.is_file():
        return domain
    document = read_json(kept)
    rows = document.get("domain") if isinstance(document, dict) else None
    return kept if isinstance(rows, dict) and table_sha256(rows) == sha256 else domain


def platform_of(directory: Path, settings: Mapping[str, Any]) -> Platform:
    """The platform; one of someone's own must be the one that the run was made with."""
    refuse_code_inside(directory, settings)
    name = str(settings.get("env"))
    env = make(name, domain=_table(directory, settings.get("domain"), settings.get("domain_sha256")))
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
