"""Steps a second of Gymnasium's CartPole as a vector environment: through spota's rollouts, and in a bare loop.

Both act with the same compiled policy; spota's rollout adds domains, synchronised seeds, scaling and the bookkeeping of
failures. Processor time counts, of all threads together.
"""

import runpy
import time
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

import spota
from benchmarks.timing import best_seconds
from spota.commands.output import console

CARTS = Path(__file__).parent.parent / "examples" / "gymnasium_cart_pole.py"
MACHINES = (64, 512)
REPEATS = 5


def balance(observation):
    """Above zero pushes to the right; it keeps nearly every cart up until the end."""
    x, x_dot, angle, angle_dot = observation
    return jnp.tanh(5.0 * (0.05 * x + 0.1 * x_dot + angle + 0.3 * angle_dot))[None]


def main() -> None:
    table = Table(title="CartPole-v1 as a vector environment, steps a second of processor time")
    for column in ("machines", "bare loop", "spota", "share"):
        table.add_column(column, justify="right")
    for n in MACHINES:
        bare, ours = bare_loop(n), through_the_seam(n)
        table.add_row(str(n), f"{bare:,.0f}", f"{ours:,.0f}", f"{ours / bare:.0%}")
    console.print(table)


def through_the_seam(n: int) -> float:
    """Steps of machines that are alive, a second; opening them is part of it."""
    env = runpy.run_path(str(CARTS))["carts"]
    domains, keys = env.domain.nominal(n), jax.random.split(jax.random.key(0), (n, 1))
    earned = spota.returns(env, balance, domains, keys).returns  # 1 a step; and everything is compiled
    seconds = best_seconds(lambda: spota.returns(env, balance, domains, keys).returns, REPEATS, time.process_time)
    return float(earned.sum()) / seconds


def bare_loop(n: int) -> float:
    """What one writes without spota."""
    carts = gymnasium.make_vec("CartPole-v1", num_envs=n, vectorization_mode="vector_entry_point")
    act = jax.jit(lambda seen: (balance(seen.T)[0] > 0).astype(jnp.int32))

    def run() -> None:
        seen, _ = carts.reset(seed=0)
        for _ in range(500):
            seen, *_ = carts.step(np.asarray(act(seen), np.int64))

    return 500 * n / best_seconds(run, REPEATS, time.process_time)


if __name__ == "__main__":
    main()
