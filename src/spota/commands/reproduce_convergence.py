"""`spota reproduce convergence`: UCBOG over the iterations, across runs."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from spota.certify.algorithm import Result
from spota.certify.events import BlockFinished, Event
from spota.cluster.engine import Engine
from spota.commands.experiment_runs import resumable, run_all
from spota.commands.output import console, print_json, print_table, say
from spota.experiments import convergence, figures
from spota.experiments.convergence import Convergence, Iteration
from spota.files.atomic import plain, write_json
from spota.runs.plan import Plan
from spota.show import plots
from spota.text import figure, percent

COLUMNS = (
    "iteration",
    "n_c",
    "n_r",
    "mean UCBOG",
    "± 1 deviation",
    "median gap",
    "earned",
    "certified",
    "negative gaps",
)


def reproduce_convergence(
    seed: int, quick: bool, runs: int | None, directory: Path, json: bool, engine: Engine | None = None
) -> None:
    """Run SPOTA with several seeds, then draw and tell what the runs have in common."""
    plans = {f"{p.env}-seed-{p.seed}": p for p in convergence.plans(seed, quick, runs)}
    say("No threshold ends a run here: all have the same number of iterations, so that their means can be compared.")
    with resumable(directory):
        found = _by_platform(plans, directory, engine)
        files = [file for one in found for file in _draw(one, directory)]
    document = plain({"seed": seed, "quick": quick, "platforms": [one.to_dict() for one in found]})
    files.append(write_json(directory / "convergence.json", document))
    if json:
        print_json({**document, "files": [str(f) for f in files]})
        return
    for one in found:
        title = f"{one.env}: UCBOG over the iterations of {len(one.results)} runs, threshold {figure(one.threshold)}"
        print_table(title, COLUMNS, [_line(i, len(one.results)) for i in one.iterations])
        say(str(one), console)
    say(f"Wrote {', '.join(map(str, files))}.", console)


def _by_platform(plans: Mapping[str, Plan], directory: Path, engine: Engine | None) -> list[Convergence]:
    gaps: dict[str, list[np.ndarray]] = {name: [] for name in plans}

    def hear(name: str, event: Event) -> None:
        if isinstance(event, BlockFinished) and event.block.endswith("comparison"):
            gaps[name].append(event.arrays["gaps.final"])

    results = run_all(plans, directory, hear, engine)
    whole = [
        (p, result, gaps[name])
        for (name, p), result in zip(plans.items(), results, strict=True)
        if isinstance(result, Result)
    ]
    platforms = dict.fromkeys(p.env for p in plans.values())
    return [Convergence(*zip(*(one for one in whole if one[0].env == env), strict=True)) for env in platforms]


def _draw(one: Convergence, directory: Path) -> list[Path]:
    lines = one.iterations
    sizes = [i.n_c for i in lines], [i.n_r for i in lines]
    picture = figures.convergence(one.ucbog, one.median_gaps, *sizes, one.threshold, one.env)
    return plots.save(picture, directory / f"convergence-{one.env}")


def _line(i: Iteration, runs: int) -> tuple[str, ...]:
    mean = figure(i.mean) if i.bounded == runs else f"{figure(i.mean)} ({i.bounded} of {runs} runs have a bound)"
    deviation = figure(i.std) if i.bounded > 1 else ""
    earned = "" if np.isnan(i.earned) else figure(i.earned)
    rest = figure(i.median_gap), earned, f"{i.certified} of {runs}", percent(i.negative_share)
    return str(i.iteration), str(i.n_c), str(i.n_r), mean, deviation, *rest
