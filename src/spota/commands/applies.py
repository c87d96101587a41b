"""`spota applies`: whether a certificate, or a table, speaks of the machine that was recorded."""

import sys
from pathlib import Path
from typing import Annotated

import jax
import tyro

from spota.commands.output import command, console, print_json, print_table, say
from spota.commands.progress import bar
from spota.commands.recordings import read_recordings
from spota.commands.sources import OtherTable
from spota.envs import PLATFORMS, make
from spota.files.atomic import plain, write_json
from spota.fit.covering import MACHINES
from spota.fit.covering import applies as look_at
from spota.fit.verdict import FILE, Coverage
from spota.runs.config import read_toml
from spota.runs.directory import CONFIG
from spota.runs.platforms import platform_of
from spota.sim.env import Platform
from spota.sim.objects import is_reference

NOT_COVERED = 1
"""The exit code if the machine is not one of the table."""


def applies(
    subject: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_OR_ENV")],
    recordings: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RECORDING ...")],
    /,
    domain: OtherTable = None,
    machines: int = MACHINES,
    seed: int = 0,
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: the run, or runs/applies-ENV)")
    ] = None,
    json: bool = False,
) -> None:
    """Find out whether recordings come from a machine of a table: whether a certificate speaks of yours.

    The recordings are cut into half seconds, and each is simulated again from where it began, with the recorded
    commands. One machine must explain them all. Where it lies is compared with where the table's machines lie; what
    scatter is usual comes from machines of the table that are simulated with the same commands and estimated in the
    same way. The answer is covered, not covered, or not enough excitation to tell. If a run is given and its table does
    not cover the machine, its certificate is void for this machine, and its page says so. The exit code is 1 if the
    machine is not covered.

    Args:
        subject: A run directory, whose table is asked about; or a platform, FILE.py:NAME included.
        recordings: Files, .npz or .csv, see docs/recordings.md; or recordings of real machines that come with spota,
            e.g. sample:cart-pole/chirp+3.5V-0, or all of them: "sample:cart-pole/chirp*".
        domain: Another table of distributions: a file (`spota envs ENV --write` writes one; .npz has rows), a fit, or
            a run that has one.
        machines: How many machines of the table are simulated for comparison.
        seed: The same seed gives the same answer.
        out: Where applies.json and the picture applies.png go.
        json: Print one JSON document instead of words.
    """
    if machines < 39:
        raise ValueError(f"--machines {machines}: at least 39 are needed to refuse anything at 3 %.")
    env, run = _asked(subject, domain)
    found = read_recordings(recordings, env)
    with bar("segments, simulated again") as show:
        show("segments, simulated again", 0.0)
        coverage = look_at(jax.random.key(seed), env, found, machines)
    files = _write(coverage, out or run or Path("runs") / f"applies-{env.name}")
    if json:
        print_json(plain({**coverage.to_dict(), "files": files}))
    else:
        _print(env, coverage, run, files)
    if coverage.answer == "not covered":
        sys.exit(NOT_COVERED)


def _asked(subject: str, domain: Path | None) -> tuple[Platform, Path | None]:
    """The platform with the table that is asked about, and the run if it is one."""
    if subject in PLATFORMS or is_reference(subject):
        return make(subject, domain=domain), None
    run = Path(subject)
    if not (run / CONFIG).is_file():
        raise ValueError(
            f"{subject} is neither a platform ({', '.join(PLATFORMS)}) nor a run directory; write e.g. spota applies "
            "cart-pole chirp.npz, or spota applies runs/a chirp.npz."
        )
    settings = read_toml(run / CONFIG)
    if domain is None:
        return platform_of(run, settings), run
    return make(str(settings["env"]), domain=domain), None


def _write(coverage: Coverage, place: Path) -> list[str]:
    files = [str(write_json(place / FILE, coverage.to_dict()))]
    if coverage.bands:
        from spota.show.fit_plots import coverage_figure, save_figure  # slow to import

        files.append(str(save_figure(coverage_figure(coverage), place / "applies.png")))
    return files


def _print(env: Platform, coverage: Coverage, run: Path | None, files: list[str]) -> None:
    say(str(coverage), console)
    if coverage.explained:
        rows = [
            (e.name, f"{e.moved:.3g} {e.unit}", f"{e.left:.2g} {e.unit}", f"{100 * e.share:.2f} %",
             f"{100 * coverage.outside[e.name]:.0f} %" if e.name in coverage.outside else "–")
            for e in coverage.explained
        ]  # fmt: skip
        head = ("signal", "moves by", "unexplained", "explained", "outside the table's band")
        print_table(f"{env.name}: what the best machine of any kind explains, and what the table allows", head, rows)
    if coverage.evidence:
        rows = [
            (e.name, f"{e.near:.4g}", f"{e.low:.4g} … {e.high:.4g}", e.unit, f"{e.score:+.1f}",
             f"{100 * e.spread:.0f} %",
             "speaks against" if e.speaks_against else ("" if e.seen else "hardly seen"))
            for e in coverage.evidence
        ]  # fmt: skip
        head = ("parameter", "near", "the table", "unit", "score", "spread left", "")
        print_table("Where the machine seems to be", head, rows)
    if coverage.answer == "not covered" and run is not None:
        say(f"The certificate of {run} is void for this machine; spota report {run} says so.", console)
    if coverage.answer == "not covered" and coverage.evidence:
        names = [name for name, _ in coverage.recordings[:1]]
        again = command("fit", *names, "--env", env.name, "--widen", f"{coverage.evidence[0].name}=3", "--out", "fit")
        say(f"Learn a table that covers it:\n  {again}", console)
    say(f"Wrote {' and '.join(files)}.", console)
