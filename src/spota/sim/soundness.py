"""Whether a simulator does what a certificate takes for granted: `spota.check(env)`, `spota check ENV`.

A wrong simulator does not raise. A parameter that never arrives, a mass without its inertia, a scale that is applied
twice, a start that no seed decides: all of them train, and all of them end in a certificate that is not true.
"""

import warnings
from collections.abc import Callable

from spota.sim import movement, sameness
from spota.sim.checks import check_env, users_line
from spota.sim.env import Platform
from spota.sim.findings import BATCH, Finding, Look, Soundness
from spota.sim.speed import steps_per_second

CHECKS: tuple[Callable[[Look], Finding], ...] = (
    sameness.repeats,
    sameness.starts_clean,
    sameness.does_not_compound,
    sameness.alone_as_beside_others,
    movement.parameters_arrive,
    movement.nothing_stale,
    movement.within_range,
    movement.stays_finite,
)
"""In this order: the first says whether the next can compare, and the last two go over everything that was run."""


def check_soundness(env: Platform) -> None:
    """Refuse a simulator with a fault; for a run on a host environment, before it begins."""
    faults = list(check(env).faults)
    if faults:
        more = f" (`spota check` lists {len(faults) - 1} more.)" if len(faults) > 1 else ""
        sure = "If you are sure that it is right as it is, set SPOTA_CHECK=off."
        raise ValueError(f"{env.name} is not sound. {faults[0]}{more} {sure}")


def check(env: Platform) -> Soundness:
    """Drive a platform, ours or a host environment, and say what is wrong with it.

        print(spota.check(env))

    Every parameter must move a trajectory; the same seed must repeat; nothing may be left of the domain before, and
    nothing may compound; a machine does alone what it does in a batch; nothing computed is stale; rewards lie in their
    range; and there is neither NaN nor a warning. It takes seconds on fast simulators, a minute or two on slow ones.
    """
    check_env(env)
    look = Look(env)
    runs = _without_raising(look, "runs", _runs)
    if not runs.passed:
        return Soundness(env.name, (runs,), None)
    findings = [_without_raising(look, one.__name__.replace("_", " "), one) for one in CHECKS]
    with warnings.catch_warnings(action="ignore"):  # they were heard before
        return Soundness(env.name, (runs, *findings), steps_per_second(env))


def _runs(look: Look) -> Finding:
    look.first = look.run(look.new())
    return Finding("runs", seen=f"{look.first.alive.sum()} steps of {BATCH} machines")


def _without_raising(look: Look, about: str, one: Callable[[Look], Finding]) -> Finding:
    """A check that raises has found something, too."""
    try:
        return one(look)
    except Exception as error:
        known = isinstance(error, ValueError)
        said = str(error) if known else f"{look.env.name} broke: {type(error).__name__}: {error}{users_line(error)}."
        return Finding(about, (said,))
