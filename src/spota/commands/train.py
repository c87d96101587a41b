"""`spota train`: train a policy until it is certified, or once with one optimizer, and keep it in a run directory."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args

import tyro

from spota.certify.algorithm import Result
from spota.certify.settings import Spota
from spota.cluster.connecting import engine_on, tasks_on
from spota.cluster.engine import Engine
from spota.commands.output import command, console, print_json, say, warn
from spota.commands.progress import bar
from spota.commands.running import (
    BETA,
    OnFlag,
    ResumeFlag,
    SeedFlag,
    choice,
    end,
    flag,
    going_on,
    positional,
    run_directory,
    settings_file,
    shown,
    told_by,
    told_of_page,
)
from spota.commands.sources import OtherTable, named_table
from spota.driver import drive, drive_training
from spota.files.atomic import plain
from spota.policies import Start
from spota.polopt import FROM_CONTROLLER
from spota.polopt.analytic import Analytic
from spota.polopt.cma_es import SepCMAES
from spota.polopt.ppo import PPO
from spota.runs import plan, training
from spota.runs.certifying import describe_result
from spota.runs.config import ALGORITHMS, SOLVERS, Preset, Table, from_flags
from spota.runs.platforms import planned
from spota.text import duration, suggest

ALGORITHMS_AND_SPOTA = ("spota", *ALGORITHMS)
START = f"controller on {', '.join(FROM_CONTROLLER)}; new on the others"

MemoryFlag = Annotated[
    int | None,
    flag(
        "1", "N", about="Let the policy act on the last N observations and its own actions between them; references "
        "do, too."
    ),
]  # fmt: skip
RecurrentFlag = Annotated[
    int | None, flag("none", "UNITS", about="Give the network so many units that remember; references have them, too.")
]


def _names(settings: type) -> str:
    return ", ".join(f.name for f in fields(settings))


SET_HELP = (
    "Settings as NAME=VALUE. With spota a name has a table before it: --set spota.n_c=10 candidate.iterations=100 "
    f"reference.iterations=50. spota has {_names(Spota)}. The optimizers, and the other algorithms without a table "
    f"(--set iterations=200 learning_rate=1e-3): ppo, udr and epopt have {_names(PPO)}; "
    f"analytic has {_names(Analytic)}; cma has {_names(SepCMAES)}."
)

CONFIG_HELP = (
    "A TOML file with settings: env, algo, preset, solver and seed by name, and tables: [spota], [candidate] and "
    "[reference], or [optimizer] for the other algorithms. The config.toml of any run is one."
)


def train(
    env: Annotated[str | None, tyro.conf.Positional, positional("ENV")] = None,
    /,
    algo: Annotated[str | None, choice("spota", ALGORITHMS_AND_SPOTA)] = None,
    preset: Annotated[str | None, choice("tuned", get_args(Preset))] = None,
    solver: Annotated[str | None, choice("default", (*SOLVERS, "FILE.py:NAME"))] = None,
    beta: Annotated[float | None, flag(BETA, "RETURN")] = None,
    max_minutes: Annotated[float | None, flag("no limit", "MINUTES")] = None,
    domains: Annotated[int | None, flag("2000, or 10 for ppo, udr and epopt", "N")] = None,
    nominal: bool = False,
    domain: OtherTable = None,
    seed: SeedFlag = None,
    hidden: Annotated[tuple[int, ...], flag("32 32, or 16 16 for ppo, udr and epopt", "SIZE ...")] = (),
    memory: MemoryFlag = None,
    recurrent: RecurrentFlag = None,
    start: Annotated[str | None, choice(START, get_args(Start))] = None,
    config: Annotated[Path | None, flag("none", "FILE.toml", about=CONFIG_HELP)] = None,
    settings: Annotated[tuple[str, ...], flag("none", "NAME=VALUE ...", "set", SET_HELP)] = (),
    out: Annotated[Path | None, flag("runs/ENV-ALGO-TIME", "DIR")] = None,
    resume: ResumeFlag = None,
    on: OnFlag = None,
    tensorboard: bool = False,
    report: bool = True,
    json: bool = False,
) -> None:
    """Train a policy, and find out how much return it can lose on a domain that it has never seen.

    SPOTA trains candidates on random domains, compares each with references that were trained on other ones, and ends
    when the upper bound on the gap between them is at most β. The same command with the same --out, or --resume DIR
    alone, continues a run that was interrupted. The exit code is 0 with or without a certificate,
    and 1 if the page could not be written. Settings come
    from the preset, then from --config, then from the other flags.

    Args:
        env: The platform; `spota envs` lists them. One of your own is FILE.py:NAME, which executes that file.
        algo: spota (until certified), or once: default, analytic (gradients), ppo, udr (on fresh domains), epopt.
        preset: tuned (our settings), quick (for a first look), or paper (its numbers and interval).
        solver: What solves for candidates and references inside spota; one of your own is FILE.py:NAME.
        beta: The threshold of spota: the loss of return, on average, that is accepted.
        max_minutes: spota begins no iteration that would last longer than this, judging by the one before.
        domains: How many random training domains; not for spota, which has spota.n_c.
        nominal: Train on the nominal domain only, as often as there would be random ones; not for spota.
        hidden: Sizes of the network's hidden layers.
        start: What the network is before it is trained: new, or an imitation of the platform's classical controller.
        out: The run directory, with the policy, its certificate and every finished step.
        report: Write the page report.html of spota after every iteration and at the end.
        tensorboard: Write curves for TensorBoard, too.
        json: Print one JSON document instead of words; progress stays on standard error.
    """
    file, directory = settings_file(config, out, resume)
    name = _algorithm(algo, env, file)
    flags = {"env": env, "domain": named_table(domain), "algo": name, "preset": preset, "seed": seed}
    once = {"domains": domains, "nominal": nominal or None}
    if name == "spota":
        _refuse(once, "spota: write e.g. --set spota.n_c=10")
        told = plan.flag_tables(beta, max_minutes, hidden, memory=memory, recurrent=recurrent)
        flags |= {"solver": solver, "tasks": tasks_on(on)}
        chosen = plan.resolve(file, flags, _layers(settings, told, start))
        with engine_on(on, chosen.tasks) as engine:
            return _until_certified(chosen, directory, tensorboard, report, json, engine)
    for_spota = {"solver": solver, "beta": beta, "max-minutes": max_minutes, "on": on}
    _refuse(for_spota, f"{name}: it is for --algo spota")
    network = {"hidden": hidden or None, "memory": memory, "recurrent": recurrent, "start": start}
    flags |= {**once, **network, "optimizer": from_flags(settings)}
    return _once(training.resolve(file, flags), directory, tensorboard, json)


def _layers(settings: tuple[str, ...], told: Table, start: str | None) -> Sequence[plan.Layer]:
    """What the flags say about SPOTA, each with its name."""
    layers = [("--set", from_flags(settings)), ("the flags", told)]
    return [*layers, ("--start", {"spota": {"start": start}})] if start else layers


def _algorithm(algo: str | None, env: str | None, file: Path | None) -> str:
    """What is to be trained with; a file may say it, and the platform, too."""
    from_file = told_by(file)
    if env is None and "env" not in from_file:
        raise ValueError("Which platform? Write e.g. spota train cart-pole; `spota envs` lists them.")
    name = algo or from_file.get("algo", "spota")
    if name == "assess":
        again = command("assess", "--config", file) if file else "spota assess POLICY"
        raise ValueError(f"{file or '--algo assess'} belongs to an assessment; write {again}.")
    if name not in ALGORITHMS_AND_SPOTA:
        where = "--algo" if algo else file
        raise ValueError(f"{where}: there is no algorithm {name!r}; {suggest(str(name), ALGORITHMS_AND_SPOTA)}")
    return name


def _refuse(given: dict[str, Any], why: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"--{name} has no meaning for --algo {why}.")


def _until_certified(
    chosen: plan.Plan, out: Path | None, tensorboard: bool, report: bool, json: bool, engine: Engine | None
) -> None:
    env = planned(chosen, out)
    directory = run_directory(out, f"{env.name}-spota", tensorboard)
    display = shown(directory, chosen.algo, env, chosen.spota.beta, tensorboard)
    done = drive(chosen, env, directory, display, engine=engine, page=report, warn=warn, page_bar=bar("the page"))
    for warning in done.beside.warnings if done.beside else []:
        warn(warning)
    if json:
        print_json(plain({**describe_result(chosen, done.result, done.beside), "directory": directory}))
    else:
        rival = f"{done.beside}\n" if done.beside else ""
        ending = f"{rival}{_ending(done.result, directory)}\n{_next_steps(chosen.env, directory)}"
        say(f"{done.result.certificate}\n{ending}{told_of_page(done.page)}", console)
    end(done.page, wanted=report)


def _once(chosen: training.Training, out: Path | None, tensorboard: bool, json: bool) -> None:
    env = planned(chosen, out)
    directory = run_directory(out, f"{env.name}-{chosen.algo}", tensorboard)
    trained = drive_training(chosen, directory, shown(directory, chosen.algo, env, None, tensorboard), warn=warn)
    for warning in trained.warnings:
        warn(warning)
    if json:
        print_json(plain({**trained.to_dict(), "directory": directory}))
        return
    say(f"{trained}\n{_next_steps(chosen.env, directory)}", console)


def _ending(result: Result, directory: Path) -> str:
    """How the run ended, and what to do about it."""
    n = len(result.history)
    iterations = f"{n} iteration{'s' if n > 1 else ''} and {duration(result.seconds)}"
    if result.reason == "certified":
        return f"It took {iterations}."
    more = ("--set", f"spota.max_iterations={2 * n}") if result.reason == "max_iterations" else ("--max-minutes", "60")
    return (
        f"It stopped after {iterations} without reaching the threshold; the policy of iteration {result.iteration}, "
        f"which has the lowest bound, is kept. To go on from here, or accept more loss with --beta and a new --out:\n"
        f"  {command('train', *going_on(directory), *more)}"
    )


def _next_steps(env: str, directory: Path) -> str:
    from spota.show.animation import ANIMATED  # slow to import

    rollout, play = (command(name, env, "--policy", directory) for name in ("rollout", "play"))
    if env not in ANIMATED:
        return f"The policy is in {directory}. Run it on 500 random domains:\n  {rollout}"
    return f"The policy is in {directory}. Run it on 500 random domains, and see it move:\n  {rollout}\n  {play}"
