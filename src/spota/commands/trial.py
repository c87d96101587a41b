"""`spota trial`: the paper's protocol on a machine, trial by trial."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from spota.commands.experiment_runs import resumable
from spota.commands.output import console, print_json, print_table, say, warn
from spota.deploy.addresses import Address, parse
from spota.deploy.connect import connected, emulated
from spota.deploy.rules import Rules
from spota.deploy.sources import Deployable, deployable, measured
from spota.deploy.trial import Protocol, Rig, Tried
from spota.deploy.trials import Standing, make_trials, standings
from spota.deploy.virtual import VirtualLink
from spota.files.atomic import plain, write_json
from spota.runs.directory import Run
from spota.text import figure

COLUMNS = ("policy", "trials", "solved", "mean return", "lowest", "highest", "spoiled attempts")


def trial(
    policies: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="POLICY ...")],
    /,
    device: str,
    env: str | None = None,
    repetitions: int | None = None,
    steps: int | None = None,
    known: tuple[str, ...] = (),
    rules: Rules = Rules(),  # noqa: B008, frozen
    watchdog: bool = True,
    seed: int = 0,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Make the paper's trials on a machine: every policy from every start point, in random order.

    Ball-Balancer: 8 start points, 5 repetitions, 2000 steps. Cart-Pole: swing-up, 10 repetitions, 4000 steps. A trial
    that the device spoils is made again, and recorded as such; the same command with the same --out goes on.

    Args:
        policies: Run directories, policy files, ONNX files or controllers.
        device: As for spota deploy; emulator://ENV?seed=N needs no second process, and no real time.
        env: The platform.
        repetitions: Instead of the protocol's.
        steps: Instead of the protocol's.
        known: Parameters of this machine that were measured, NAME=VALUE, or the directory of a fit.
        rules: What stops a run, and how gently it begins.
        watchdog: Refuse a device that does not declare a watchdog of its own.
        seed: The order of the trials.
        out: Where everything goes; by default runs/trial-ENV-TIME.
        json: Print one JSON document.
    """
    if not policies:
        raise ValueError("No policy was given; write one or more run directories, policy files or controllers.")
    chosen = {name: deployable(name, env) for name in policies}
    platform = next(iter(chosen.values())).env
    if len({one.env.name for one in chosen.values()}) > 1:
        raise ValueError("Give policies of one platform only.")
    protocol = Protocol.of(platform)
    protocol = replace(protocol, repetitions=repetitions or protocol.repetitions, steps=steps or protocol.steps)
    directory = out or Path("runs") / f"trial-{platform.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    rig = Rig(platform, _connector(parse(device), chosen, watchdog), rules, measured(known, platform))
    config = {
        "env": platform.name, "device": device, "policies": {name: p.sha256 or "" for name, p in chosen.items()},
        "seed": seed, "repetitions": protocol.repetitions, "steps": protocol.steps, "known": list(known),
        "rules": vars(rules),
    }  # fmt: skip
    with resumable(directory), Run(directory, config, warn) as run:
        tried = make_trials(run, rig, chosen, protocol, seed=seed, tell=_tell)
        found = standings(tried)
        document = plain({**config, "standings": [s.to_dict() for s in found], "trials": [t.to_dict() for t in tried]})
        write_json(run.directory / "trials.json", document)
    if json:
        print_json({"directory": str(directory), **document})
        return
    print_table(f"{platform.name}, {device}", COLUMNS, [_row(s) for s in found])
    say(f"Wrote {directory}: trials.json, and a recording of every trial in trials/.", console)


def _connector(address: Address, chosen: dict[str, Deployable], watchdog: bool):
    """Opens a line for each attempt; an emulator is one machine for all of them."""
    first = next(iter(chosen.values()))
    if address.scheme == "emulator":
        made = emulated(address, first.env)
        return lambda: VirtualLink(made)
    return lambda: connected(address, first.env, first.contract, insist=not watchdog)


def _row(s: Standing) -> tuple[str, ...]:
    figures = (figure(s.mean), figure(s.low), figure(s.high)) if s.trials else ("–",) * 3
    return (s.policy, str(s.trials), str(s.solved), *figures, str(s.spoiled))


def _tell(number: int, of: int, tried: Tried) -> None:
    where = "" if tried.planned.start is None else f" from {tried.planned.start:g}°"
    how = (
        f"return {figure(tried.returned)}, {'solved' if tried.solved else 'not solved'}" if tried.counts else "spoiled"
    )
    again = f" after {len(tried.spoiled)} spoiled attempts" if tried.spoiled and tried.counts else ""
    say(f"trial {number + 1} of {of}: {tried.planned.policy}{where}: {how}{again}")
