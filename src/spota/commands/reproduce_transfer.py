"""`spota reproduce transfer`: nominal PPO, EPOpt and SPOTA on emulated machines that none of them has seen."""

from pathlib import Path
from typing import Any

from spota.commands.experiment_runs import resumable, run_all
from spota.commands.output import console, print_json, print_table, say, warn
from spota.deploy.sources import Deployable, deployable
from spota.deploy.trial import Tried
from spota.deploy.trials import standings, threshold
from spota.experiments import sweeps, transfer
from spota.experiments.transfer_figure import transfer_figure
from spota.experiments.transfer_table import on_the_table
from spota.files.atomic import plain, write_json
from spota.runs.directory import Run
from spota.show import plots
from spota.text import figure

COLUMNS = ("machine", "policy", "solved", "mean return", "lowest", "spoiled attempts")
Found = dict[str, dict[str, list[Tried]]]


def reproduce_transfer(seed: int, quick: bool, given: Path | None, directory: Path, json: bool) -> None:
    """Train what is missing, make all trials, then draw and tell who transfers."""
    with resumable(directory):
        policies = _policies(seed, quick, given, directory)
        config = {
            "study": "transfer",
            "seed": seed,
            "quick": quick,
            "rules": vars(transfer.RULES),
            "policies": {env: {name: p.sha256 or "" for name, p in own.items()} for env, own in policies.items()},
        }
        with Run(directory / "trials", config, warn) as run:
            found = _tried(run, policies, quick, seed)
        within = {env: on_the_table(own["SPOTA"], seed) for env, own in policies.items()}
    files = plots.save(transfer_figure(found, list(sweeps.NAMES.values())), directory / "transfer")
    table = {env: on_table.to_dict() for env, on_table in within.items()}
    document = plain({"seed": seed, "quick": quick, "platforms": _document(found), "table": table})
    files.append(write_json(directory / "transfer.json", document))
    if json:
        print_json({**document, "files": [str(f) for f in files]})
        return
    for env, machines in found.items():
        rows = [
            (machine, s.policy, f"{s.solved} of {s.trials}", figure(s.mean), figure(s.low), str(s.spoiled))
            for machine, tried in machines.items()
            for s in standings(tried)
        ]
        print_table(env, COLUMNS, rows)
    for env, on_table in within.items():
        say(f"{env}, SPOTA. {on_table}", console)
    say(f"Wrote {', '.join(map(str, files))}.", console)


def _policies(seed: int, quick: bool, given: Path | None, directory: Path) -> dict[str, dict[str, Deployable]]:
    """By platform and name; those that were not given are trained, unless a given directory has only one platform."""
    works = sweeps.trainings(seed, quick)
    found = sweeps.existing(given, list(works)) if given else {}
    platforms = {name.rpartition("-")[0] for name in found} or set(sweeps.platforms(sweeps.PANELS))
    missing = {n: work for n, work in works.items() if n not in found and n.rpartition("-")[0] in platforms}
    run_all(missing, directory)
    return {
        env: {
            name: deployable(str(found.get(f"{env}-{algo}", directory / f"{env}-{algo}")), env)
            for algo, name in sweeps.NAMES.items()
        }
        for env in sweeps.platforms(sweeps.PANELS)
        if env in platforms
    }


def _tried(run: Run, policies: dict[str, dict[str, Deployable]], quick: bool, seed: int) -> Found:
    found: Found = {}
    for machine in transfer.MACHINES:
        if machine.env not in policies:
            continue
        say(f"{machine.env}, machine {machine.name}")
        tried = transfer.on_machine(run, machine, policies[machine.env], quick, seed, _tell)
        by_policy = sorted(tried, key=lambda t: list(sweeps.NAMES.values()).index(t.planned.policy))
        found.setdefault(machine.env, {})[machine.name] = by_policy
    return found


def _tell(number: int, of: int, tried: Tried) -> None:
    how = f"{figure(tried.returned)}, {'solved' if tried.solved else 'not solved'}" if tried.counts else tried.words
    say(f"  trial {number + 1} of {of}: {tried.planned.policy}: {how}")


def _document(found: Found) -> dict[str, Any]:
    return {
        env: {
            "threshold": threshold([t for tried in machines.values() for t in tried]),
            "machines": {
                machine: {
                    "standings": [s.to_dict() for s in standings(tried)],
                    "trials": [t.to_dict() for t in tried],
                }
                for machine, tried in machines.items()
            },
        }
        for env, machines in found.items()
    }
