"""A sweep of the paper's size, and what it would take in a per-step Python loop.

Three policies (the PD controller under three names: it survives, so no loop could stop early), 21 values of the ball's
mass, 360 rollouts at each. The loop's time is extrapolated from its steps a second.
"""

import jax
from rich.console import Console

from benchmarks.rollout import python_loop
from benchmarks.timing import best_seconds
from spota.analysis import evaluate
from spota.envs import make
from spota.policies import fnn
from spota.policies.pd import pd

POLICIES, POINTS, ROLLOUTS = 3, 21, 360


def main() -> None:
    env = make("ball-balancer")
    policies = {f"pd {i}": pd(env) for i in range(POLICIES)}
    values = evaluate.span(env, "ball_mass", POINTS)
    key = evaluate.evaluation_key(0)
    seconds = best_seconds(
        lambda: evaluate.sweep(key, env, policies, {"ball_mass": values}, rollouts=ROLLOUTS).returns, repeats=3
    )
    steps = POLICIES * POINTS * ROLLOUTS * env.max_steps
    loop = steps / python_loop(env, fnn(jax.random.key(0), env), env.domain.sample(jax.random.key(1), 1))
    Console().print(
        f"Sweep of {POLICIES} policies × {POINTS} points × {ROLLOUTS} rollouts on the Ball-Balancer: {seconds:.1f} s; "
        f"a per-step Python loop needs {loop / 3600:.1f} h (extrapolated), {loop / seconds:,.0f} × as long."
    )
