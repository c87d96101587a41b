"""Is what a certificate says true? Every run's UCBOG beside what is known to be possible, and a fresh assessment.

Each seed is one `spota train ENV --preset PRESET`. A certificate is false if a policy exists that earns more than its
UCBOG more: so all policies of this table, and one of a longer training of a larger network, meet the same 20,000 unseen
domains, and the best of them stands against each. Fresh references start from that best policy, once for all, and
train on 1000 domains that no run has seen: every policy is compared with them. With a memory (`--recurrent 8`) all of
them have it: the runs, the longer training and the fresh references. Runs are kept in `runs/truth` and go on where they
were stopped.

Somebody else's simulator has no gradients to find the best policy with. The MuJoCo Cart-Pole has the physics, the
signals and the table of ours, so that its longer training and its fresh references are those of ours (`TWINS`); the
runs, and all returns on unseen domains, are MuJoCo's:

python -m benchmarks truth --platforms examples/mujoco_cart_pole.py:env --seeds 0
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.yardstick import CRASH, UNSEEN, WAYS, trained, unseen_returns
from spota import policies
from spota.certify.certificate import Certificate
from spota.certify.comparison import Solved, compare
from spota.certify.references import find_references
from spota.envs import make
from spota.files.blocks import from_arrays, to_arrays
from spota.policies import Architecture, Network, fingerprint, new_network
from spota.polopt import reference_solver
from spota.polopt.solver import as_solver
from spota.runs.certifying import run_spota
from spota.runs.directory import Run
from spota.runs.plan import Plan, resolve
from spota.sim.env import Platform
from spota.sim.host import HostEnv

SEEDS = {"cart-pole": tuple(range(100, 110)), "ball-balancer": (100, 101, 102)}
"""Nobody tuned anything to them."""
OTHERS = (0, 200, 201)
"""The seeds of other platforms, where a run takes longer."""
TWINS = {"mujoco-cart-pole": "cart-pole"}
"""The platform of ours with the same physics."""
ON_HOST = 4000
"""Unseen domains where every step costs."""
BEST = WAYS[-1]
"""How the policy is trained that is known to be possible."""
FRESH = {"n_G": 20, "n_r": 50, "n_J": 4, "seed": 9000}
"""1000 domains of fresh references, and rollouts per domain in the comparison with them."""
DIRECTORY = Path("runs/truth")
Memory = Mapping[str, int]
"""By the names of `Architecture`; empty: none."""
NONE: Memory = {}
WIDE = 150  # characters of a line


@dataclass(frozen=True)
class Trained:
    """One run: its certificate, its policy, and the policy's returns on the shared unseen domains."""

    seed: int
    certificate: Certificate
    policy: Any
    returns: np.ndarray
    seconds: float


def main(
    platforms: Sequence[str] = (),
    presets: Sequence[str] = ("quick",),
    seeds: Sequence[int] = (),
    memory: Memory = NONE,
) -> None:
    """Both platforms of the paper or those named, with our seeds or others, and with this memory."""
    for name, preset in product(platforms or tuple(SEEDS), presets):
        env = make(name)
        twin = make(TWINS.get(env.name, env.name))
        runs = [run_of(name, preset, seed, memory) for seed in seeds or SEEDS.get(name, OTHERS)]
        best = best_known(twin, memory)
        known = [(best, _earned(env, best)), *((run.policy, run.returns) for run in runs)]
        champion, most = max(known, key=lambda one: one[1].mean())
        inputs = Architecture(BEST.hidden, **memory).inputs
        table = Table(title=f"{name}, preset {preset}, on {inputs}: the best known policy earns {most.mean():.1f}")
        columns = (
            "seed", "verdict", "UCBOG", "earns", "best known earns more", "± SE", f"over {CRASH:g} more",
            "mean gap, 1000 fresh domains", "true", "minutes",
        )  # fmt: skip
        for column in columns:
            table.add_column(column, justify="right")
        fresh = _fresh_references(twin, champion)
        for run in runs:
            row = _row(twin, run, most, fresh)
            Console(width=WIDE).print(*row)
            table.add_row(*row)
        Console(width=WIDE).print(table)


def run_of(name: str, preset: str, seed: int, memory: Memory = NONE) -> Trained:
    """One run in its directory, and its policy on the shared unseen domains."""
    env, layers = make(name), [("the benchmark", {"spota": dict(memory)})]
    plan: Plan = resolve(None, {"env": name, "preset": preset, "seed": seed}, layers)
    directory = DIRECTORY / f"{env.name}-{preset}-{seed}{_ending(memory)}"
    with Run(directory, plan.table()) as run:
        found = run_spota(plan, env, run)
    Console().print(f"{directory}: {found.certificate.sentence} {found.seconds:.0f} s")
    policy = policies.load(directory / "policy.npz")
    return Trained(seed, found.certificate, policy, _earned(env, policy), found.seconds)


def _earned(env: Platform, policy: Any) -> np.ndarray:
    """Returns on the unseen domains that all policies share."""
    return unseen_returns(env, policy, ON_HOST if isinstance(env, HostEnv) else UNSEEN)


def best_known(env: Platform, memory: Memory = NONE) -> Network:
    """The policy of the long training, kept beside the runs."""
    with Run(DIRECTORY / f"{env.name}-best{_ending(memory)}", {"env": env.name, "means": BEST.name, **memory}) as run:
        arrays = run.block("policy", lambda: to_arrays(trained(env, BEST, **memory)[0]))
    return from_arrays(arrays, new_network(jax.random.key(0), env, Architecture(BEST.hidden, **memory)))


def _ending(memory: Memory) -> str:
    """Of a directory's name."""
    return "".join(f"-{name}-{number}" for name, number in memory.items())


def _row(env: Platform, run: Trained, most: np.ndarray, references: Solved) -> tuple[str, ...]:
    c, more = run.certificate, most - run.returns
    compared = compare(jax.random.key(FRESH["seed"] + 1), env, run.policy, references, FRESH["n_J"], "reference")
    fresh = float(compared.gaps.final.mean())
    least = max(more.mean(), fresh)
    return (
        str(run.seed), c.verdict, f"{c.ucbog:.1f}", f"{run.returns.mean():.1f}", f"{more.mean():.1f}",
        f"{more.std() / more.size**0.5:.1f}", f"{100 * np.mean(more > CRASH):.2f} %", f"{fresh:.1f}",
        "yes" if c.ucbog >= least else "NO", f"{run.seconds / 60:.1f}",
    )  # fmt: skip


def _fresh_references(env: Platform, champion: Any) -> Solved:
    """References that start from the best policy known, on domains of their own; kept beside the runs."""
    key, solver = jax.random.key(FRESH["seed"]), as_solver(reference_solver(env))
    with Run(DIRECTORY / f"{env.name}-fresh-{fingerprint(champion)}", {"env": env.name, **FRESH}) as kept:
        found = kept.block(
            "references",
            lambda: find_references(key, env, solver, champion, FRESH["n_r"], FRESH["n_G"]).to_arrays(),
        )
    return Solved.from_arrays(found, champion)
