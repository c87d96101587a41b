"""How large should the first layer of a new network be? Two candidates of each size, as `benchmarks rows` trains them.

Observations are in units of their sensors' ranges; a balancing machine, and the noise, stay within a few percent.
"""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.rows import candidates
from spota.envs import make
from spota.polopt import default_gains, default_solver

FIRST = (1.0, 4.0, 12.0)


def main(platforms: Sequence[str] = ()) -> None:
    """Both platforms of the paper, or those named."""
    for name in platforms or ("cart-pole", "ball-balancer"):
        env = make(name)
        solver = default_solver(env)
        for first in FIRST:
            candidates(env, solver, replace(default_gains(solver), first=first))
