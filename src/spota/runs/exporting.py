"""A policy leaves the house with its papers: contract, certificate, recorded rollouts and hashes, in one ONNX file."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from spota.certify.certificate import Certificate
from spota.files.atomic import plain, write_atomically
from spota.files.documents import read_json
from spota.policies import Stored, fingerprint
from spota.policies.onnx_export import exported
from spota.policies.onnx_limits import LIMIT
from spota.policies.onnx_memory import memory_size
from spota.policies.onnx_ours import FORMAT, PAPERS, WITH_MEMORY, contract_paper, meaning_sha256, papers_sha256
from spota.sim import rollout
from spota.sim.env import Platform, Policy
from spota.sim.identity import platform_sha256

RECORDED = 5
"""Rollouts that a file remembers, on random domains."""
RECORD_SEED = 20


def export(policy: Policy, path: Path, env: Platform | None, certificate: Certificate | None = None) -> Path:
    """Write the policy as ONNX; with its platform some rollouts are recorded, too."""
    if path.suffix != ".onnx":
        raise ValueError(f"{path}: an exported policy is an ONNX file; write e.g. policy.onnx.")
    data = in_bytes(policy, env, certificate)
    if len(data) > LIMIT:
        raise ValueError(f"{path} would have {len(data)} bytes, and at most {LIMIT} are read again.")
    return write_atomically(path, lambda file: file.write(data))


def in_bytes(policy: Policy, env: Platform | None, certificate: Certificate | None = None) -> bytes:
    """The ONNX file of a policy."""
    if not isinstance(policy, Stored):
        raise ValueError(
            f"A policy of the kind {type(policy).__name__} cannot be exported; networks of spota and linear "
            "controllers (lqr) can. What came as an ONNX file is one already."
        )
    mine = fingerprint(policy)
    if certificate is not None and certificate.policy_sha256 != mine:
        raise ValueError("The certificate belongs to another policy, and so it is not exported with this one.")
    papers = {
        "spota.format": str(WITH_MEMORY if memory_size(policy) else FORMAT),
        "spota.version": version("spota"),
        "spota.kind": type(policy).__name__,
        "spota.contract": contract_paper(policy),
        "spota.certificate": _text(None if certificate is None else certificate.to_dict()),
        "spota.rollouts": _text(None if env is None else recorded_rollouts(policy, env)),
        "spota.policy_sha256": str(mine),
        "spota.domain_sha256": str(certificate.domain_sha256) if certificate is not None else "",
        "spota.meaning_sha256": meaning_sha256(exported(policy, {})),
    }
    papers[PAPERS[-1]] = papers_sha256(papers)
    return exported(policy, papers).SerializeToString(deterministic=True)


def recorded_rollouts(policy: Policy, env: Platform, domains: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the policy earns on some domains, so that someone else can see whether it does the same there."""
    k_domains, k_rollouts = jax.random.split(jax.random.key(RECORD_SEED))
    drawn = env.domain.sample(k_domains, RECORDED) if domains is None else domains
    columns = {name: np.asarray(column, np.float32) for name, column in drawn.items()}
    keys = jax.random.split(k_rollouts, (RECORDED, 1))
    earned = rollout.returns(env, policy, {name: jax.numpy.asarray(c) for name, c in columns.items()}, keys)
    found = np.asarray(earned.returns[:, 0], float).tolist()
    platform = {"env_sha256": platform_sha256(env), "max_return": env.max_return}
    return {**platform, "domains": {n: c.tolist() for n, c in columns.items()}, "returns": found}


def certificate_of(source: str | Path, policy: Policy) -> Certificate | None:
    """The certificate in a run directory, if it is that of the policy."""
    file = Path(source) / "certificate.json"
    if not file.is_file():
        return None
    certificate = Certificate.from_dict(read_json(file), str(file))
    return certificate if certificate.policy_sha256 == fingerprint(policy) else None


def _text(document: Any) -> str:
    return json.dumps(plain(document), ensure_ascii=False, allow_nan=False)
