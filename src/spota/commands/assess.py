"""`spota assess`: a certificate for a policy that exists already."""

from pathlib import Path
from typing import Annotated, Any, get_args

import tyro

from spota.api import identity, named_in_plan
from spota.certify.assessment import Assessment
from spota.cluster.connecting import engine_on, tasks_on
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
from spota.commands.sources import (
    OtherTable,
    Words,
    contestants,
    named_table,
    platform_named,
    table_named,
    warn_of_clipping,
    with_contract,
)
from spota.driver import Assessing, drive_assessment
from spota.files.atomic import plain
from spota.runs import plan
from spota.runs.certifying import describe_assessment
from spota.runs.config import SOLVERS, Preset, from_flags
from spota.sim.env import Platform, Policy
from spota.sim.table_file import KEPT
from spota.text import duration

SET_HELP = (
    "Settings as TABLE.NAME=VALUE, e.g. --set spota.n_r=10 reference.iterations=50 candidate.iterations=300; `spota "
    "train --help` has the names."
)


def assess(
    policy: Annotated[str | None, tyro.conf.Positional, positional("POLICY")] = None,
    /,
    env: Annotated[str | None, flag("the policy file's own", "ENV")] = None,
    contract: Words = (),
    preset: Annotated[str | None, choice("tuned", get_args(Preset))] = None,
    solver: Annotated[str | None, choice("default", (*SOLVERS, "FILE.py:NAME"))] = None,
    beta: Annotated[float | None, flag(BETA, "RETURN")] = None,
    max_minutes: Annotated[float | None, flag("no limit", "MINUTES")] = None,
    against: Annotated[tuple[str, ...], flag("none", "POLICY ...")] = (),
    domain: OtherTable = None,
    seed: SeedFlag = None,
    config: Annotated[Path | None, flag("none", "FILE.toml")] = None,
    settings: Annotated[tuple[str, ...], flag("none", "NAME=VALUE ...", "set", SET_HELP)] = (),
    out: Annotated[Path | None, flag("runs/ENV-assess-TIME", "DIR")] = None,
    resume: ResumeFlag = None,
    on: OnFlag = None,
    tensorboard: bool = False,
    report: bool = True,
    json: bool = False,
) -> None:
    """Find out how much return a policy can lose on a domain that it has never seen, wherever it comes from.

    References are trained on random domains and compared with the policy there. As it may be far from the best, they
    have the effort of a training from scratch in every preset, and each starts, on its own domains, from the best of:
    the policy (or a network that imitates it), a candidate of our own, and the policies that you name with --against.
    A quarter of them is trained three times as long; what that gains is added to the bound as its effort margin. The
    same command with the same --out, or --resume DIR alone, continues what was interrupted. A verdict is certified,
    refuted (a better policy exists) or undecided, and the exit code 0. While it is undecided more references join.

    Args:
        policy: A run directory, a policy or ONNX file, a controller (pd, lqr, energy), or FILE.py:NAME, which is run.
        env: The platform, or FILE.py:NAME; a policy file knows it, a controller does not.
        preset: tuned (our settings), quick (for a first look), or paper (the paper's numbers and interval).
        solver: What trains the references, not our own candidate; one of your own, FILE.py:NAME, trains both.
        beta: The threshold: the loss of return, on average, that is accepted.
        max_minutes: No references join that would be trained longer than this; the first ones are in any case.
        against: Policies that you know, e.g. --against runs/a lqr: no reference starts from anything worse on its
            domains. What is not a network of the policy's size is imitated.
        config: A TOML file with settings; the config.toml of any assessment is one.
        out: The run directory.
        report: Write the page report.html, too.
        tensorboard: Write curves for TensorBoard into the run directory, too.
        json: Print one JSON document instead of words; progress stays on standard error.
    """
    file, directory = settings_file(config, out, resume)
    flags, platform, found, known = _sources(policy, against, env, domain, file, contract)
    flags |= {"algo": "assess", "preset": preset, "solver": solver, "seed": seed, "tasks": tasks_on(on)}
    given = plan.flag_tables(beta, max_minutes)
    chosen = plan.resolve(file, flags, [("--set", from_flags(settings)), ("the flags", given)])
    with engine_on(on, chosen.tasks) as engine:
        directory = run_directory(directory, f"{platform.name}-assess", tensorboard)
        display = shown(directory, chosen.algo, platform, chosen.spota.beta, tensorboard)
        done = drive_assessment(
            chosen, platform, found, directory, display,
            against=known, engine=engine, page=report, warn=warn, page_bar=bar("the page"),
        )  # fmt: skip
    _tell(done, chosen, directory, json)
    end(done.page, wanted=report)


def _sources(
    policy: str | None,
    against: tuple[str, ...],
    env: str | None,
    domain: Path | None,
    file: Path | None,
    contract: tuple[str, ...],
) -> tuple[dict[str, Any], Platform, Policy, dict[str, Policy]]:
    """What a plan says about the policy and the known ones; the platform, the policy, and the known ones by name."""
    from_file = told_by(file)
    source = policy or from_file.get("policy")
    if not source:
        raise ValueError("Which policy? Write e.g. spota assess policy.npz, or spota assess lqr --env cart-pole.")
    others = against or tuple(from_file.get("against", ()))
    source, *others = with_contract([source, *others], contract)
    where = platform_named([source, *others], env or from_file.get("env"))
    going_on = domain is None and "domain" in from_file
    kept = file.parent if file and (file.parent / KEPT).is_file() else Path(from_file.get("domain", ""))
    table = kept if going_on else table_named([source, *others], where, domain)
    platform, named = contestants([source, *others], where, domain=table or Path(where))
    found, *rest = named.values()
    known = dict(zip(others, rest, strict=True))
    warn_of_clipping(platform, {source: found, **known})
    about = {
        "env": where,
        "domain": None if going_on else named_table(table),
        "policy": source,
        "policy_sha256": identity(found, platform),
    }
    return {**about, **named_in_plan(known, platform)}, platform, found, known


def _tell(done: Assessing, chosen: plan.Plan, directory: Path, json: bool) -> None:
    if json:
        print_json(plain({**describe_assessment(chosen, done.assessment), "directory": directory}))
    else:
        say(f"{_summary(done.assessment, directory)}{told_of_page(done.page)}", console)


def _summary(assessment: Assessment, directory: Path) -> str:
    c = assessment.certificate
    more = "" if c.verdict != "undecided" else (
        f"\nMore references make the bound tighter: {command('assess', *going_on(directory), '--set')} "
        f"spota.looks={c.looks + 2}. More domains each (spota.n_r=100) or more loss (--beta) need a new --out."
    )  # fmt: skip
    return f"{assessment.certificate}{more}\nIt took {duration(assessment.seconds)}; the certificate is in {directory}."
