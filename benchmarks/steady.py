"""Does a certificate depend on the seed? One policy, assessed with ten seeds: `spota assess POLICY --preset PRESET`.

The policy is the one of a run of `benchmarks truth`, or a controller. What the best policy known earns more than it on
5000 shared unseen domains stands beside: no bound may be less, and the references should win as much.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.truth import DIRECTORY, WIDE, best_known, run_of
from benchmarks.yardstick import unseen_returns
from spota.api import identity
from spota.certify.certificate import Certificate
from spota.envs import make
from spota.policies import find
from spota.runs.certifying import run_assessment
from spota.runs.directory import Run
from spota.runs.plan import resolve
from spota.sim.env import Platform

SEEDS = tuple(range(200, 210))
PRESETS = ("quick", "tuned")
POLICY_SEED = 100
"""The run of `benchmarks truth` whose policy is assessed unless one is named."""
SHARED = 5000
COLUMNS = (
    "platform", "policy", "preset", "bounds", "largest / smallest", "verdicts", "mean gaps", "best known earns more",
    "minutes each",
)  # fmt: skip


def main(
    platforms: Sequence[str] = (), presets: Sequence[str] = (), seeds: Sequence[int] = (), policy: str | None = None
) -> None:
    """The Cart-Pole or the platforms named, with both presets or those named, our seeds or others, and a controller."""
    table = Table(title="One policy, many seeds")
    for column in COLUMNS:
        table.add_column(column)
    for name in platforms or ("cart-pole",):
        env = make(name)
        its_policy = run_of(env.name, "quick", POLICY_SEED).policy if policy is None else find(policy, env)
        told = policy or f"quick {POLICY_SEED}"
        best, its = (unseen_returns(env, one)[:SHARED] for one in (best_known(env), its_policy))
        more = f"{(best - its).mean():.1f} ± {(best - its).std() / SHARED**0.5:.1f}"
        for preset in presets or PRESETS:
            found = [assessed(env, its_policy, told, preset, seed) for seed in seeds or SEEDS]
            table.add_row(name, told, preset, *_figures([c for c, _ in found]), more, _minutes([s for _, s in found]))
    Console(width=WIDE).print(table)


def _figures(found: Sequence[Certificate]) -> tuple[str, ...]:
    bounds = np.array([c.ucbog for c in found])
    verdicts = Counter(c.verdict for c in found)
    return (
        ", ".join(f"{b:.1f}" for b in bounds), f"{bounds.max() / bounds.min():.2f}",
        ", ".join(f"{verdict} {times}" for verdict, times in verdicts.items()),
        ", ".join(f"{c.mean_gap:.1f}" for c in found),
    )  # fmt: skip


def _minutes(seconds: Sequence[float]) -> str:
    return f"{np.mean(seconds) / 60:.1f}"


def assessed(env: Platform, policy: Any, name: str, preset: str, seed: int) -> tuple[Certificate, float]:
    """One assessment in its directory, and the seconds that it took."""
    told = {"policy": name, "policy_sha256": identity(policy, env)}
    plan = resolve(None, {"env": env.name, "algo": "assess", "preset": preset, "seed": seed, **told})
    directory = DIRECTORY / f"steady-{env.name}-{name.replace(' ', '-')}-{preset}-{seed}"
    with Run(directory, plan.table()) as run:
        found = run_assessment(plan, env, policy, run)
    Console().print(f"{directory}: {found.certificate.sentence} {found.seconds:.0f} s")
    return found.certificate, found.seconds
