"""`spota reproduce convergence`: UCBOG over the iterations, across runs."""

from pathlib import Path

from spota import plots
from spota.algorithm import Result
from spota.certificate import figure, percent
from spota.commands.experiment_runs import resumable, run_all
from spota.commands.output import console, print_json, print_table
from spota.commands.running import say
from spota.experiments import convergence
from spota.experiments.convergence import Convergence, Iteration
from spota.files import plain, write_json
from spota.plan import Plan

COLUMNS = ("iteration", "n_c", "n_r", "mean UCBOG", "± 1 deviation", "certified", "negative gaps")


def reproduce_convergence(seed: int, quick: bool, runs: int | None, directory: Path, json: bool) -> None:
    """Run SPOTA with several seeds, then draw and tell what the runs have in common."""
    plans = {f"{p.env}-seed-{p.seed}": p for p in convergence.plans(seed, quick, runs)}
    say("No threshold ends a run here: all have the same number of iterations, so that their means can be compared.")
    with resumable(directory):
        found = _by_platform(list(plans.values()), run_all(plans, directory))
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


def _by_platform(plans: list[Plan], results: list) -> list[Convergence]:
    pairs = [(p, result) for p, result in zip(plans, results, strict=True) if isinstance(result, Result)]
    return [
        Convergence(tuple(p for p, _ in pairs if p.env == env), tuple(r for p, r in pairs if p.env == env))
        for env in dict.fromkeys(p.env for p in plans)
    ]


def _draw(one: Convergence, directory: Path) -> list[Path]:
    lines = one.iterations
    picture = plots.convergence(one.ucbog, [i.n_c for i in lines], [i.n_r for i in lines], one.threshold)
    return plots.save(picture, directory / f"convergence-{one.env}")


def _line(i: Iteration, runs: int) -> tuple[str, ...]:
    mean = figure(i.mean) if i.bounded == runs else f"{figure(i.mean)} ({i.bounded} of {runs} runs have a bound)"
    deviation = figure(i.std) if i.bounded > 1 else ""
    certified = f"{i.certified} of {runs}"
    return str(i.iteration), str(i.n_c), str(i.n_r), mean, deviation, certified, percent(i.negative_share)
