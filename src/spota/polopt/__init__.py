"""Answers to "solve the approximated stochastic program" (eq_SPn); each file is one."""

from dataclasses import replace
from typing import Any, TypeVar

from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.types import Env

Learner = TypeVar("Learner", bound=PPO)

SETTINGS = {
    "ball-balancer": Analytic(iterations=300, barrier=60.0),
    "cart-pole": Analytic(),
}
PPO_SETTINGS: dict[str, dict[str, Any]] = {
    "ball-balancer": {
        "learning_rate": 3e-4, "gamma": 0.999, "lam": 0.998, "minibatches": 40, "initial_std": 1.0, "smoothing": 1.0
    },
    "cart-pole": {"smoothing": 1.0},
}  # fmt: skip
"""A slow ball needs advantages that look further ahead, and more exploration."""
REFERENCE = Analytic(iterations=180)


def reference_solver(env: Env) -> Analytic:
    """The solver for references unless told otherwise: they start from a trained policy, on domains of their own."""
    del env
    return REFERENCE


def assessing_solver(env: Env) -> Analytic:
    """The solver for references of a policy that came from anywhere: it may be far from the best, so they need more."""
    return replace(default_solver(env), smoothing=0.0)


def default_solver(env: Env) -> Analytic:
    """The solver for a platform unless told otherwise: gradients through the simulator; docs/results.md has figures."""
    return SETTINGS.get(env.name, Analytic())


def tuned_ppo(kind: type[Learner], env: Env, **changes: Any) -> Learner:
    """PPO, or a kind of it, with the settings that learn fastest on the platform."""
    return kind(**{**PPO_SETTINGS.get(env.name, {}), **changes})
