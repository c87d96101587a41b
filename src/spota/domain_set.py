"""A domain set: random domains in a file, so that two people compare policies on the very same ones.

chosen = draw(jax.random.key(0), make("cart-pole"), 500, seed=0)
chosen.save("set.json")
load("set.json", make("cart-pole")).domains   # the same 500 domains, to the last bit
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota.domain import DomainDistribution, Domains, count
from spota.files import write_json
from spota.types import Env

FORMAT = 1
FIELDS = ("format", "env", "seed", "distribution", "domains")


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


def draw(key: Key[Array, ""], env: Env, n: int, seed: int) -> DomainSet:
    """n domains from the platform's distribution; `seed` is written down so that others know where they come from."""
    return DomainSet(env.name, seed, env.domain, env.domain.sample(key, n))


def load(path: str | Path, env: Env) -> DomainSet:
    """Read a set; one that is damaged, of another platform or without some parameter is refused."""
    path = Path(path)
    told = _read(path)
    if told["env"] != env.name:
        raise ValueError(
            f"{path} has domains of {told['env']!r}, not of {env.name!r}; "
            f"draw others with: spota domains {env.name} -o {path.stem}-{env.name}.json"
        )
    domains = {name: _column(path, name, values) for name, values in told["domains"].items()}
    if missing := [name for name in env.domain if name not in domains]:
        raise ValueError(f"{path} has no values for {', '.join(missing)}, which {env.name} needs; draw a new set.")
    try:
        env.domain.check(domains)
        distribution = DomainDistribution.from_dict(told["distribution"])
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} does not fit {env.name}: {error.args[0]}") from error
    return DomainSet(env.name, int(told["seed"]), distribution, domains)


def _read(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(
            f"The domain set {path} cannot be read: {error.strerror}. Draw one with: spota domains ENV -o {path}"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); draw a set with: spota domains ENV -o {path}") from error
    if not isinstance(told, Mapping) or any(field not in told for field in FIELDS):
        raise ValueError(f"{path} is no domain set; draw one with: spota domains ENV -o {path.stem}.json")
    if told["format"] != FORMAT:
        raise ValueError(f"{path} has format {told['format']}; this spota reads format {FORMAT}.")
    if not isinstance(told["domains"], Mapping) or not isinstance(told["distribution"], Mapping):
        raise ValueError(f"{path} is no domain set: domains and distribution must be tables by parameter.")
    return dict(told)


def _column(path: Path, name: str, values: Any) -> Any:
    if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
        raise ValueError(f"{path}: {name} must be a list of numbers.")
    column = np.asarray(values, np.float32)
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise ValueError(f"{path}: {name} = {values[row]} in domain {row} is not finite.")
    return jnp.asarray(column)
