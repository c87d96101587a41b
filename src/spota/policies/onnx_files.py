"""Policies in ONNX files: ours, which are networks again; others', which jax runs, or onnxruntime on the host.

`notes` has what people must hear: what was assumed about a network, and whether its actions fit the actuators.
"""

from collections.abc import Mapping
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from spota.policies.onnx_host import on_host
from spota.policies.onnx_limits import read_model
from spota.policies.onnx_ours import contract_in, is_ours, our_policy, papers_of
from spota.policies.onnx_policy import Imported, imported
from spota.policies.onnx_reading import said_about, split_words
from spota.policies.onnx_values import UnknownError
from spota.sim.env import Platform, Policy
from spota.sim.host_policy import HostPolicy
from spota.sim.objects import is_reference
from spota.text import percent

LOOKED_AT = 1024
"""Observations of the first look."""
NOTABLE = 0.2
"""The share of actions outside of the range that is worth a warning."""
EXECUTED = {
    ".zip": "Stable-Baselines3 keeps its models as pickle",
    ".pt": "torch keeps its models as pickle",
    ".pth": "torch keeps its models as pickle",
    ".pkl": "pickle runs whatever is in it",
    ".pickle": "pickle runs whatever is in it",
    ".joblib": "joblib keeps objects as pickle",
}


def is_onnx(source: str | Path) -> bool:
    """Whether it names an ONNX file."""
    return split_words(str(source))[0].endswith(".onnx")


def found_onnx(source: str | Path, env: Platform) -> Policy:
    """The policy of an ONNX file for this platform."""
    path = Path(split_words(str(source))[0])
    model = read_model(path)
    if is_ours(model):
        policy = our_policy(model, path)
        policy.contract.check(env)
        return policy
    try:
        return imported(source, env)
    except UnknownError as unknown:
        return on_host(source, env, str(unknown))


def platform_of_onnx(path: Path, words: Mapping[str, str]) -> str | None:
    """The platform that is named beside a file, or behind its name."""
    model = read_model(path)
    if is_ours(model):
        return contract_in(papers_of(model), str(path)).env
    said = said_about(path, words).get("env")
    if "env" not in words and is_reference(said):
        raise ValueError(
            f"{path.with_suffix('.toml')} names code, {said}, and a file's word executes nothing; look at it, and "
            f"say it yourself if you trust it: --env {said}."
        )
    return None if said is None else str(said)


def refuse_code(path: Path) -> None:
    """Refuse files that run code when they are opened, and say what to write instead."""
    why = EXECUTED.get(path.suffix.lower())
    if why is not None:
        raise ValueError(
            f"{path} is never opened: {why}, which executes code when it is read. Export the network as ONNX where it "
            "was trained: torch.onnx.export(model, example, 'policy.onnx', dynamo=False); docs/own_policy.md shows how."
        )


def notes(policy: Policy, env: Platform) -> list[str]:
    """What was assumed about a network of others, and what a first look at its actions shows."""
    if isinstance(policy, HostPolicy):
        return [policy.note] if policy.note else []
    if not isinstance(policy, Imported):
        return []
    assumed = [policy.reading.assumed] if policy.reading.assumed else []
    return assumed + _first_look(policy, env)


def _first_look(policy: Imported, env: Platform) -> list[str]:
    """Actions at random observations within the sensors' ranges, beside what the actuators take."""
    if policy.reading.units == "choice":
        return []
    low, high = (np.asarray([getattr(s, end) for s in env.observations])[:, None] for end in ("low", "high"))
    shares = np.random.default_rng(0).uniform(size=(len(env.observations), LOOKED_AT))
    actions = np.asarray(policy(jnp.asarray(low + (high - low) * shares, jnp.float32)))
    said = []
    for signal, action in zip(env.actions, actions, strict=True):
        beyond = float(np.mean(np.abs(action) > 1 + 1e-4))
        middle, half = (signal.low + signal.high) / 2, (signal.high - signal.low) / 2
        seen = f"from {middle + half * action.min():.3g} to {middle + half * action.max():.3g} {signal.unit}"
        about = f"At random observations it asks for {signal.name} {seen}, and the actuator takes {signal.low:g} to "
        about += f"{signal.high:g} {signal.unit}"
        physical = policy.reading.units == "physical"
        other = "normalised" if physical else "physical"
        if beyond > NOTABLE:
            said.append(f"{about}: {percent(beyond)} are clipped. If its actions are {other}, say units={other}.")
        elif physical and half > 1.5 and np.abs(middle + half * action).max() <= 1 + 1e-4:
            said.append(f"{about}: it never leaves −1 to 1. If its actions are normalised, say units=normalised.")
        elif np.ptp(action) < 1e-3:
            said.append(f"{about}: it does the same everywhere.")
    return said
