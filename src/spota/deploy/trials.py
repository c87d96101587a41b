"""All trials of a protocol in a run directory: each is a block, so that an interruption costs one trial."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spota.deploy.recording import write_recording
from spota.deploy.session import Ended
from spota.deploy.sources import Deployable
from spota.deploy.trial import Protocol, Rig, Tried, planned
from spota.runs.directory import Run

Tell = Callable[[int, int, Tried], None]
"""Hears of every trial: its number, how many there are, and how it went."""


@dataclass(frozen=True)
class Standing:
    """What a policy did in all its trials on a machine."""

    policy: str
    trials: int
    """Those that count."""
    solved: int
    mean: float
    low: float
    high: float
    spoiled: int
    """Attempts that did not count."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


def make_trials(
    run: Run,
    rig: Rig,
    policies: Mapping[str, Deployable],
    protocol: Protocol,
    *,
    seed: int,
    tell: Tell | None = None,
    below: str = "trials",
) -> list[Tried]:
    """Every trial that the directory does not have yet; those that it has are read."""
    order = planned(protocol, list(policies), seed)
    found = []
    for number, plan in enumerate(order):
        keep = _keeper(run.directory / below, number, policies[plan.policy])

        def made(plan=plan, keep=keep) -> dict[str, np.ndarray]:
            return rig.tried(plan, policies[plan.policy], protocol, keep).to_arrays()

        tried = Tried.from_arrays(run.block(f"{below}/trial-{number:03d}", made))
        found.append(tried)
        if tell is not None:
            tell(number, len(order), tried)
    return found


def _keeper(directory: Path, number: int, policy: Deployable) -> Callable[[Ended], None]:
    """Writes each attempt as a recording beside its block."""
    attempts = iter(range(100))

    def keep(ended: Ended) -> None:
        attempt = next(attempts)
        name = f"recording-{number:03d}{'' if attempt == 0 else f'-{attempt + 1}'}.npz"
        write_recording(directory / name, ended, policy.env, f"spota trial, {policy.name}")

    return keep


def standings(tried: Sequence[Tried]) -> list[Standing]:
    """A line for each policy."""
    return list(_standings(tried))


def _standings(tried: Sequence[Tried]) -> Iterator[Standing]:
    for policy in dict.fromkeys(t.planned.policy for t in tried):
        own = [t for t in tried if t.planned.policy == policy]
        returns = np.array([t.returned for t in own if t.counts])
        mean, low, high = (returns.mean(), returns.min(), returns.max()) if returns.size else (np.nan,) * 3
        solved, spoiled = sum(t.solved for t in own), sum(len(t.spoiled) for t in own)
        yield Standing(policy, returns.size, solved, float(mean), float(low), float(high), spoiled)


def threshold(tried: Sequence[Tried]) -> float:
    """The return that marks a solved task: the lowest with which it was solved; NaN if it never was."""
    return min((t.returned for t in tried if t.solved), default=float("nan"))
