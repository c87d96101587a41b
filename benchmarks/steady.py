"""Does a certificate depend on the seed? One policy, assessed with ten seeds: `spota assess POLICY --preset PRESET`.

The policy is the one of a run of `benchmarks truth`, or a controller. What the best policy known earns more than it on
5000 shared unseen domains stands beside: no bound may be less, and the references should win as much. A controller is
far from the best, and what counts is whether the references find that: they are not trained longer to see what they
would still gain, and what the best policy known earns more on the references' own domains stands beside their gap.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.truth import DIRECTORY, WIDE, best_known, run_of
from benchmarks.yardstick import UNSEEN_SEED, unseen_returns
from spota.api import identity
from spota.certify.certificate import Certificate
from spota.certify.comparison import returns_everywhere
from spota.envs import make
from spota.files.blocks import Arrays
from spota.policies import CONTROLLERS, find
from spota.runs.certifying import run_assessment
from spota.runs.directory import Run
from spota.runs.plan import resolve
from spota.sim.env import Platform

SEEDS = tuple(range(200, 210))
PRESETS = ("quick", "tuned")
POLICY_SEED = 100
"""The run of `benchmarks truth` whose policy is assessed unless one is named."""
SHARED = 5000
DOMAIN = "domain."
ROLLOUTS = 10
"""On each domain of the references."""
COLUMNS = (
    "platform", "policy", "preset", "bounds", "largest / smallest", "verdicts", "mean gaps",
    "best known, same domains", "best known earns more", "minutes each",
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
        best = best_known(env)
        more = np.subtract(*(unseen_returns(env, one)[:SHARED] for one in (best, its_policy)))
        known = f"{more.mean():.1f} ± {more.std() / SHARED**0.5:.1f}"
        for preset in presets or PRESETS:
            found = [assessed(env, its_policy, best, told, preset, seed) for seed in seeds or SEEDS]
            table.add_row(name, told, preset, *_figures(found), known, _minutes(found))
    Console(width=WIDE).print(table)


@dataclass(frozen=True)
class Found:
    """One assessment."""

    certificate: Certificate
    there: float
    """What the best policy known earns more on the domains of its references."""
    seconds: float


def _figures(found: Sequence[Found]) -> tuple[str, ...]:
    bounds = np.array([f.certificate.ucbog for f in found])
    verdicts = Counter(f.certificate.verdict for f in found)
    gaps, there = [f.certificate.mean_gap for f in found], [f.there for f in found]
    return (
        _listed(bounds), f"{bounds.max() / bounds.min():.2f}",
        ", ".join(f"{verdict} {times}" for verdict, times in verdicts.items()), _listed(gaps), _listed(there),
    )  # fmt: skip


def _listed(figures: Sequence[float] | np.ndarray) -> str:
    return ", ".join(f"{figure:.1f}" for figure in figures) + f"; mean {np.mean(figures):.1f}"


def _minutes(found: Sequence[Found]) -> str:
    return f"{np.mean([f.seconds for f in found]) / 60:.1f}"


def assessed(env: Platform, policy: Any, best: Any, name: str, preset: str, seed: int) -> Found:
    """One assessment in its directory."""
    told = {"policy": name, "policy_sha256": identity(policy, env)}
    layer = {"spota": {"effort_references": 0}} if name in CONTROLLERS else {}
    flags = {"env": env.name, "algo": "assess", "preset": preset, "seed": seed, **told}
    plan = resolve(None, flags, [("the benchmark", layer)])
    directory = DIRECTORY / f"steady-{env.name}-{name.replace(' ', '-')}-{preset}-{seed}"
    with Run(directory, plan.table()) as run:
        found = run_assessment(plan, env, policy, run)
        there = _more_there(env, best, policy, run.kept("iteration-01/references") or {})
    Console().print(f"{directory}: {found.certificate.sentence} {found.seconds:.0f} s")
    Console().print(f"mean gap {found.certificate.mean_gap:.1f}, best known {there:.1f}")
    return Found(found.certificate, there, found.seconds)


def _more_there(env: Platform, best: Any, policy: Any, references: Arrays) -> float:
    """What the best policy known earns more than the other on the domains of the references of the first look."""
    domains = {name[len(DOMAIN) :]: jnp.asarray(x) for name, x in references.items() if name.startswith(DOMAIN)}
    keys = jax.random.split(jax.random.key(UNSEEN_SEED), (*next(iter(domains.values())).shape, ROLLOUTS))
    mine, its = (returns_everywhere(env, one, domains, keys) for one in (best, policy))
    return float((mine - its).mean())
