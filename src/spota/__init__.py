"""Train control policies on randomized simulators, and know how much return they can lose on an unseen domain.

Names are imported when they are used, so that the command line can answer before jax is there.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spota.api import assess, train
    from spota.envs import make
    from spota.envs.gymnasium import gymnasium
    from spota.envs.gymnax import from_gymnax
    from spota.envs.mujoco import mujoco
    from spota.policies import FNN, Linear, Recurrent, Stacked, find, fnn, load, save
    from spota.polopt.optimizer import Optimizer
    from spota.sim.domain import DomainDistribution, Empirical, Parameter
    from spota.sim.effects import ActionDelay, DeadBand, Effects, ObservationNoise, ObservationOffset
    from spota.sim.env import Env, Policy, Signal, Trajectories
    from spota.sim.host import HostEnv, MachineError
    from spota.sim.host_policy import policy
    from spota.sim.marginals import Bernoulli, Constant, Integers, NumPyro, TruncatedNormal, Uniform
    from spota.sim.rollout import collect, returns
    from spota.sim.soundness import check

__all__ = [
    "FNN",
    "ActionDelay",
    "Bernoulli",
    "Constant",
    "DeadBand",
    "DomainDistribution",
    "Effects",
    "Empirical",
    "Env",
    "HostEnv",
    "Integers",
    "Linear",
    "MachineError",
    "NumPyro",
    "ObservationNoise",
    "ObservationOffset",
    "Optimizer",
    "Parameter",
    "Policy",
    "Recurrent",
    "Signal",
    "Stacked",
    "Trajectories",
    "TruncatedNormal",
    "Uniform",
    "assess",
    "check",
    "collect",
    "find",
    "fnn",
    "from_gymnax",
    "gymnasium",
    "load",
    "make",
    "mujoco",
    "policy",
    "returns",
    "save",
    "train",
]

_HOMES = {
    "api": ("assess", "train"),
    "sim.domain": ("DomainDistribution", "Empirical", "Parameter"),
    "envs": ("make",),
    "envs.gymnasium": ("gymnasium",),
    "envs.gymnax": ("from_gymnax",),
    "envs.mujoco": ("mujoco",),
    "sim.effects": ("ActionDelay", "DeadBand", "Effects", "ObservationNoise", "ObservationOffset"),
    "sim.host": ("HostEnv", "MachineError"),
    "sim.host_policy": ("policy",),
    "sim.marginals": ("Bernoulli", "Constant", "Integers", "NumPyro", "TruncatedNormal", "Uniform"),
    "policies": ("FNN", "Linear", "Recurrent", "Stacked", "find", "fnn", "load", "save"),
    "polopt.optimizer": ("Optimizer",),
    "sim.rollout": ("collect", "returns"),
    "sim.env": ("Env", "Policy", "Signal", "Trajectories"),
    "sim.soundness": ("check",),
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
