"""`spota envs`: the platforms and their domain parameters."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from spota.commands.output import command, console, print_json, say
from spota.commands.sources import OtherTable
from spota.envs import PLATFORMS, make
from spota.sim import table_file
from spota.sim.domain import Parameter
from spota.sim.env import Platform

OUTSIDE = (
    "  * The nominal value lies outside the distribution, which never draws it: each is stated for itself. "
    "The nominal domain (--nominal, sweep, play) has it all the same."
)


def envs(
    names: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    domain: OtherTable = None,
    write: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")] = None,
    json: bool = False,
) -> None:
    """List the platforms, with the distribution of every domain parameter.

    Args:
        names: Platforms to list; all of ours when none is given. One of your own is FILE.py:NAME, which executes it.
        write: Write the platform's table to this file, .toml or .json: edit it, and give it to --domain.
        json: Print one JSON document instead of tables.
    """
    if (domain or write) and len(names) != 1:
        given = "--domain" if domain else "--write"
        raise ValueError(f"{given} is about one platform; name it, e.g. spota envs cart-pole {given} {domain or write}")
    chosen = [make(name, domain=domain) for name in names or PLATFORMS]
    if write:
        _write(chosen[0], write, json)
        return
    if json:
        print_json([_document(env) for env in chosen])
        return
    for env in chosen:
        _print(env)


def _write(env: Platform, file: Path, json: bool) -> None:
    written = table_file.save(env, file, f"the table of {env.name}, as spota envs wrote it")
    if json:
        print_json({"env": env.name, "file": str(written)})
        return
    again = command("train", env.name, "--domain", written)
    say(f"Wrote the table of {env.name} to {written}. Edit it, then e.g.:\n  {again}", console)


def _document(env: Platform) -> dict:
    signals = {kind: [vars(s) for s in getattr(env, kind)] for kind in ("observations", "actions")}
    head = {"name": env.name, "about": _about(env), "dt": env.dt, "max_steps": env.max_steps}
    return {**head, "max_return": env.max_return, **signals, "domain": env.domain.to_dict()}


def _about(env: Platform) -> str:
    return (type(env).__doc__ or "").split("\n")[0]


def _drawn(p: Parameter) -> bool:
    """Whether the distribution can draw the nominal value."""
    low, high = p.marginal.support
    return low <= p.nominal_value <= high


def _print(env: Platform) -> None:
    console.print(f"[bold]{env.name}[/]: {_about(env)}")
    console.print(f"  {env.max_steps} steps of {env.dt} s; the return is at most {env.max_return:g}")
    console.print(f"  sees {', '.join(f'{s.name} [{s.unit}]' for s in env.observations)}", markup=False)
    ranges = ", ".join(f"{s.name} from {s.low:g} to {s.high:g} {s.unit}" for s in env.actions)
    console.print(f"  commands {ranges}")
    table = Table(header_style="dim", box=None, padding=(0, 1))
    for column in ("parameter", "distribution", "unit", "nominal", "meaning"):
        table.add_column(column, no_wrap=column != "meaning")
    for name, p in env.domain.items():
        table.add_row(name, str(p.marginal), p.unit, f"{p.nominal_value:g}{'' if _drawn(p) else ' *'}", p.meaning)
    console.print(table)
    if not all(map(_drawn, env.domain.values())):
        console.print(OUTSIDE, style="dim", soft_wrap=True)
    console.print()
