"""What a machine of a cluster must have in common with the one that asks, and what it has of its own."""

import hashlib
import platform
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import spota

PACKAGES = ("ray", "jax", "jaxlib", "numpy", "equinox", "optax", "spota")
"""What travels, or decides the numbers."""
CODE = "spota's code"


@dataclass(frozen=True)
class Machine:
    """A machine with the versions that it has."""

    host: str
    cpu: str
    versions: Mapping[str, str] = field(repr=False)


@cache
def this_machine() -> Machine:
    """The one that this process runs on."""
    return Machine(socket.gethostname(), _cpu(), versions())


def versions() -> dict[str, str]:
    """Of Python, of the packages, and a digest of our own code, which may be ahead of its version."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    return {**found, **{name: _version(name) for name in PACKAGES}, CODE: _code()}


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """What another machine has otherwise, in words."""
    names = [name for name in here if here[name] != there.get(name)]
    return [f"{name} is {there.get(name, 'absent')} there and {here[name]} here" for name in names]


def refusal(host: str, different: list[str]) -> str:
    """Why a machine cannot work for this one."""
    return (
        f"{host} cannot work for this machine: {'; '.join(different)}. Install the same versions on all machines, "
        "e.g. with the same container."
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _code() -> str:
    digest, home = hashlib.sha256(), Path(spota.__file__).parent
    for path in sorted(home.rglob("*.py")):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _cpu() -> str:
    """Its model, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    return names[0] if names else platform.processor() or platform.machine()
