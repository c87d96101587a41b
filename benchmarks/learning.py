"""What every solver reaches on domains that it has never seen, over seeds: a table for docs/results.md.

Exactly what `spota train ENV --algo ALGO --seed SEED` does: the solver's usual number of training domains unless told
another, the platform's usual start, evaluation with the mean policy and observation noise on 500 unseen domains, beside
the platform's own controller on the same ones.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.truth import WIDE
from spota.cluster.calls import called
from spota.cluster.connecting import engine_on, tasks_on
from spota.cluster.engine import Engine
from spota.runs import training
from spota.runs.config import to_dict
from spota.runs.directory import Run

CASES = (
    ("ball-balancer", "default"),
    ("cart-pole", "default"),
    ("cart-pole", "ppo"),
    ("cart-pole-swing-up", "default"),
    ("qube", "default"),
    ("qube-swing-up", "default"),
)
SEEDS = (0, 1, 2)
COLUMNS = (
    "platform", "solver", "seed", "own", "unseen", "worst 20 %", "survived", "controller", "gain", "iterations",
    "seconds",
)  # fmt: skip


def main(
    platforms: Sequence[str] = (), seeds: Sequence[int] = SEEDS, on: str | None = None, domains: int | None = None
) -> None:
    """Train on all platforms, or on those named: one after the other or, on workers, side by side."""
    few = "" if domains is None else f" --domains {domains}"
    table = Table(title=f"500 unseen random domains after `spota train ENV --algo ALGO{few}`")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("platform", "solver") else "right")
    cases = [(env, algo, seed, domains) for env, algo in CASES if not platforms or env in platforms for seed in seeds]
    with engine_on(on, tasks_on(on)) as engine:
        for (env, algo, seed, _), found in zip(cases, _all(engine, cases), strict=True):
            table.add_row(env, algo, str(seed), *found)
    Console(width=WIDE).print(table)


def _all(engine: Engine | None, cases: Sequence[tuple[str, str, int, int | None]]) -> list[tuple[str, ...]]:
    """The figures of every case."""
    if engine is None:
        return [figures(*case) for case in cases]
    names = {" ".join(map(str, case)): case for case in cases}
    found = dict(called(engine, figures, names, Console(stderr=True).print))
    return [found[name] for name in names]


def figures(env: str, algo: str, seed: int, domains: int | None = None) -> tuple[str, ...]:
    """A row of the table."""
    settings = training.resolve(None, {"env": env, "algo": algo, "seed": seed, "domains": domains})
    with tempfile.TemporaryDirectory() as folder, Run(Path(folder) / "run", to_dict(settings)) as run:
        found = training.train(settings, run).to_dict()
    unseen, controller = found["unseen_domains"], found["controller"]
    returns = (found["own_domains"]["mean"], unseen["mean"], unseen["worst_20_mean"])
    share = f"{100 * unseen['survival']:.1f} %"
    beside = (f"{controller['mean']:.0f}", f"{controller['gain']:.0f} ± {2 * controller['gain_standard_error']:.0f}")
    return *(f"{r:.0f}" for r in returns), share, *beside, str(found["iterations"]), f"{found['seconds']:.0f}"
