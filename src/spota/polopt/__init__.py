"""Answers to "solve the approximated stochastic program" (eq_SPn); each file is one."""

from spota.polopt.analytic import Analytic
from spota.types import Env

SETTINGS = {
    "ball-balancer": Analytic(iterations=250, learning_rate=3e-2, barrier=30.0, smoothing=1.0),
    "cart-pole": Analytic(smoothing=1.0),
}
REFERENCE = Analytic(iterations=100, learning_rate=5e-3)


def reference_solver(env: Env) -> Analytic:
    """The solver for references unless told otherwise: they start from a trained policy, on domains of their own."""
    del env
    return REFERENCE


def default_solver(env: Env) -> Analytic:
    """The solver for a platform unless told otherwise: gradients through the simulator; docs/results.md has figures."""
    return SETTINGS.get(env.name, Analytic())
