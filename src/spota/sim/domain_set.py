"""A domain set: random domains in a file, so that two people compare policies on the very same ones.

chosen = draw(jax.random.key(0), make("cart-pole"), 500, seed=0)
chosen.save("set.json")
load("set.json", make("cart-pole")).domains   # the same 500 domains, to the last bit
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota.files.atomic import write_json
from spota.files.documents import check, check_format, read_json
from spota.sim.domain import DomainDistribution, Domains, count
from spota.sim.env import Platform

FORMAT = 1
"""`spota/files/schemas/domain-set.schema.json` says what is in it."""
KIND = "domain set"


@dataclass(frozen=True)
class DomainSet:
    """Domains of one platform, and where they come from."""

    env: str
    seed: int
    distribution: DomainDistribution
    domains: Domains

    def to_dict(self) -> dict[str, Any]:
        """As plain values; numbers keep every bit."""
        columns = {name: np.asarray(column, np.float64).tolist() for name, column in self.domains.items()}
        head = {"format": FORMAT, "env": self.env, "seed": self.seed, "n": count(self.domains)}
        return {**head, "distribution": self.distribution.to_dict(), "domains": columns}

    def save(self, path: str | Path) -> Path:
        """Write it as JSON."""
        return write_json(Path(path), self.to_dict())


def draw(key: Key[Array, ""], env: Platform, n: int, seed: int) -> DomainSet:
    """n domains from the platform's distribution; `seed` is written down so that others know where they come from."""
    return DomainSet(env.name, seed, env.domain, env.domain.sample(key, n))


def load(path: str | Path, env: Platform) -> DomainSet:
    """Read a set; one that is damaged, of another platform or without some parameter is refused."""
    path = Path(path)
    document = _read(path)
    if document["env"] != env.name:
        raise ValueError(
            f"{path} has domains of {document['env']!r}, not of {env.name!r}; "
            f"draw others with: spota domains {env.name} -o {path.stem}-{env.name}.json"
        )
    domains = {name: _column(path, name, values) for name, values in document["domains"].items()}
    if missing := [name for name in env.domain if name not in domains]:
        raise ValueError(f"{path} has no values for {', '.join(missing)}, which {env.name} needs; draw a new set.")
    try:
        env.domain.check(domains)
        distribution = DomainDistribution.from_dict(document["distribution"])
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} does not fit {env.name}: {error.args[0]}") from error
    return DomainSet(env.name, int(document["seed"]), distribution, domains)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path)
    except OSError as error:
        raise ValueError(
            f"The domain set {path} cannot be read: {error.strerror}. Draw one with: spota domains ENV -o {path}"
        ) from error
    check_format(document, (FORMAT,), KIND, str(path))
    check(document, KIND, str(path))
    return document


def _column(path: Path, name: str, values: list[float]) -> Any:
    column = np.asarray(values, np.float64)
    if np.abs(column).max() > np.finfo(np.float32).max:
        raise ValueError(f"{path}: {name} = {column[np.abs(column).argmax()]:g} is too large.")
    return jnp.asarray(column.astype(np.float32))
