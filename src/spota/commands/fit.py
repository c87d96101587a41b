"""`spota fit`: from recordings of one machine to a table that covers it."""

import shlex
from pathlib import Path
from typing import Annotated

import tyro

from spota.commands.output import command, console, print_json, print_table, say, warn
from spota.commands.progress import bar
from spota.commands.recordings import read_recordings
from spota.commands.running import flag
from spota.commands.sources import OtherTable
from spota.envs import make
from spota.files.atomic import plain
from spota.fit.fitting import Fit, Settings, describe
from spota.fit.fitting import fit as learn
from spota.fit.prior import prior
from spota.runs.directory import Run, new_directory
from spota.sim.env import Platform


def fit(
    recordings: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RECORDING ...")],
    /,
    env: Annotated[str, tyro.conf.arg(metavar="ENV")],
    domain: OtherTable = None,
    widen: Annotated[tuple[str, ...], flag("none", "NAME=LOW:HIGH|NAME=FACTOR|FACTOR ...")] = (),
    held_out: float = 0.4,
    prior_share: float = 0.0,
    warm_up: Annotated[int, tyro.conf.arg(name="warm-up")] = Settings.warm_up,
    draws: int = Settings.draws,
    seed: int = 0,
    out: Annotated[Path | None, flag("runs/fit-ENV", "DIR")] = None,
    json: bool = False,
) -> None:
    """Learn from recordings which machine it is: a table of the machines that could have made them.

    What is believed beforehand is the platform's table, with the friction that it leaves out, wider where you say so.
    The best machine is found by Levenberg-Marquardt through the simulator, and the machines around it by NUTS, four
    chains; whole-step delays are enumerated. What the simulator cannot do is taken for errors that last, and held-out
    recordings decide whether that serves them better than independent ones. The table has whole rows, so that what is
    known only in combination stays together. The same command with the same --out continues what was interrupted.

    Then: spota assess RUN --domain DIR, spota train ENV --domain DIR.

    Args:
        recordings: Files, .npz or .csv, see docs/recordings.md; or recordings of real machines that come with spota,
            e.g. "sample:cart-pole/chirp*".
        env: The platform; FILE.py:NAME is one of your own, written in jax.
        domain: Another table to begin with: a file (`spota envs ENV --write` writes one) or a fit.
        widen: Where the prior is wider than the table: pole_length=0.05:0.3 from there to there, pole_length=3 three
            times as wide, 2 everything twice as wide. What is physically impossible stays so.
        held_out: The share of the recordings that is not fitted but predicted; of a single one, its last part.
        prior_share: The share of rows that come from the prior, for who does not trust the fit alone.
        warm_up: Draws of each chain that are thrown away.
        draws: Draws of each chain that are kept: four times as many rows.
        seed: The same seed gives the same table.
        out: The directory of the fit.
        json: Print one JSON document instead of words.
    """
    platform = make(env, domain=domain)
    found = read_recordings(recordings, platform)
    settings = Settings(widen, held_out, prior_share, warm_up, draws, seed)
    prior(platform, widen)  # which refuses what cannot be, before there is a directory
    directory = out or new_directory(Path("runs") / f"fit-{platform.name}")
    config = {"env": env, "algo": "fit", "domain": str(domain or ""), "recordings": [r.sha256 for r in found]}
    with Run(directory, {**config, **vars(settings)}, warn=warn) as run, bar("the machine") as show:
        show("the machine", 0.0)
        result = learn(platform, found, settings, run)
        page = _page(result, directory, _again(recordings, env, widen, directory))
    for warning in result.warnings:
        warn(warning)
    if json:
        print_json(plain({**describe(result, found, settings), "directory": directory, "page": page}))
        return
    _print(platform, result, directory, page)


def _again(recordings: tuple[str, ...], env: str, widen: tuple[str, ...], directory: Path) -> str:
    wider = ["--widen", *widen] if widen else []
    return command("fit", *map(shlex.quote, recordings), "--env", env, *wider, "--out", directory)


def _page(result: Fit, directory: Path, again: str) -> Path:
    from spota.show.pages import write_fit  # slow to import

    return write_fit(result, directory / "fit.html", again)


def _print(env: Platform, result: Fit, directory: Path, page: Path) -> None:
    rows = [
        (row.name, f"{row.prior_mean:.4g} ± {row.prior_std:.2g}", f"{row.mean:.4g} ± {row.std:.2g}", row.unit,
         f"{100 * row.ratio:.0f} %", row.at_edge and f"at its {row.at_edge} end")
        for row in result.learned
    ]  # fmt: skip
    head = ("parameter", "before", "after", "unit", "spread left", "")
    print_table(f"{env.name}: what {len(result.fitted)} recordings tell about the machine", head, rows)
    for combination in result.combinations:
        say(f"Only together: {combination}.", console)
    held = result.held_out
    rows = [
        (name, f"{error:.3g} {unit}", f"{nominal:.3g} {unit}", f"{100 * share:.0f} %")
        for (name, unit), error, nominal, share in zip(
            held.signals, held.error, held.nominal_error, held.coverage, strict=True
        )
    ]
    head = ("signal", "error after half a second's prediction", "with nominal values", "in the 90 % bands")
    print_table(f"{held.segments} half seconds that were not fitted, predicted from where they began", head, rows)
    s = result.sampled
    say(
        f"Four chains: R-hat {s.r_hat:.3f}, {s.divergences} divergences, at least {s.effective:.0f} independent draws.",
        console,
    )
    train, assess = command("train", env.name, "--domain", directory), command("assess", "RUN", "--domain", directory)
    say(f"The table is in {directory}, its page is {page}. Go on with:\n  {train}\n  {assess}", console)
