"""`spota reproduce`: the paper's figures, and how far each interval can be trusted."""

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import tyro

from spota.certify.algorithm import Result
from spota.certify.certificate import Certificate
from spota.certify.events import Assessed, Event
from spota.certify.settings import Spota
from spota.cluster.connecting import engine_on, tasks_on
from spota.cluster.engine import Engine
from spota.commands.coverage_page import coverage_page
from spota.commands.output import console, print_json, print_table, progress_console
from spota.commands.parts import Compute, in_turn, on_workers
from spota.commands.running import OnFlag
from spota.envs import catapult
from spota.experiments import example, intervals, whole_runs
from spota.files.atomic import write_atomically, write_json
from spota.polopt import exact
from spota.text import suggest

STUDIES = ("catapult", "coverage", "convergence", "sweeps", "recordings", "transfer")
ON_WORKERS = ("coverage", "convergence", "sweeps")
"""Studies whose parts workers can compute."""
TRAINING = ("convergence", "sweeps", "recordings", "transfer")
"""Studies that train policies, each in a module of its name."""
SHOWN = ("basic_pooled", "basic_reference", "bca_reference", "studentized_reference", "split")
"""The intervals that fit on a screen; the files have all."""
QUICK_RUNS = 40
RUN_COLUMNS = {
    "procedure": "procedure",
    "failures on": "weak",
    "covers": "covers",
    "certified": "certified",
    "falsely": "false_certificates",
    "refuted": "refuted",
    "wrongly": "refuted_wrongly",
    "median\nbound / truth": "median_ratio",
}
"""What is shown of whole runs, and where it stands."""


def _given(default: str, metavar: str) -> Any:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


def reproduce(
    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar=f"{{{','.join(STUDIES)}}}")],
    /,
    seed: int = 0,
    quick: bool = False,
    runs: Annotated[int | None, _given("5, with --quick 2", "N")] = None,
    policies: Annotated[Path | None, _given("none: train them", "DIR")] = None,
    out: Annotated[Path | None, _given("runs/reproduce-WHAT, with --quick runs/reproduce-WHAT-quick", "DIR")] = None,
    on: OnFlag = None,
    json: bool = False,
) -> None:
    """Compute a figure of the paper, or a study behind this software, anew.

    convergence, sweeps, recordings and transfer train policies, each in a run directory below --out: the same command
    goes on with what was interrupted. The full versions take half an hour to hours on two cores; --quick takes minutes.

    Args:
        what: catapult (the illustrative example, and SPOTA on it with the closed-form optimum), coverage (how often
            each confidence interval covers the true gap, and how often whole runs are right; about 20 minutes),
            convergence (UCBOG over the iterations of SPOTA, across runs), sweeps (nominal PPO, EPOpt and SPOTA over
            four domain parameters), recordings (the paper's tables against recordings of real machines, fits, and
            policies for both tables), or transfer (nominal PPO, EPOpt and SPOTA in the paper's real-world trials, on
            emulated machines that none of them has seen, on a virtual clock).
        seed: The same seed gives the same figures; the runs of convergence count up from it.
        quick: Fewer seeds, cases, runs or rollouts, and short trainings.
        runs: convergence: runs on each platform.
        policies: sweeps, transfer: take the policies from here instead of training them. Run directories are expected
            under the names ENV-ALGO, e.g. cart-pole-ppo, cart-pole-epopt, cart-pole-spota; missing ones are trained.
        out: Where the pictures and the run directories go.
        on: convergence, sweeps, coverage: let workers make whole runs and counts, e.g. --on ray.
        json: Print one JSON document instead of tables.
    """
    if what not in STUDIES:
        raise ValueError(f"There is no study {what!r}; {suggest(what, STUDIES)}")
    own = {"--runs": (runs, ("convergence",)), "--policies": (policies, ("sweeps", "transfer"))}
    _refuse({**own, "--on": (on, ON_WORKERS)}, what)
    directory = out or Path("runs") / f"reproduce-{what}{'-quick' if quick else ''}"
    with engine_on(on, tasks_on(on)) as engine:
        workers = {"engine": engine} if what in ON_WORKERS else {}
        _study(what)(seed, quick, *_own(what, runs, policies), directory, json, **workers)


def _study(what: str) -> Callable[..., None]:
    """What computes it; a study that trains is slow to import."""
    if what in TRAINING:
        return getattr(importlib.import_module(f"spota.commands.reproduce_{what}"), f"reproduce_{what}")
    return {"catapult": _catapult, "coverage": _coverage}[what]


def _own(what: str, runs: int | None, policies: Path | None) -> tuple[Any, ...]:
    """The arguments that only some studies have."""
    return {"convergence": (runs,), "sweeps": (policies,), "transfer": (policies,)}.get(what, ())


def _refuse(flags: dict[str, tuple[Any, tuple[str, ...]]], what: str) -> None:
    for name, (value, subjects) in flags.items():
        if value is not None and what not in subjects:
            raise ValueError(f"{name} has no meaning for {what}; it is for spota reproduce {' or '.join(subjects)}.")


