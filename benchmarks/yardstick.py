"""What the default training reaches over seeds, and the best that we reach by any means: what is known to be possible.

All policies meet the same 20,000 unseen domains with the same random numbers. Beside the mean stand the worst 1 % and
the share of domains on which a policy loses more than 500 against the best: where it crashes and the other does not.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from spota.envs import make
from spota.policies import Architecture, Network, first_policy, new_network
from spota.polopt import MANY_DOMAINS, default_gains, default_solver, default_start
from spota.polopt.solve import solve
from spota.sim.env import Platform, Policy
from spota.sim.rollout import returns

SEEDS = (51, 52, 53)
UNSEEN, UNSEEN_SEED = 20_000, 1_000
CRASH = 500.0


@dataclass(frozen=True)
class Means:
    """One way to train."""

    name: str
    hidden: tuple[int, ...] = (32, 32)
    longer: int = 1
    domains: int = MANY_DOMAINS
    seed: int = SEEDS[0]


WAYS = (
    *(Means(f"default, seed {seed}", seed=seed) for seed in SEEDS),
    Means("three times the updates, 10,000 domains, seed 54", longer=3, domains=10_000, seed=54),
    Means("three times the updates, 10,000 domains", longer=3, domains=10_000),
)


def main(platforms: Sequence[str] = ()) -> None:
    """Both platforms of the paper, or those named."""
    for name in platforms or ("cart-pole", "ball-balancer"):
        env = make(name)
        found = [(way, *trained(env, way)) for way in WAYS]
        earned = [unseen_returns(env, policy) for _, policy, _ in found]
        best = max(earned, key=lambda returns: returns.mean())
        table = Table(title=f"{name}: {UNSEEN} unseen domains, of {env.max_return:g}")
        columns = ("means", "mean", "worst 1 %", f"loses > {CRASH:g}", "to the best", "± SE", "seconds")
        for column in columns:
            table.add_column(column, justify="left" if column == "means" else "right")
        for (way, _, seconds), theirs in zip(found, earned, strict=True):
            table.add_row(way.name, *_figures(theirs, best), f"{seconds:.0f}")
        Console().print(table)


def trained(env: Platform, way: Means, **memory: int) -> tuple[Network, float]:
    """A policy that was trained in this way, with this memory, if any, and the seconds that it took."""
    k_domains, k_init, k_solve = jax.random.split(jax.random.key(way.seed), 3)
    usual = default_solver(env)
    solver = replace(usual, iterations=way.longer * usual.iterations)
    began = time.perf_counter()
    start, architecture = default_start(env), Architecture(way.hidden, **memory)
    if start == "new":
        network = new_network(k_init, env, architecture, default_gains(solver))
    else:
        network = first_policy(k_init, env, start, architecture)
    found = solve(solver, k_solve, env, env.domain.sample(k_domains, way.domains), network)
    jax.block_until_ready(found.policy)
    return found.policy, time.perf_counter() - began


def unseen_returns(env: Platform, policy: Policy, n: int = UNSEEN) -> np.ndarray:
    """Returns on the n unseen domains that all policies share, one rollout each."""
    k_domains, k_rollouts = jax.random.split(jax.random.key(UNSEEN_SEED))
    keys = jax.random.split(k_rollouts, (n, 1))
    return np.asarray(returns(env, policy, env.domain.sample(k_domains, n), keys).returns[:, 0], np.float64)


def _figures(theirs: np.ndarray, best: np.ndarray) -> tuple[str, ...]:
    lost = best - theirs
    worst = np.sort(theirs)[: UNSEEN // 100].mean()
    crashes = f"{100 * np.mean(lost > CRASH):.2f} %"
    return f"{theirs.mean():.1f}", f"{worst:.0f}", crashes, f"{lost.mean():.1f}", f"{lost.std() / UNSEEN**0.5:.1f}"
