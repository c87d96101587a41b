"""Answers to "solve the approximated stochastic program" (eq_SPn); each file is one."""

from spota.polopt.analytic import Analytic
from spota.types import Env


def default_solver(env: Env) -> Analytic:
    """The solver that SPOTA uses unless told otherwise: gradients through the simulator."""
    del env
    return Analytic()
