"""The best returns that we reach by any means: with them everything else is measured.

Forty times as many training domains as `learning` has, then twice the updates of a larger network, then a start from a
network that imitates the platform's classical controller. Evaluated as there: the same 500 unseen domains.
"""

import time
from dataclasses import replace

import jax
from rich.table import Table

from spota.commands.output import console
from spota.envs import make
from spota.policies import FNN, find, fnn
from spota.policies.imitate import imitate
from spota.polopt import default_solver
from spota.polopt.solve import solve
from spota.rollout import returns
from spota.training import UNSEEN, statistics
from spota.types import Env

DOMAINS, SEED = 400, 0
CONTROLLERS = {"cart-pole": "lqr", "ball-balancer": "pd"}
SMALL, LARGE = (16, 16), (32, 32)


def main() -> None:
    for name, controller in CONTROLLERS.items():
        table = Table(title=f"{name}: {UNSEEN} unseen random domains after training on {DOMAINS}")
        for column in ("means", "own", "unseen", "worst 20 %", "survived", "seconds"):
            table.add_column(column, justify="left" if column == "means" else "right")
        for means, hidden, longer, start in (
            ("many domains", SMALL, 1, None),
            ("a larger network, twice the updates", LARGE, 2, None),
            (f"from an imitation of {controller}", SMALL, 1, controller),
        ):
            table.add_row(means, *_figures(make(name), hidden, longer, start))
        console.print(table)


def _figures(env: Env, hidden: tuple[int, ...], longer: int, controller: str | None) -> tuple[str, ...]:
    k_domains, k_init, k_solve, k_unseen, k_rollouts = jax.random.split(jax.random.key(SEED), 5)
    usual = default_solver(env)
    solver = replace(usual, smoothing=0.0, iterations=longer * usual.iterations)
    began = time.perf_counter()
    found = solve(solver, k_solve, env, env.domain.sample(k_domains, DOMAINS), _start(k_init, env, hidden, controller))
    seconds = time.perf_counter() - began
    keys = jax.random.split(k_rollouts, (UNSEEN, 1))
    unseen = statistics(returns(env, found.policy, env.domain.sample(k_unseen, UNSEEN), keys))
    means = (float(found.score.returns), unseen["mean"], unseen["worst_20_mean"])
    return *(f"{mean:.0f}" for mean in means), f"{100 * unseen['survival']:.1f} %", f"{seconds:.0f}"


def _start(key: jax.Array, env: Env, hidden: tuple[int, ...], controller: str | None) -> FNN:
    return fnn(key, env, hidden) if controller is None else imitate(key, env, find(controller, env), hidden).policy
