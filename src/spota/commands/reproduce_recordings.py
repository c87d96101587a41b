"""`spota reproduce recordings`: the paper's table against a real machine, and what follows from it."""

from pathlib import Path
from typing import Any

from spota import policies
from spota.certify.algorithm import Result
from spota.commands.experiment_runs import resumable, run_all
from spota.commands.output import console, print_json, print_table, say, warn
from spota.experiments import recordings
from spota.experiments.recordings import Machine
from spota.files.atomic import plain, write_json
from spota.show.fit_plots import coverage_figure, save_figure
from spota.text import figure


def reproduce_recordings(seed: int, quick: bool, directory: Path, json: bool) -> None:
    """Ask the recordings of both machines, then train for the Cart-Pole's two tables."""
    with resumable(directory):
        found = {n: recordings.machine(n, directory / f"fit-{n}", seed, quick, warn) for n in ("cart-pole", "qube")}
        files = [file for name, one in found.items() for file in _draw(name, one, directory)]
        for name, one in found.items():
            _tell(name, one)
        runs = recordings.plans("cart-pole", directory / "fit-cart-pole", seed, quick)
        results = dict(zip(runs, run_all(runs, directory), strict=True))
    env = found["cart-pole"].fit.env
    chosen = {name: policies.find(directory / name, env) for name in runs}
    standings = recordings.on_the_machine(seed, env, {**chosen, "lqr": policies.find("lqr", env)})
    certificates = {name: r.certificate.to_dict() for name, r in results.items() if isinstance(r, Result)}
    document = plain(
        {
            "seed": seed,
            "quick": quick,
            "machines": {name: one.to_dict() for name, one in found.items()},
            "certificates": certificates,
            "on_the_fitted_machine": standings.to_dict(),
        }
    )
    files.append(write_json(directory / "recordings.json", document))
    if json:
        print_json({**document, "files": [str(f) for f in files]})
        return
    rows = [(name, figure(row["mean"]), figure(row["worst_20_mean"])) for name, row in standings.rows.items()]
    print_table("On machines that the recordings allow", ("policy", "mean return", "worst 20 %"), rows)
    for name, result in results.items():
        if isinstance(result, Result):
            say(f"\n{name}: {result.certificate}", console)
    say(f"Wrote {', '.join(map(str, files))}.", console)


def _draw(name: str, one: Machine, directory: Path) -> list[Path]:
    pictures = {"paper": one.paper, "fitted": one.held_out}
    return [
        save_figure(coverage_figure(coverage), directory / f"{name}-{table}.png")
        for table, coverage in pictures.items()
        if coverage.bands
    ]


def _tell(name: str, one: Machine) -> None:
    say(f"{name}, the paper's table: {one.paper}", console)
    say(f"{name}, the fitted table, on recordings that were not fitted: {one.held_out}", console)
    held: dict[str, Any] = {s["name"]: s for s in one.fit.held_out.to_dict()["signals"]}
    rows = [
        (signal, f"{held[signal]['error']:.3g}", f"{held[signal]['nominal_error']:.3g}",
         f"{errors['fitted']:.3g}", f"{errors['nominal']:.3g}")
        for signal, errors in one.swing_ups.items()
    ]  # fmt: skip
    head = ("signal", "chirps, fitted", "nominal", "swing-ups, fitted", "nominal")
    print_table(f"{name}: errors of predictions over half a second that nobody fitted", head, rows)
