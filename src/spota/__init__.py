"""Train control policies on randomized simulators, and know how much return they can lose on an unseen domain.

Names are imported when they are used, so that the command line can answer before jax is there.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spota.api import assess, train
    from spota.domain import DomainDistribution, Empirical, Parameter
    from spota.envs import make
    from spota.marginals import Bernoulli, Constant, Integers, NumPyro, TruncatedNormal, Uniform
    from spota.policies import FNN, Linear, find, fnn, load, save
    from spota.rollout import collect, returns
    from spota.types import Env, Policy, Signal, Trajectories

__all__ = [
    "FNN",
    "Bernoulli",
    "Constant",
    "DomainDistribution",
    "Empirical",
    "Env",
    "Integers",
    "Linear",
    "NumPyro",
    "Parameter",
    "Policy",
    "Signal",
    "Trajectories",
    "TruncatedNormal",
    "Uniform",
    "assess",
    "collect",
    "find",
    "fnn",
    "load",
    "make",
    "returns",
    "save",
    "train",
]

_HOMES = {
    "api": ("assess", "train"),
    "domain": ("DomainDistribution", "Empirical", "Parameter"),
    "envs": ("make",),
    "marginals": ("Bernoulli", "Constant", "Integers", "NumPyro", "TruncatedNormal", "Uniform"),
    "policies": ("FNN", "Linear", "find", "fnn", "load", "save"),
    "rollout": ("collect", "returns"),
    "types": ("Env", "Policy", "Signal", "Trajectories"),
}


def __getattr__(name: str) -> Any:
    """Import the module that a name is from, or that it names."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"spota.{home}"), name)
            return value
    if not name.startswith("_") and importlib.util.find_spec(f"spota.{name}"):
        return importlib.import_module(f"spota.{name}")
    raise AttributeError(f"module 'spota' has no attribute {name!r}")


def __dir__() -> list[str]:
    """For completion."""
    return sorted({*globals(), *__all__})
