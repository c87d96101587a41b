"""What a page shows that is not in the run: rollouts on new domains. Computed once a policy, kept in the run directory.

`evaluation.json` holds the fingerprint of its policy; for another policy, or if more is wanted, it is computed again.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota import attribution, evaluate, policies, rollout
from spota.animation import ANIMATED, Recording, record
from spota.domain import Domains
from spota.envs import PLATFORMS, make
from spota.files import plain, write_json
from spota.plots import varied
from spota.policies import fingerprint
from spota.report.story import Story
from spota.types import Env, Policy, Signal

FORMAT = 1
FILE = "evaluation.json"
DRAWN, TIMES = 500, 4
"""Random domains that the typical and the worst one are chosen from, and rollouts on each."""
POINTS, ROLLOUTS = 11, 30
"""Of a sweep over one parameter."""
EXPLAINED = 400
"""Domains behind each figure of the attribution."""

Tell = Callable[[str, float], None]
"""Hears what is computed, and which share of it is done."""


class NoPolicyError(ValueError):
    """There is no policy to run, and why."""


@dataclass(frozen=True)
class Evaluation:
    """Rollouts of a run's policy on domains that no training has seen."""

    policy: str
    """Its fingerprint, or its name if it has none."""
    full: bool
    """Whether sweeps and attribution are in."""
    returns: tuple[float, ...]
    """Mean return on each of the random domains."""
    survival: float
    recordings: tuple[Recording, ...]
    """Nominal, typical and worst domain; none for a platform without a picture."""
    sweeps: tuple[Mapping[str, Any], ...]
    """One a parameter, as `Sweep.to_dict` gives it."""
    explanation: Mapping[str, Any] | None
    """As `Explanation.to_dict` gives it."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Evaluation":
        """Read what `to_dict` wrote."""
        values = {f.name: told[f.name] for f in dataclasses.fields(cls)}
        tuples = {name: tuple(told[name]) for name in ("returns", "sweeps")}
        return cls(**{**values, **tuples, "recordings": tuple(map(_recording, told["recordings"]))})


def evaluate_run(story: Story, env: Env | None = None, full: bool = True, tell: Tell | None = None) -> Evaluation:
    """The figures of the run's policy: from evaluation.json if they are there, else computed and written to it.

    `env` is the platform of a run that was given its own as a Python object.
    """
    platform, policy = find_policy(story, env)
    name = str(fingerprint(policy) or story.config.get("policy"))
    path = story.directory / FILE
    stored = _stored(path, name)
    if stored is not None and stored.full >= full:
        return stored
    found = compute(platform, policy, name, full, attribution_others(story.directory, policy) if full else {}, tell)
    with contextlib.suppress(OSError):  # of a run that is read-only: the next page takes as long again
        write_json(path, found.to_dict())
    return found


def find_policy(story: Story, env: Env | None = None) -> tuple[Env, Policy]:
    """The platform and the policy that the run keeps or assesses; it must be the one that its certificate speaks of."""
    if env is None and ("platform" in story.config or story.env not in PLATFORMS):
        raise NoPolicyError(
            "The platform was given as a Python object; spota.report.write(directory, env) adds its rollouts."
        )
    env = env or make(story.env)
    source = story.directory / "policy.npz"
    if not source.is_file():
        source = story.config.get("policy")
    if source is None:
        raise NoPolicyError("The run has not kept a policy yet.")
    try:
        policy = policies.find(source, env)
    except (ValueError, OSError) as error:
        raise NoPolicyError(f"The policy cannot be run: {error}") from error
    stated = story.certificate.policy_sha256 if story.certificate else None
    if stated is not None and stated != fingerprint(policy):
        raise NoPolicyError(f"{source} is another policy than the one that the certificate speaks of.")
    return env, policy


def attribution_others(directory: Path, policy: Policy) -> dict[str, Policy]:
    """Policies that one could take instead: the references, if they can be read."""
    try:
        return attribution.alternatives(directory, policy)
    except ValueError:
        return {}


def compute(
    env: Env, policy: Policy, name: str, full: bool, others: Mapping[str, Policy], tell: Tell | None = None
) -> Evaluation:
    """Run the policy; the same for every call, because the keys depend on nothing."""
    say = tell or (lambda _what, _share: None)
    k_domains, k_rollouts, k_start, k_sweeps, k_explain = jax.random.split(evaluate.evaluation_key(0), 5)
    say("random domains", 0.0)
    drawn = env.domain.sample(k_domains, DRAWN)
    outcome = rollout.returns(env, policy, drawn, jax.random.split(k_rollouts, (DRAWN, TIMES)))
    means = np.asarray(outcome.returns, np.float64).mean(axis=1)
    sweeps = tuple(_sweeps(k_sweeps, env, policy, say)) if full else ()
    told = attribution.explain(k_explain, env, "the policy", policy, others, n=EXPLAINED, tell=say) if full else None
    order = np.argsort(means, kind="stable")
    worst = _row(drawn, int(order[0])) if told is None else {k: jnp.full(1, v) for k, v in told.worst[0].domain.items()}
    shown = {
        "nominal domain": env.domain.nominal(),
        "typical domain": _row(drawn, int(order[DRAWN // 2])),
        "worst domain found": worst,
    }
    return Evaluation(
        policy=name,
        full=full,
        returns=tuple(means.tolist()),
        survival=float(outcome.survived.mean()),
        recordings=_recordings(env, policy, shown, k_start, say),
        sweeps=sweeps,
        explanation=None if told is None else plain(told.to_dict()),
    )


def _recordings(
    env: Env, policy: Policy, shown: Mapping[str, Domains], key: Key[Array, ""], say: Tell
) -> tuple[Recording, ...]:
    if env.name not in ANIMATED:
        return ()
    say("animated rollouts", 0.0)
    return tuple(record(env, policy, domain, key, caption=caption) for caption, domain in shown.items())


def _sweeps(key: Key[Array, ""], env: Env, policy: Policy, say: Tell):
    names = varied(env.domain)
    for i, name in enumerate(names):
        say("sweeps", i / len(names))
        values = evaluate.span(env, name, POINTS)
        yield plain(evaluate.sweep(key, env, {"policy": policy}, name, values, rollouts=ROLLOUTS).to_dict())


def _row(domains: Domains, i: int) -> Domains:
    return {name: column[i : i + 1] for name, column in domains.items()}


def _stored(path: Path, name: str) -> Evaluation | None:
    """What the file says, if it speaks of this policy in this format."""
    try:
        told = json.loads(path.read_text("utf-8"))
        if told["format"] == FORMAT and told["policy"] == name:
            return Evaluation.from_dict(told)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _recording(told: Mapping[str, Any]) -> Recording:
    arrays = {name: np.asarray(told[name], np.float64) for name in ("time", "commands", "rewards", "returns")}
    tracks = {name: np.asarray(values, np.float64) for name, values in told["tracks"].items()}
    signals = tuple(Signal(**signal) for signal in told["signals"])
    return Recording(**{**told, **arrays, "tracks": tracks, "signals": signals})
