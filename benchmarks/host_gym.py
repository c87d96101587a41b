"""Steps a second of Gymnasium's CartPole as a vector environment: through spota's rollouts, and in a bare loop.

Both act with the same compiled policy; spota's rollout adds domains, synchronised seeds, scaling and the bookkeeping of
failures. Processor time counts, of all threads together.
"""

import runpy
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

import spota
from benchmarks.timing import best_in_turns
from spota.commands.output import console

CARTS = Path(__file__).parent.parent / "examples" / "gymnasium_cart_pole.py"
MACHINES = (64, 512)
REPEATS = 10


def balance(observation):
    """Above zero pushes to the right; it keeps nearly every cart up until the end."""
    x, x_dot, angle, angle_dot = observation
    return jnp.tanh(5.0 * (0.05 * x + 0.1 * x_dot + angle + 0.3 * angle_dot))[None]


def main() -> None:
    table = Table(title="CartPole-v1 as a vector environment, steps a second of processor time")
    for column in ("machines", "bare loop", "spota", "share"):
        table.add_column(column, justify="right")
    for n in MACHINES:
        bare, ours = rates(n)
        table.add_row(str(n), f"{bare:,.0f}", f"{ours:,.0f}", f"{ours / bare:.0%}")
    console.print(table)


def rates(n: int) -> tuple[float, float]:
    """Steps a second in a bare loop, and those of machines that are alive through the seam, opening them included."""
    env = runpy.run_path(str(CARTS))["carts"]
    domains, keys = env.domain.nominal(n), jax.random.split(jax.random.key(0), (n, 1))

    def through_the_seam() -> np.ndarray:
        return spota.returns(env, balance, domains, keys).returns  # 1 a step

    bare, ours = best_in_turns((bare_loop(n), through_the_seam), REPEATS, time.process_time)
    return 500 * n / bare, float(through_the_seam().sum()) / ours


def bare_loop(n: int) -> Callable[[], None]:
    """What one writes without spota."""
    carts = gymnasium.make_vec("CartPole-v1", num_envs=n, vectorization_mode="vector_entry_point")
    act = jax.jit(lambda seen: (balance(seen.T)[0] > 0).astype(jnp.int32))

    def run() -> None:
        seen, _ = carts.reset(seed=0)
        for _ in range(500):
            seen, *_ = carts.step(np.asarray(act(seen), np.int64))

    return run


if __name__ == "__main__":
    main()
