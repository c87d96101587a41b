"""Policies by name or file."""

import difflib
from pathlib import Path

from spota.policies.contract import Contract
from spota.policies.controllers import CONTROLLERS, own_controller
from spota.policies.energy import energy
from spota.policies.fingerprint import fingerprint
from spota.policies.lqr import lqr
from spota.policies.network import FNN, Linear, fnn
from spota.policies.pd import pd
from spota.policies.start import Start, first_policy
from spota.policies.storage import load, save
from spota.types import Env, Policy

__all__ = [
    "CONTROLLERS",
    "FNN",
    "Contract",
    "Linear",
    "Start",
    "energy",
    "find",
    "fingerprint",
    "first_policy",
    "fnn",
    "load",
    "lqr",
    "own_controller",
    "pd",
    "save",
]


def find(source: str | Path, env: Env) -> Policy:
    """A controller's name, a policy file, or a run directory that holds one; its contract must fit `env`."""
    if str(source) in CONTROLLERS:
        return CONTROLLERS[str(source)](env)
    path = Path(source)
    path = path / "policy.npz" if path.is_dir() else path
    if not path.is_file():
        near = difflib.get_close_matches(str(source), CONTROLLERS, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"{source!s} is neither a controller nor a file; {hint}"
            f"write one of {', '.join(CONTROLLERS)}, or a policy file such as policy.npz."
        )
    policy = load(path)
    policy.contract.check(env)
    return policy
