"""Checks that every parameter moves something, and that what moves stays within what is stated."""

import numpy as np
from jaxtyping import Bool

from spota.sim.env import Platform
from spota.sim.findings import Finding, Look, told
from spota.sim.host import HostEnv
from spota.sim.probes import Record, some_probes
from spota.text import plural

FEW, MANY = 8, 64
"""Pairs of episodes for each parameter: first few, then many for those that did not move."""
DRAWS = 64
"""Values of a parameter of which the smallest and the largest are tried."""
MACHINES = 1024
"""Side by side, at most."""
MOVED = 1e-6
"""Of a signal's range: what counts as a movement."""
SLACK = 1e-5
"""Of the rewards' range: rounding."""
JUMP = 10.0
"""How many times its usual step a signal jumps that was reset."""

Ends = dict[str, tuple[float, float]]


def nothing_stale(look: Look) -> Finding:
    """What is computed from ξ follows it."""
    env, domain = look.env, {name: float(column[0]) for name, column in look.domains.items()}
    return Finding("has nothing stale", tuple(env.stale(domain)) if isinstance(env, HostEnv) else ())


def parameters_arrive(look: Look) -> Finding:
    """Every parameter moves a trajectory; what the effects use is theirs, and what is constant cannot."""
    ends: Ends = {name: (float(c.min()), float(c.max())) for name, c in look.draw(2, DRAWS).items()}
    waiting = [n for n, (a, b) in ends.items() if a != b and n not in look.env.effects.parameters]
    count = len(waiting)
    for pairs, feedback in ((FEW, 0.25), (MANY, 0.75)):
        width = MACHINES // (2 * pairs)
        groups = [waiting[i : i + width] for i in range(0, len(waiting), width)]
        waiting = [n for group in groups for n in _unmoved(look, {n: ends[n] for n in group}, pairs, feedback)]
    faults = tuple(
        f"{n} is dead: none of {MANY} trajectories changed when it went from {ends[n][0]:.4g} to {ends[n][1]:.4g} "
        f"{look.env.domain[n].unit}. The simulator ignores it, or uses it only where random commands never come; let ξ "
        "reach it, or take it out of the table."
        for n in waiting
    )
    return Finding("every parameter moves a trajectory", faults, f"{count - len(waiting)} of {count} move")


def _unmoved(look: Look, ends: Ends, pairs: int, feedback: float) -> list[str]:
    """The parameters for which episodes at both ends are the same, with all else the same."""
    base, blocks = look.draw(3, pairs), []
    for name, (low, high) in ends.items():
        blocks += [{**base, name: np.full(pairs, low)}, {**base, name: np.full(pairs, high)}]
    domains = {name: np.concatenate([block[name] for block in blocks]) for name in base}
    every = np.tile(np.arange(pairs), len(blocks))
    probes = some_probes(look.env, pairs, look.steps, seed=pairs, feedback=feedback).take(every)
    record = look.drive(look.env, domains, (every + 1).astype(np.uint32), probes)
    apart = _apart(look.env, record, pairs).reshape(len(ends), pairs)
    return [name for name, some in zip(ends, apart, strict=True) if not some.any()]


def _apart(env: Platform, record: Record, pairs: int) -> Bool[np.ndarray, "_"]:
    """Which pairs did something else; machines are blocks of `pairs`, at the low and the high end by turns."""

    def gap(values: np.ndarray) -> np.ndarray:
        blocks = values.reshape(*values.shape[:-1], -1, 2, pairs)
        return np.abs(blocks[..., 0, :] - blocks[..., 1, :]).reshape(*values.shape[:-1], -1)

    reach = np.array([s.high - s.low for s in env.observations])[:, None]
    seen = gap(record.observations) > MOVED * reach
    earned = gap(record.rewards) > MOVED * (env.max_reward - env.min_reward)
    ended = (gap(record.danger) > MOVED) | (gap(record.failed.astype(float)) > 0)
    return np.asarray(seen.any(axis=(0, 1)) | (earned | ended).any(axis=0))


def within_range(look: Look) -> Finding:
    """Rewards lie where they are said to; what a failure is charged is another matter."""
    env, about = look.env, "earns within the stated range"
    usual = [r.rewards[r.alive & ~r.failed & np.isfinite(r.rewards)] for _, r in look.records]
    seen = np.concatenate(usual)
    if not seen.size:
        return Finding(about, seen="every episode failed in its first step")
    low, high = float(seen.min()), float(seen.max())
    slack = SLACK * max(abs(env.min_reward), abs(env.max_reward))
    stated = f"{env.min_reward:.4g} to {env.max_reward:.4g}"
    if env.min_reward - slack <= low and high <= env.max_reward + slack:
        return Finding(about, seen=f"{low:.4g} to {high:.4g} of {stated}")
    fault = (
        f"Rewards from {low:.4g} to {high:.4g} were seen, but {stated} is stated, and a certificate's bounds rest on "
        "that; state a range that holds everywhere in the table."
    )
    return Finding(about, (fault,))


def stays_finite(look: Look) -> Finding:
    """No NaN, no warning, no reset that nobody asked for."""
    warned = dict.fromkeys(f"The simulator warned: {said.rstrip('.')}." for _, r in look.records for said in r.warned)
    faults = (*warned, *_divergence(look), *_silent_reset(look))
    return Finding("stays finite, without warnings or silent resets", faults)


def _divergence(look: Look) -> tuple[str, ...]:
    for domains, record in look.records:
        whole = np.isfinite(record.observations).all(axis=(0, 1)) & np.isfinite(record.rewards).all(axis=0)
        wild = record.diverged | ~whole
        if wild.any():
            return (
                f"{plural(int(wild.sum()), 'machine')} of {wild.size} came to NaN or infinity, e.g. on the domain "
                f"{told(domains, int(wild.argmax()))}, by commands within the actuators' range. Such an episode counts "
                "as failed; shorten the time step, or narrow the table.",
            )
    return ()


def _silent_reset(look: Look) -> tuple[str, ...]:
    """A simulator that diverged may begin anew by itself, and its episode would count as alive."""
    for domains, record in look.records:
        seen = record.observations
        step = np.abs(np.diff(seen, axis=0))
        far = (step > JUMP * np.median(step, axis=0)).any(axis=1)
        home = (seen[1:] == seen[:1]).all(axis=1) & far & record.alive & ~record.failed
        if home.any():
            t, i = np.argwhere(home)[0]
            return (
                f"In step {t + 1} on the domain {told(domains, int(i))} the simulator jumped back to its start without "
                "having failed: it resets itself. Report that as terminated.",
            )
    return ()