def _catapult(seed: int, quick: bool, directory: Path, json: bool) -> None:
    from spota.experiments import figures  # slow to import
    from spota.show import plots

    drawn = example.illustrative_example(seed)
    files = plots.save(figures.illustrative_example(drawn), directory / "catapult")
    result = example.spota_on_the_catapult(seed, _two_iterations() if quick else None, _tell)
    document = {"seed": seed, **drawn.to_dict(), "spota": _run(result), "files": [str(f) for f in files]}
    write_json(directory / "catapult.json", document)
    if json:
        print_json(document)
        return
    bias = document["exact_bias"]
    print_table(
        "The simulation optimization bias, exact", ("n", *bias), [("SOB in m", *(f"{b:.6f}" for b in bias.values()))]
    )
    rows = [(name, *_triple(document[key])) for name, key in _FIGURES.items()]
    print_table(f"Over {drawn.gap.size} seeds, in m", ("", "exact", "mean", "standard error"), rows)
    columns = ("iteration", "n_c", "n_r", "mean gap", "UCBOG", "the paper's interval", "exact bias")
    table = [(str(i + 1), *_iteration(c)) for i, c in enumerate(result.history)]
    print_table("SPOTA with the closed-form optimum, in m", columns, table)
    console.print(str(result.certificate), soft_wrap=True)
    console.print(f"Its true gap is {document['spota']['true_gap']:.3g} m.")
    console.print(f"Wrote {', '.join(map(str, files))}.", soft_wrap=True)


_FIGURES = {"G(θᶜ)": "gap", "Ĝ_30(θᶜ)": "estimated_gap_30", "SOB at n = 30": "bias_30"}


def _coverage(seed: int, quick: bool, directory: Path, json: bool, engine: Engine | None = None) -> None:
    from spota.experiments import figures  # slow to import
    from spota.show import plots

    compute = in_turn if engine is None else on_workers(engine)
    rows, crashes = (
        _covered(seed, quick, cases, compute) for cases in (intervals.cases(quick), intervals.crash_cases(quick))
    )
    files = plots.save(figures.coverage(rows), directory / "coverage")
    runs = _counted(seed, quick, compute)
    studied = {"cases": rows, "crashes": crashes, "runs": runs}
    counted = {name: [row.to_dict() for row in some] for name, some in studied.items()}
    document = {"seed": seed, "nominal": 95.0, **counted}
    write_json(directory / "coverage.json", document)
    page = directory / "coverage.md"
    write_atomically(page, lambda file: file.write(coverage_page(rows, crashes, runs, seed).encode()))
    if json:
        print_json({**document, "files": [str(f) for f in (*files, page)]})
        return
    columns = ("problem", "n_G", "n_r", "corr.", *(m.replace("_", "\n") for m in SHOWN))
    for title, which in (("the true gap", "covers_gap"), ("the mean that they estimate", "covers_mean")):
        table = [_line(row, getattr(row, which)) for row in rows]
        print_table(f"How often nominal 95 % bounds are at least {title}, in %", columns, table)
    table = [_line(row, row.covers_gap) for row in crashes]
    print_table("How often they are where a share of the domains makes the candidate crash, in %", columns, table)
    print_table("Whole runs of SPOTA, in % of them", tuple(RUN_COLUMNS), [_run_line(counts) for counts in runs])
    console.print(f"Wrote {', '.join(map(str, (*files, page)))}.", soft_wrap=True)


def _counted(seed: int, quick: bool, compute: Compute) -> list[whole_runs.Counts]:
    runs = QUICK_RUNS if quick else whole_runs.RUNS
    names = "runs of SPOTA, {0.procedure}: failures on {1:g} %"
    kinds = whole_runs.kinds(quick)
    return compute(whole_runs.count, [(names.format(kind, 100 * kind.weak), (seed, kind, runs)) for kind in kinds])


def _run_line(counts: whole_runs.Counts) -> tuple[str, ...]:
    kind = counts.kind
    figures = (getattr(counts, name) for name in list(RUN_COLUMNS.values())[2:])
    return kind.procedure, f"{100 * kind.weak:g} %", *(f"{figure:.1f}" for figure in figures)


def _covered(seed: int, quick: bool, cases: Iterable[intervals.Case], compute: Compute) -> list[intervals.Coverage]:
    sets = 500 if quick else 2000
    names = "{0}: n_G = {1.n_G}, n_r = {1.n_r}"
    return compute(intervals.coverage, [(names.format(_problem(case), case), (seed, case, sets)) for case in cases])


def _problem(case: intervals.Case) -> str:
    return f"{case.problem} {100 * case.crash:g} %" if case.crash else case.problem


def _line(row: intervals.Coverage, values: dict[str, float]) -> tuple[str, ...]:
    case = row.case
    correlation = "" if case.correlation is None else f"{case.correlation:g}"
    return _problem(case), str(case.n_G), str(case.n_r), correlation, *(f"{values[m]:.1f}" for m in SHOWN)


def _run(result: Result) -> dict[str, Any]:
    theta = float(exact.extension(result.policy))
    gap = catapult.expected_return(catapult.true_optimum()) - catapult.expected_return(theta)
    return {
        "reason": result.reason,
        "iteration": result.iteration,
        "extension": theta,
        "true_gap": float(gap),
        "certificate": result.certificate.to_dict(),
        "ucbog": [c.to_dict()["ucbog"] for c in result.history],
        "n_r": [c.n_r for c in result.history],
    }


def _iteration(c: Certificate) -> tuple[str, ...]:
    bias = catapult.simulation_optimization_bias(c.n_r)
    figures = (c.mean_gap, c.ucbog, c.intervals["basic_pooled"], bias)
    return str(c.n_c), str(c.n_r), *(f"{value:.2f}" for value in figures)


def _triple(figures: dict[str, float]) -> tuple[str, ...]:
    return tuple(f"{figures[name]:.4f}" for name in ("exact", "mean", "standard_error"))


def _two_iterations() -> Spota:
    return Spota(beta=10.0, n_J=1, growth="doubling", max_iterations=2)


def _tell(event: Event) -> None:
    if isinstance(event, Assessed):
        progress_console.print(f"iteration {event.iteration}: UCBOG {event.certificate.ucbog:.2f}", style="dim")
