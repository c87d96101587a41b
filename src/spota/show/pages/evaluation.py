"""What a page shows that is not in the run: rollouts on new domains. Computed once a policy, kept in the run directory.

`evaluation.json` holds the fingerprint of its policy; for another policy, or if more is wanted, it is computed again.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota import policies
from spota.analysis import attribution, evaluate
from spota.files.atomic import plain, write_json
from spota.policies import fingerprint
from spota.show.animation import ANIMATED, Recording, record
from spota.show.animation.film import Film
from spota.show.pages.failures import Failed, Failures, Values, examples, traits
from spota.show.pages.story import Story
from spota.show.plots import varied
from spota.sim import randomness, rollout
from spota.sim.domain import Domains
from spota.sim.env import Platform, Policy, Signal
from spota.sim.host import HostEnv
from spota.stats.split import FAILURE, crash_level

FORMAT = 3
FILE = "evaluation.json"
DRAWN = 20_000
"""Random domains, with one rollout each: failures on one in a thousand are among them."""
SEVERITY = ("a mild failure", "a median failure", "a severe failure")
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
    level: float | None
    """The level of return that the run's certificate splits the loss at, if it does."""
    returns: tuple[float, ...]
    """On each of the random domains."""
    failures: Failures
    """Those domains on which it fails."""
    recordings: tuple[Recording, ...]
    """Nominal, typical and worst domain; none for a platform without a picture."""
    failing: tuple[Recording, ...]
    """Some of the domains on which it fails."""
    sweeps: tuple[Mapping[str, Any], ...]
    """One a parameter, as `Sweep.to_dict` gives it."""
    explanation: Mapping[str, Any] | None
    """As `Explanation.to_dict` gives it."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Evaluation":
        """Read what `to_dict` wrote."""
        values = {f.name: document[f.name] for f in dataclasses.fields(cls)}
        tuples = {name: tuple(document[name]) for name in ("returns", "sweeps")}
        moving = {name: tuple(map(_recording, document[name])) for name in ("recordings", "failing")}
        return cls(**{**values, **tuples, **moving, "failures": Failures.from_dict(document["failures"])})


@dataclass(frozen=True)
class _Tried:
    """Random machines, and the return of one rollout on each."""

    domains: Domains
    keys: Key[Array, " n"]
    returns: Values

    def at(self, i: int) -> tuple[Domains, Key[Array, ""]]:
        """One of the machines, and the random numbers of its rollout."""
        return {name: column[i : i + 1] for name, column in self.domains.items()}, self.keys[i]


@dataclass(frozen=True)
class _Shown:
    """A rollout that the page shows in motion."""

    caption: str
    domain: Domains
    key: Key[Array, ""]


def evaluate_run(story: Story, env: Platform | None = None, full: bool = True, tell: Tell | None = None) -> Evaluation:
    """The figures of the run's policy: from evaluation.json if they are there, else computed and written to it.

    `env` is the platform of a run that was given its own as a Python object.
    """
    platform, policy = find_policy(story, env)
    name = str(fingerprint(policy) or story.config.get("policy"))
    path, split = story.directory / FILE, story.certificate.split if story.certificate else None
    level = split.level if split else None
    stored = _stored(path, name, level)
    if stored is not None and stored.full >= full:
        return stored
    others = attribution_others(story.directory, policy) if full else {}
    found = compute(platform, policy, name, full, level, others, tell)
    with contextlib.suppress(OSError):  # of a run that is read-only: the next page takes as long again
        write_json(path, found.to_dict())
    return found


def find_policy(story: Story, env: Platform | None = None) -> tuple[Platform, Policy]:
    """The platform and the policy that the run keeps or assesses; it must be the one that its certificate speaks of."""
    if env is None and story.own_platform:
        raise NoPolicyError(
            "The platform was given as a Python object; spota.show.pages.write(directory, env) adds its rollouts."
        )
    try:
        env = env or story.find_platform()
    except ValueError as error:
        raise NoPolicyError(f"The platform cannot be found again: {error}") from error
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
    env: Platform,
    policy: Policy,
    name: str,
    full: bool,
    level: float | None,
    others: Mapping[str, Policy],
    tell: Tell | None = None,
) -> Evaluation:
    """Run the policy; the same for every call, because the keys depend on nothing."""
    say = tell or (lambda _what, _share: None)
    k_domains, k_rollouts, k_sweeps, k_explain = jax.random.split(evaluate.evaluation_key(0), 4)
    tried = _try(k_domains, k_rollouts, env, policy, say)
    sweeps = tuple(_sweeps(k_sweeps, env, policy, say)) if full else ()
    explained = k_explain, env, "the policy", policy, others
    explanation = attribution.explain(*explained, n=EXPLAINED, tell=say) if full else None
    found, failed = _failures(env, tried, level)
    shown = _failing(tried, failed)
    moving = _recordings(env, policy, [*_usual(env, tried, explanation), *shown], say)
    cut = len(moving) - len(shown) if moving else 0
    return Evaluation(
        policy=name,
        full=full,
        level=level,
        returns=tuple(tried.returns.tolist()),
        failures=found,
        recordings=moving[:cut],
        failing=moving[cut:],
        sweeps=sweeps,
        explanation=None if explanation is None else plain(explanation.to_dict()),
    )


def _try(k_domains: Key[Array, ""], k_rollouts: Key[Array, ""], env: Platform, policy: Policy, say: Tell) -> _Tried:
    say("random domains", 0.0)
    domains, keys = env.domain.sample(k_domains, DRAWN), jax.random.split(k_rollouts, DRAWN)
    outcome = rollout.returns(env, policy, domains, randomness.reshaped(keys, -1, 1))
    return _Tried(domains, keys, np.asarray(outcome.returns[:, 0], np.float64))


def _failures(env: Platform, tried: _Tried, level: float | None) -> tuple[Failures, Failed]:
    """The machines on which the policy fails, by the certificate's level or by one of these rollouts."""
    level = crash_level(tried.returns) if level is None else level
    shortfall = FAILURE * (env.max_return - env.min_return)
    failed = tried.returns < level - shortfall
    drawn = {name: np.asarray(tried.domains[name], np.float64) for name in varied(env.domain)}
    rare = level - shortfall > env.min_return
    return Failures(DRAWN, int(failed.sum()), level, shortfall, rare, traits(drawn, failed)), failed


