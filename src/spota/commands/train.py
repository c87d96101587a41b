"""`spota train`: train a policy and keep it in a run directory."""

import time
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tyro
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from spota import training
from spota.commands.output import console, print_json, progress_console
from spota.config import Preset, from_flags, to_dict
from spota.files import plain
from spota.polopt import solve
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.run import Run, new_directory

Algorithm = Literal["default", "ppo", "udr", "epopt", "analytic"]
SET_HELP = (
    "Settings of the optimizer as NAME=VALUE, e.g. --set iterations=200 learning_rate=1e-3. "
    f"ppo, udr and epopt have {', '.join(f.name for f in fields(PPO))}; "
    f"analytic has {', '.join(f.name for f in fields(Analytic))}."
)


def _flag(default: str, metavar: str, name: str | None = None, about: str | None = None) -> Any:
    """A flag that is None when it is not given, because a file may give it; the help names the default."""
    return tyro.conf.arg(name=name, metavar=metavar, help=about, help_behavior_hint=f"(default: {default})")


def train(
    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")],
    /,
    algo: Annotated[Algorithm | None, _flag("default", f"{{{','.join(get_args(Algorithm))}}}")] = None,
    domains: Annotated[int | None, _flag("10", "N")] = None,
    nominal: bool = False,
    seed: Annotated[int | None, _flag("0", "N")] = None,
    preset: Annotated[Preset | None, _flag("tuned", "{tuned,paper}")] = None,
    config: Annotated[Path | None, _flag("none", "FILE.toml")] = None,
    settings: Annotated[tuple[str, ...], _flag("none", "NAME=VALUE ...", "set", SET_HELP)] = (),
    hidden: Annotated[tuple[int, ...], _flag("16 16", "SIZE ...")] = (),
    out: Annotated[Path | None, _flag("runs/ENV-ALGO-TIME", "DIR")] = None,
    json: bool = False,
) -> None:
    """Train a policy on random domains and evaluate it on 500 others that it has never seen.

    Settings come from the preset, then from --config, then from the other flags. The same command with the same --out
    continues a run that was interrupted, and shows one that is finished.

    Args:
        env: The platform; `spota envs` lists them.
        algo: default (the platform's best solver), ppo, udr (PPO on fresh random domains in every iteration),
            epopt (PPO on the worst rollouts), or analytic (gradients through the simulator).
        domains: How many random training domains.
        nominal: Train on the nominal domain only, as often as there would be random ones.
        seed: The same seed gives the same result.
        preset: tuned (our settings) or paper (the paper's, for ppo, udr and epopt).
        config: A TOML file with settings: these flags by name, and a table [optimizer]. The config.toml of any run
            is one.
        hidden: Sizes of the network's hidden layers.
        out: The run directory.
        json: Print one JSON document instead of words; progress stays on standard error.
    """
    flags = {"env": env, "algo": algo, "domains": domains, "nominal": nominal or None, "seed": seed, "preset": preset}
    chosen = training.resolve(config, {**flags, "hidden": hidden or None, "optimizer": from_flags(settings)})
    directory = out or new_directory(Path("runs") / f"{env}-{chosen.algo}-{time.strftime('%Y%m%d-%H%M%S')}")
    with Run(directory, to_dict(chosen), warn=_warn) as run:
        try:
            with Live(chosen.algo) as live:
                trained = training.train(chosen, run, live.show)
        except KeyboardInterrupt:
            _say_what_is_left(directory)
            raise
    for warning in trained.warnings:
        _warn(warning)
    if json:
        print_json(plain({**trained.to_dict(), "directory": directory}))
        return
    where = f"The policy is in {directory}; run it with: spota rollout {env} --policy {directory}"
    console.print(f"{trained}\n{where}", soft_wrap=True, markup=False)


class Live:
    """A line on standard error that follows the training."""

    def __init__(self, title: str):
        """Before the first iteration, while the program is compiled."""
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[figures]}"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=progress_console, transient=True)
        self._task: TaskID = self._progress.add_task(title, total=None, figures="compiling …")

    def __enter__(self) -> "Live":
        """Show the line."""
        self._progress.start()
        return self

    def __exit__(self, *_: object):
        """Take the line away."""
        self._progress.stop()

    def show(self, now: solve.Progress):
        """Bring the line up to date."""
        speed = self._progress.tasks[0].speed or 0.0
        figures = (
            f"{now.iteration}/{now.iterations}  return {now.returns.mean():.1f}  best {now.best.mean():.1f}  "
            f"survived {100 * now.survival.mean():.0f} %  {speed * now.steps / 1e6:.2f} M steps/s"
        )
        self._progress.update(self._task, total=now.iterations, completed=now.iteration, figures=figures)


def _warn(text: str) -> None:
    progress_console.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


def _say_what_is_left(directory: Path) -> None:
    names = sorted(p.name for p in directory.iterdir() if not p.name.startswith("."))
    policy = "the policy is the best so far" if "policy.npz" in names else "no policy yet"
    progress_console.print(
        f"{directory} has {', '.join(names)}: {policy}. The same command with --out {directory} goes on.",
        soft_wrap=True,
        markup=False,
    )
