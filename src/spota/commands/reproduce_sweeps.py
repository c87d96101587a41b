"""`spota reproduce sweeps`: nominal PPO, EPOpt and SPOTA over four domain parameters."""

import json as json_format
from pathlib import Path
from typing import Any

from spota import policies
from spota.analysis.evaluate import Sweep
from spota.cluster.engine import Engine
from spota.commands.experiment_runs import resumable, run_all
from spota.commands.output import console, print_json, print_table, say
from spota.commands.progress import bar
from spota.envs import make
from spota.experiments import sweeps
from spota.files.atomic import plain, write_json
from spota.show import plots
from spota.sim.env import Policy
from spota.text import figure

COLUMNS = ("policy", "return at nominal", "lowest", f"keeps {100 * sweeps.KEPT:.0f} % of it")


def reproduce_sweeps(
    seed: int, quick: bool, given: Path | None, directory: Path, json: bool, engine: Engine | None = None
) -> None:
    """Train what is missing, sweep, then draw and tell where each policy keeps its return."""
    size = sweeps.QUICK if quick else sweeps.Size()
    with resumable(directory):
        sources = _sources(seed, quick, given, directory, engine)
        results = _measured(seed, size, sources)
        files = plots.save(plots.panels_of_sweeps(results), directory / "sweeps")
    document = plain(_document(seed, quick, sources, results))
    files.append(write_json(directory / "sweeps.json", document))
    if json:
        print_json({**document, "files": [str(f) for f in files]})
        return
    for result in results:
        axis = result.axes[0]
        title = f"{result.env}, {axis.meaning or axis.name} (nominal {axis.nominal:.4g} {axis.unit.strip('-')})"
        rows = [(k.policy, figure(k.nominal), figure(k.lowest), str(k)) for k in sweeps.kept(result)]
        print_table(title.replace(" )", ")"), COLUMNS, rows)
    for env, c in document["certificates"].items():
        say(f"SPOTA on {env}: UCBOG {figure(float(c['ucbog']))}, threshold {figure(c['threshold'])}.", console)
    say(f"Wrote {', '.join(map(str, files))}.", console)


def _sources(seed: int, quick: bool, given: Path | None, directory: Path, engine: Engine | None) -> dict[str, Path]:
    """Where each policy is; those that were not given are trained."""
    works = sweeps.trainings(seed, quick)
    found = sweeps.existing(given, list(works)) if given else {}
    missing = {name: work for name, work in works.items() if name not in found}
    run_all(missing, directory, engine=engine)
    return {name: found.get(name, directory / name) for name in works}


def _measured(seed: int, size: sweeps.Size, sources: dict[str, Path]) -> list[Sweep]:
    results = []
    with bar("sweeping …") as show:
        for panel in sweeps.PANELS:
            what = f"{panel.env}, {panel.parameter}"
            show(what, 0.0)
            chosen = _policies(panel.env, sources)
            results.append(sweeps.measure(seed, panel, chosen, size, lambda share, what=what: show(what, share)))
    return results


def _policies(env: str, sources: dict[str, Path]) -> dict[str, Policy]:
    platform = make(env, noise=False)
    return {
        name: policies.find(sources[sweeps.directory_name(env, algo)], platform) for algo, name in sweeps.NAMES.items()
    }


def _document(seed: int, quick: bool, sources: dict[str, Path], results: list[Sweep]) -> dict[str, Any]:
    return {
        "seed": seed,
        "quick": quick,
        "sources": sources,
        "certificates": {env: c for env in sweeps.platforms(sweeps.PANELS) if (c := _certificate(env, sources))},
        "panels": [sweeps.describe(result) for result in results],
    }


def _certificate(env: str, sources: dict[str, Path]) -> dict[str, Any]:
    """What the run of SPOTA says about its policy, if it says something."""
    file = sources[sweeps.directory_name(env, "spota")] / "certificate.json"
    certificate = json_format.loads(file.read_text("utf-8")) if file.is_file() else {}
    return {name: certificate[name] for name in ("ucbog", "threshold", "verdict") if name in certificate}