def _usual(env: Platform, tried: _Tried, explanation: attribution.Explanation | None) -> list[_Shown]:
    """The nominal, the typical and the worst machine; the random numbers are those that made it typical or worst."""
    order = np.argsort(tried.returns, kind="stable")
    typical = _Shown("typical domain", *tried.at(int(order[DRAWN // 2])))
    worst = tried.at(int(order[0]))
    if explanation is not None:
        worst = (
            {name: jnp.asarray([value], jnp.float32) for name, value in explanation.worst[0].domain.items()},
            typical.key,
        )
    return [_Shown("nominal domain", env.domain.nominal(), typical.key), typical, _Shown("worst domain found", *worst)]


def _failing(tried: _Tried, failed: Failed) -> list[_Shown]:
    chosen = examples(tried.returns, failed)
    captions = SEVERITY if len(chosen) == len(SEVERITY) else ("a failure",) * len(chosen)
    return [_Shown(caption, *tried.at(i)) for caption, i in zip(captions, chosen, strict=True)]


def _recordings(env: Platform, policy: Policy, shown: Sequence[_Shown], say: Tell) -> tuple[Recording, ...]:
    if env.name not in ANIMATED and not isinstance(env, HostEnv):
        return ()
    say("animated rollouts", 0.0)
    return tuple(record(env, policy, one.domain, one.key, caption=one.caption) for one in shown)


def _sweeps(key: Key[Array, ""], env: Platform, policy: Policy, say: Tell):
    names = varied(env.domain)
    for i, name in enumerate(names):
        say("sweeps", i / len(names))
        values = evaluate.span(env, name, POINTS)
        yield plain(evaluate.sweep(key, env, {"policy": policy}, {name: values}, rollouts=ROLLOUTS).to_dict())


def _stored(path: Path, name: str, level: float | None) -> Evaluation | None:
    """What the file says, if it speaks of this policy and this level in this format."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        if (kept["format"], kept["policy"], kept["level"]) == (FORMAT, name, level):
            return Evaluation.from_dict(kept)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _recording(document: Mapping[str, Any]) -> Recording:
    arrays = {name: np.asarray(document[name], np.float64) for name in ("time", "commands", "rewards", "returns")}
    tracks = {name: np.asarray(values, np.float64) for name, values in document["tracks"].items()}
    signals = tuple(Signal(**signal) for signal in document["signals"])
    shot = document["film"]
    film = None if shot is None else Film(**{**shot, "frames": tuple(shot["frames"])})
    return Recording(**{**document, **arrays, "tracks": tracks, "signals": signals, "film": film})
