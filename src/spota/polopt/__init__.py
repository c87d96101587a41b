"""Answers to "solve the approximated stochastic program" (eq_SPn); each file is one."""

from spota.polopt.analytic import Analytic
from spota.types import Env

SETTINGS = {
    "ball-balancer": Analytic(iterations=250, learning_rate=3e-2, barrier=30.0, jitter=0.2),
    "cart-pole": Analytic(jitter=0.1),
}


def default_solver(env: Env) -> Analytic:
    """The solver for a platform unless told otherwise: gradients through the simulator; docs/results.md has figures."""
    return SETTINGS.get(env.name, Analytic())
