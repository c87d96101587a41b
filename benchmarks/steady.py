"""Does a certificate depend on the seed? One policy, assessed with ten seeds: `spota assess POLICY --preset PRESET`."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.truth import DIRECTORY, run_of
from spota.api import identity
from spota.certify.certificate import Certificate
from spota.envs import make
from spota.runs.certifying import run_assessment
from spota.runs.directory import Run
from spota.runs.plan import resolve

SEEDS = tuple(range(200, 210))
PRESETS = ("quick", "tuned")
POLICY_SEED = 100
"""The run of `benchmarks truth` whose policy is assessed."""


def main(platforms: Sequence[str] = (), presets: Sequence[str] = (), seeds: Sequence[int] = ()) -> None:
    """The Cart-Pole or the platforms named, with both presets or those named, and our seeds or others."""
    table = Table(title="One policy, many seeds")
    for column in ("platform", "preset", "bounds", "largest / smallest", "verdicts", "minutes each"):
        table.add_column(column)
    for name in platforms or ("cart-pole",):
        env = make(name)
        policy = run_of(env, "quick", POLICY_SEED).policy
        for preset in presets or PRESETS:
            found = [_assessed(env, policy, preset, seed) for seed in seeds or SEEDS]
            bounds = np.array([c.ucbog for c, _ in found])
            verdicts = Counter(c.verdict for c, _ in found)
            table.add_row(
                name, preset, ", ".join(f"{b:.1f}" for b in bounds), f"{bounds.max() / bounds.min():.2f}",
                ", ".join(f"{verdict} {times}" for verdict, times in verdicts.items()),
                f"{np.mean([seconds for _, seconds in found]) / 60:.1f}",
            )  # fmt: skip
    Console().print(table)


def _assessed(env, policy, preset: str, seed: int) -> tuple[Certificate, float]:
    told = {"policy": f"quick {POLICY_SEED}", "policy_sha256": identity(policy, env)}
    plan = resolve(None, {"env": env.name, "algo": "assess", "preset": preset, "seed": seed, **told})
    directory = DIRECTORY / f"steady-{env.name}-{preset}-{seed}"
    with Run(directory, plan.table()) as run:
        found = run_assessment(plan, env, policy, run)
    Console().print(f"{directory}: {found.certificate.sentence} {found.seconds:.0f} s")
    return found.certificate, found.seconds
