"""`spota check`: whether a simulator does what a certificate takes for granted."""

import sys
from typing import Annotated, get_args

import tyro
from rich.markup import escape
from rich.table import Table

from spota.commands.output import console, print_json, say
from spota.commands.sources import OtherTable
from spota.envs import make
from spota.runs import cost
from spota.runs.config import Preset
from spota.runs.plan import Plan, complete
from spota.sim.env import Platform
from spota.sim.findings import Soundness
from spota.sim.soundness import check as look_at
from spota.text import duration

UNSOUND = 1
"""The exit code if a check fails."""


def check(
    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")],
    /,
    domain: OtherTable = None,
    json: bool = False,
) -> None:
    """Find out whether a simulator does what certificates take for granted, and what a certificate will cost.

    Every parameter must move a trajectory; the same seed must repeat; nothing may leak from one domain to the next, and
    nothing may compound; a machine does alone what it does beside others; what is computed from a parameter follows
    it; rewards lie in the stated range; and there is no NaN and no warning. The exit code is 0 if all of this holds,
    and 1 if not. How fast the simulator is, and what a certificate will cost in time, is said as well.

    Args:
        env: The platform; `spota envs` lists them. One of your own is FILE.py:NAME, which executes that file.
        json: Print one JSON document instead of a table.
    """
    platform = make(env, domain=domain)
    found = look_at(platform)
    costs = _costs(platform, found)
    if json:
        print_json({**found.to_dict(), "way": getattr(platform, "way", None), "certificate_seconds": costs})
    else:
        _print(platform, found, costs)
    if not found.sound:
        sys.exit(UNSOUND)


def _costs(env: Platform, found: Soundness) -> dict[str, float]:
    """Seconds in the simulator for a first certificate, by preset; those that do not fit the platform are left out."""
    seconds = {}
    for preset in get_args(Preset):
        try:
            plan = complete(Plan(env.name, preset=preset), env, [])
        except ValueError:
            continue
        if found.steps_per_second:
            seconds[preset] = cost.steps(plan, env) / found.steps_per_second
    return seconds


def _print(env: Platform, found: Soundness, costs: dict[str, float]) -> None:
    table = Table(title=env.name, title_justify="left", title_style="bold", header_style="dim", box=None)
    for column in ("", "check", "seen"):
        table.add_column(column, overflow="fold")
    for finding in found.findings:
        mark = "[green]✓[/]" if finding.passed else "[bold red]✗[/]"
        table.add_row(mark, escape(finding.about), escape(finding.seen))
    console.print(table)
    if hasattr(env, "way"):
        say(f"How ξ arrives: {getattr(env, 'way')}.", console)  # noqa: B009, only some platforms have it
    for fault in found.faults:
        say(f"✗ {fault}", console)
    if found.steps_per_second:
        told = ", ".join(f"{duration(seconds)} with --preset {preset}" for preset, seconds in costs.items())
        first = f"; a first certificate takes about {told} in the simulator, and some more to learn" if told else ""
        say(f"{found.steps_per_second:,.0f} steps a second here{first}.{_processes(env)}", console)
    say(f"{env.name} is {'sound, as far as this can tell' if found.sound else 'not sound'}.", console)


def _processes(env: Platform) -> str:
    """How many run machines side by side, if there are any."""
    workers = getattr(env, "workers", 1)
    return f" {workers} processes share the machines." if workers > 1 else ""
