"""What can be deployed, without jax in its loop: a run, a policy file, an ONNX file or a controller."""

import json
from dataclasses import dataclass
from pathlib import Path

from spota import policies
from spota.certify.certificate import Certificate
from spota.deploy.inference import Controller, controller_of
from spota.deploy.onnx import OnnxController
from spota.envs import make
from spota.files.documents import parse_json
from spota.policies.contract import Contract
from spota.policies.fingerprint import fingerprint
from spota.runs.config import read_toml
from spota.runs.directory import CONFIG
from spota.runs.platforms import platform_of
from spota.sim import table_file
from spota.sim.env import Platform


@dataclass(frozen=True)
class Deployable:
    """A policy that is ready for a machine, and what is known about it."""

    name: str
    source: str
    """As it was named."""
    env: Platform
    """With the table of the run, if it is one."""
    contract: Contract
    controller: Controller
    sha256: str | None = None
    """Which policy it is; None for a controller."""
    certificate: Certificate | None = None
    """What was certified of this very policy."""


def deployable(source: str, env: str | None) -> Deployable:
    """Find it; a controller or code of one's own needs the platform's name."""
    path = Path(source)
    if path.suffix == ".onnx":
        return _exported(path, env)
    file = path / "policy.npz" if path.is_dir() else path
    if file.is_file():
        stored = policies.load(file)
        platform = _platform(file.parent, stored.contract, env)
        stored.contract.check(platform)
        name = file.parent.name if file.name == "policy.npz" else file.stem
        controller, sha256 = controller_of(stored, stored.contract), fingerprint(stored)
        certificate = _certificate(file.parent, sha256)
        return Deployable(name, source, platform, stored.contract, controller, sha256, certificate)
    if env is None:
        raise ValueError(
            f"{source} is no run, policy file or ONNX file, and a controller needs --env, e.g. --env cart-pole."
        )
    platform = make(env)
    contract = Contract.of(platform)
    return Deployable(source, source, platform, contract, controller_of(policies.find(source, platform), contract))


def _exported(path: Path, env: str | None) -> Deployable:
    """A file that spota exported, whose certificate counts if its network is the certified one."""
    controller = OnnxController(path)
    platform = make(env or controller.contract.env)
    controller.contract.check(platform)
    values = parse_json(controller.papers.get("spota.certificate", "null"), f"The certificate of {path}")
    certificate = None if values is None else Certificate.from_dict(values, f"The certificate of {path}")
    sha256 = fingerprint(policies.find(path, platform))
    if certificate and certificate.policy_sha256 != sha256:
        certificate = None
    return Deployable(path.stem, str(path), platform, controller.contract, controller, sha256, certificate)


def _platform(directory: Path, contract: Contract, env: str | None) -> Platform:
    """The named platform, or the one of the run or the policy; its table is the run's, if it keeps one."""
    if env is None and (directory / CONFIG).is_file():
        return platform_of(directory, read_toml(directory / CONFIG))
    kept = directory / table_file.KEPT
    return make(env or contract.env, domain=kept if kept.is_file() else None)


def _certificate(directory: Path, sha256: str | None) -> Certificate | None:
    """The run's certificate, if it is about this policy."""
    file = directory / "certificate.json"
    if not file.is_file():
        return None
    certificate = Certificate.from_json(file.read_text("utf-8"))
    return certificate if certificate.policy_sha256 in (None, sha256) else None


def measured(known: tuple[str, ...], env: Platform) -> dict[str, float]:
    """NAME=VALUE pairs from a command line; a fit, or a table, stands for its nominal machine."""
    found: dict[str, float] = {}
    for pair in known:
        name, equals, value = pair.partition("=")
        if not equals and Path(pair).exists():
            table = table_file.read(pair, env)
            found |= {name: row.nominal_value for name, row in table.items() if name in env.domain}
            continue
        try:
            found[name] = float(json.loads(value))
        except (ValueError, TypeError) as error:
            raise ValueError(f"--known {pair}: write NAME=VALUE, e.g. --known plate_length=0.275, or a fit.") from error
    return found
