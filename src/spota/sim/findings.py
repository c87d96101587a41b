"""What is found out about a simulator, and what all checks share: domains, seeds, probes and records."""

import zlib
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from spota.sim.env import Platform
from spota.sim.host import HostDomains, HostEnv, MachineError
from spota.sim.probes import Probes, Record, drive, some_probes

LONGEST = 1000
"""Steps of a probe, at most."""
BATCH = 4
"""Machines of the usual episodes."""


@dataclass(frozen=True)
class Finding:
    """One check: what it is about, what is wrong, and a word about what was seen."""

    about: str
    faults: tuple[str, ...] = ()
    seen: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


@dataclass(frozen=True)
class Soundness:
    """All findings about one platform."""

    env: str
    findings: tuple[Finding, ...]
    steps_per_second: float | None
    """Machine steps a second here; None if the simulator does not run."""

    @property
    def sound(self) -> bool:
        """Whether every check passed."""
        return all(finding.passed for finding in self.findings)

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong, one sentence each."""
        return tuple(fault for finding in self.findings for fault in finding.faults)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        checks = [{**vars(f), "faults": list(f.faults), "passed": f.passed} for f in self.findings]
        return {"env": self.env, "sound": self.sound, "checks": checks, "steps_per_second": self.steps_per_second}

    def __str__(self) -> str:
        """A line a check, and the faults below."""
        lines = [f"{'✓' if f.passed else '✗'} {f.about}{f': {f.seen}' if f.seen else ''}" for f in self.findings]
        return "\n".join([*lines, *self.faults])


class Look:
    """One look at a platform; every episode is kept for the checks that go over all of them."""

    def __init__(self, env: Platform):
        """Draw what the usual episodes need; nothing runs yet."""
        self.env = env
        self.steps = min(env.max_steps, LONGEST)
        self.domains, self.others = (self.draw(i, BATCH) for i in range(2))
        self.seeds = np.arange(1, BATCH + 1, dtype=np.uint32)
        self.probes = some_probes(env, BATCH, self.steps, seed=0, feedback=0.5)
        self.records: list[tuple[dict[str, np.ndarray], Record]] = []
        self.first: Record
        """The usual episodes, on simulators that nobody has used."""
        self.repeats = True
        """Whether they came out the same again; if not, nothing can be compared with them."""

    def new(self) -> Platform:
        """The same platform with simulators that nobody has used; a pure one keeps nothing, and is compiled already."""
        return replace(self.env) if isinstance(self.env, HostEnv) else self.env

    def draw(self, number: int, n: int) -> dict[str, np.ndarray]:
        """Random domains; the same number gives the same ones."""
        drawn = self.env.domain.sample(jax.random.fold_in(jax.random.key(zlib.crc32(b"check")), number), n)
        return {name: np.asarray(column, float) for name, column in drawn.items()}

    def run(self, env: Platform, domains: dict[str, np.ndarray] | None = None) -> Record:
        """The usual episodes, or the same on other domains."""
        return self.drive(env, domains or self.domains, self.seeds, self.probes)

    def drive(self, env: Platform, domains: dict[str, np.ndarray], seeds: np.ndarray, probes: Probes) -> Record:
        """Any episodes; what a simulator raises is told with the domain that did it, if a machine says which."""
        try:
            record = drive(env, domains, seeds, probes)
        except MachineError as error:
            which = "the domain" if error.machine is not None else f"one of {seeds.size} domains, the first of which is"
            raise ValueError(f"{env.name} broke on {which} {told(domains, error.machine or 0)}: {error}.") from error
        self.records.append((domains, record))
        return record


def told(domains: HostDomains, i: int) -> str:
    """One domain in a sentence."""
    return ", ".join(f"{name}={column[i]:.4g}" for name, column in domains.items())
