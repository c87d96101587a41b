"""Is an exported policy as it was written, and does it do what its papers say?

Integrity, not origin: someone who exports another policy with papers of their own is not found out, unless the file is
signed (`runs.signing`).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from spota.certify.certificate import Certificate, table_sha256
from spota.files.documents import parse_json
from spota.policies import Stored, fingerprint
from spota.policies.onnx_export import INPUT, OUTPUT, exported
from spota.policies.onnx_host import opened_in_onnxruntime
from spota.policies.onnx_limits import read_model, shown
from spota.policies.onnx_memory import MEMORY, MEMORY_NEXT, memory_size, step_from
from spota.policies.onnx_ours import PAPERS, is_ours, meaning_sha256, our_policy, papers_of, papers_sha256
from spota.runs.exporting import recorded_rollouts
from spota.runs.verification import Verification
from spota.sim.effects import scale_and_clip
from spota.sim.env import Platform, Signal
from spota.sim.identity import platform_sha256

OBSERVED = 1000
"""Random observations on which onnxruntime and we must agree."""
STEPS = 50
"""In which they are seen one after the other, if the policy remembers."""
PARITY = 1e-5
"""Of an actuator's range, and of that of a number that is remembered."""
RETURNS = 1e-3
"""Of the largest return: on another machine the last digits of a rollout may differ."""


def verify_file(path: Path, env: Platform | None = None) -> Verification:
    """Look at everything that an exported policy has; without its platform the rollouts are left out."""
    found = Verification()
    try:
        model = read_model(path)
        if not is_ours(model):
            raise ValueError(f"{path} was not exported by spota: it has no papers to compare it with.")
        policy = our_policy(model, path)
    except ValueError as error:
        found.wrong.append(str(error))
        return found
    papers = papers_of(model)
    found.note("the file, byte by byte as it is written", _form(path, policy, papers))
    found.note("the hashes of network and papers", _hashes(model, papers))
    _certificate(policy, papers, found)
    found.note("parity with onnxruntime", _parity(path, policy))
    _rollouts(policy, papers, env, found)
    return found


def platform_in(path: Path) -> str | None:
    """The platform that a file names; None if it is not readable."""
    try:
        return json.loads(papers_of(read_model(path))["spota.contract"])["env"]
    except (ValueError, KeyError, TypeError):
        return None


def _form(path: Path, policy: Stored, papers: dict[str, str]) -> list[str]:
    """Exported again it must be the same file: nothing hides in what a reader would ignore."""
    if tuple(papers) != PAPERS:
        return [f"{path} has other papers than it should: {', '.join(map(shown, papers))[:400]}."]
    again = exported(policy, papers).SerializeToString(deterministic=True)
    return [] if again == path.read_bytes() else [f"{path} has bytes that an export would not write: it was changed."]


def _hashes(model: Any, papers: dict[str, str]) -> list[str]:
    wrong = []
    if papers.get("spota.meaning_sha256") != meaning_sha256(model):
        wrong.append("The network is not the one that the papers name: its meaning has another hash.")
    if papers.get(PAPERS[-1]) != papers_sha256(papers):
        wrong.append("The papers were changed: together they have another hash.")
    return wrong


def _certificate(policy: Stored, papers: dict[str, str], found: Verification) -> None:
    """Contract, certificate and policy belong together."""
    try:
        values = parse_json(papers.get("spota.certificate", ""), "the certificate")
        if values is None:
            found.skipped.append("There is no certificate in it.")
            return
        certificate = Certificate.from_dict(values, "the certificate")
    except (ValueError, KeyError, TypeError) as error:
        found.wrong.append(f"The certificate cannot be read: {error}")
        return
    wrong = []
    if certificate.policy_sha256 != fingerprint(policy):
        wrong.append("The certificate belongs to another policy.")
    if certificate.env != policy.contract.env:
        wrong.append(f"The certificate is about {certificate.env}, and the policy is for {policy.contract.env}.")
    if papers.get("spota.domain_sha256") != table_sha256(certificate.domain):
        wrong.append("The table of distributions is not the one that the certificate names.")
    found.note("the certificate, which belongs to the policy", wrong)


def _parity(path: Path, policy: Stored) -> list[str]:
    """onnxruntime and we do the same at random observations, beyond the sensors' ranges, too."""
    size, low, high = memory_size(policy), *_ends(policy.contract.observations)
    shape = (STEPS, OBSERVED // STEPS, low.size) if size else (1, OBSERVED, low.size)
    seen = low + (high - low) * np.random.default_rng(0).uniform(-0.25, 1.25, shape)
    try:
        run = opened_in_onnxruntime(path, path.read_bytes()).run
        apart = _apart(run, policy, size, seen.astype(np.float32))
    except ValueError as error:
        return [str(error)]
    return [] if apart <= PARITY else [f"onnxruntime and spota differ by {apart:.1e} of an actuator's range."]


def _apart(run: Callable[..., Any], policy: Stored, size: int, seen: np.ndarray) -> float:
    """How far the two come apart in a step; each begins with what the file remembers, so that nothing adds up."""
    low, high = _ends(policy.contract.actions)
    memory, worst = np.zeros((seen.shape[1], size), np.float32), 0.0
    for now in seen:
        if size:
            theirs, after = run([OUTPUT, MEMORY_NEXT], {INPUT: now, MEMORY: memory})
        else:
            (theirs,), after = run([OUTPUT], {INPUT: now}), memory
        remembered, action = step_from(policy, memory, now)
        ours = np.asarray(scale_and_clip(action, tuple(low), tuple(high))).T
        apart = np.abs(ours - theirs) / (high - low), np.abs(remembered - after) / 2  # remembered: from −1 to 1
        worst = max(worst, *(float(part.max(initial=0.0)) for part in apart))
        memory = after
    return worst


def _ends(signals: tuple[Signal, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The lower and upper ends of their ranges."""
    return np.asarray([s.low for s in signals]), np.asarray([s.high for s in signals])


def _rollouts(policy: Stored, papers: dict[str, str], env: Platform | None, found: Verification) -> None:
    """What was recorded is repeated."""
    try:
        recorded = parse_json(papers.get("spota.rollouts", ""), "the recorded rollouts")
        if recorded is None:
            found.skipped.append("There are no recorded rollouts in it.")
            return
        if env is None:
            found.skipped.append(
                f"The recorded rollouts were not repeated: say where the platform {policy.contract.env} is, with --env."
            )
            return
        if platform_sha256(env) != recorded["env_sha256"]:
            found.skipped.append(
                f"The recorded rollouts were not repeated: {env.name} here has other code, or another table."
            )
            return
        domains = {name: jnp.asarray(column, jnp.float32) for name, column in recorded["domains"].items()}
        now = np.asarray(recorded_rollouts(policy, env, domains)["returns"])
        then = np.asarray(recorded["returns"], float)
        worst = float(np.abs(now - then).max()) if now.shape == then.shape else np.inf
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        found.wrong.append(f"The recorded rollouts cannot be repeated: {error}")
        return
    limit = RETURNS * (env.max_return - env.min_return)
    wrong = [] if worst <= limit else [f"The recorded rollouts earn something else now: up to {worst:.3g} of return."]
    found.note(f"{then.size} recorded rollouts, repeated", wrong)
