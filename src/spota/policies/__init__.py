"""Policies by name or file."""

from pathlib import Path

from spota.policies.architecture import Architecture, Network, architecture_of, new_network
from spota.policies.assembly import Stored
from spota.policies.contract import Contract
from spota.policies.controllers import CONTROLLERS, own_controller
from spota.policies.energy import energy
from spota.policies.fingerprint import fingerprint
from spota.policies.lqr import lqr
from spota.policies.network import FNN, SMALL, USUAL_GAINS, Gains, Linear, fnn
from spota.policies.onnx_files import found_onnx, is_onnx, refuse_code
from spota.policies.pd import pd
from spota.policies.recurrent import Recurrent
from spota.policies.stacked import Stacked
from spota.policies.start import Start, first_policy
from spota.policies.storage import load, save
from spota.sim.acting import remembers
from spota.sim.env import Platform, Policy
from spota.sim.host_policy import ready
from spota.sim.objects import is_reference, named
from spota.text import suggest

__all__ = [
    "CONTROLLERS",
    "FNN",
    "SMALL",
    "USUAL_GAINS",
    "Architecture",
    "Contract",
    "Gains",
    "Linear",
    "Network",
    "Recurrent",
    "Stacked",
    "Start",
    "Stored",
    "architecture_of",
    "energy",
    "find",
    "fingerprint",
    "first_policy",
    "fnn",
    "load",
    "lqr",
    "new_network",
    "own_controller",
    "pd",
    "save",
]


def find(source: str | Path, env: Platform) -> Policy:
    """A controller's name, a policy file, or a run directory that holds one; its contract must fit `env`.

    An ONNX file is a network of others: `policy.onnx,units=physical` says how it is used, or a TOML file beside it. Or
    one of your own, `find("my_robot.py:controller", env)`, which executes that file.
    """
    if str(source) in CONTROLLERS:
        return CONTROLLERS[str(source)](env)
    if is_reference(source):
        return _own(str(source), env)
    if is_onnx(source):
        return found_onnx(source, env)
    path = Path(source)
    refuse_code(path)
    path = path / "policy.npz" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(
            f"{source!s} is neither a policy file, a run directory, FILE.py:NAME nor a controller; "
            f"of controllers, {suggest(str(source), CONTROLLERS)}"
        )
    policy = load(path)
    policy.contract.check(env)
    return policy


def _own(reference: str, env: Platform) -> Policy:
    """A policy in someone's file, if it fits the platform."""
    policy = named(reference, _acts, "a policy: a function observation → action, or an object with start and step")
    if isinstance(policy, Stored):
        policy.contract.check(env)
    return ready(env, policy)


def _acts(found: object) -> bool:
    return callable(found) or remembers(found)
