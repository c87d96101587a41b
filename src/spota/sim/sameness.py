"""Checks that an episode is a function of its domain, its seed and its commands, and of nothing else."""

import numpy as np

from spota.sim.env import Platform
from spota.sim.findings import BATCH, Finding, Look
from spota.sim.probes import Record

TOLERANCE = 1e-4
"""Of a signal's range: what alone and in a batch may differ by, since compilers round arrays otherwise than numbers."""
ALIKE = 50
"""Steps over which they are compared: later, rounding may have grown."""
NOT_LOOKED_AT = "not looked at, because episodes do not repeat"
UNSEEDED = (
    "Two episodes with the same domain, seed and commands differ{when}: something draws random numbers that the seed "
    "does not decide. Draw them from the environment's own generator, self.np_random, which reset(seed=…) sets."
)
LEAKS = (
    "An episode after other domains differs from a first one{when}: state leaks from one domain to the next. Let reset "
    "set everything that an episode changes, and apply everything that ξ decides; or write reuse=False, which makes a "
    "new environment for every episode."
)
COMPOUNDS = (
    "An episode differs from the first one after its own ξ was applied again{when}: it compounds. Set values from the "
    "nominal ones, env.mass = nominal * xi['scale'], never from the current ones, env.mass *= xi['scale']."
)
NEIGHBOURS = (
    "A machine does not do alone what it does beside others{when}: let an episode depend on its own domain and seed "
    "only."
)


def repeats(look: Look) -> Finding:
    """The same seed gives the same episode."""
    finding = _compared(look, look.run(look.new()), "repeats with the same seed", UNSEEDED)
    look.repeats = finding.passed
    return finding


def starts_clean(look: Look) -> Finding:
    """Nothing is left of the domains before."""
    used = look.new()
    look.run(used, look.others)
    return _compared(look, look.run(used), "starts clean after another domain", LEAKS)


def does_not_compound(look: Look) -> Finding:
    """ξ may be applied again and again."""
    used = look.new()
    look.run(used)
    look.run(used)
    return _compared(look, look.run(used), "does not compound", COMPOUNDS)


def alone_as_beside_others(look: Look) -> Finding:
    """Neighbours do not matter."""
    about = "does alone what it does beside others"
    if not look.repeats:
        return Finding(about, seen=NOT_LOOKED_AT)
    for i in (0, BATCH - 1):
        one = {name: column[i : i + 1] for name, column in look.domains.items()}
        alone = look.drive(look.new(), one, look.seeds[i : i + 1], look.probes.take(np.array([i])))
        if not _alike(look.env, look.first, alone, i):
            return Finding(about, (NEIGHBOURS.format(when=_when(look.first, alone, i, 0)),))
    return Finding(about)


def _compared(look: Look, later: Record, about: str, fault: str) -> Finding:
    """Whether later episodes are the first ones, to the last bit."""
    if not look.repeats:
        return Finding(about, seen=NOT_LOOKED_AT)
    odd = [i for i in range(BATCH) if not look.first.same(later, i, i)]
    return Finding(about, (fault.format(when=_when(look.first, later, odd[0], odd[0])),) if odd else ())


def _alike(env: Platform, batch: Record, alone: Record, i: int) -> bool:
    steps = min(ALIKE, len(alone.rewards), len(batch.rewards))
    reach = np.array([s.high - s.low for s in env.observations])
    apart = np.abs(batch.observations[: steps + 1, :, i] - alone.observations[: steps + 1, :, 0]) / reach
    return bool((apart < TOLERANCE).all() and np.array_equal(batch.failed[:steps, i], alone.failed[:steps, 0]))


def _when(a: Record, b: Record, i: int, j: int) -> str:
    """The first step at which two episodes differ."""
    steps = min(len(a.observations), len(b.observations))
    apart = (a.observations[:steps, :, i] != b.observations[:steps, :, j]).any(axis=1)
    if not apart.any():
        return " in its rewards"
    return f" from step {int(apart.argmax())} on" if apart.argmax() else " from the start state on"
