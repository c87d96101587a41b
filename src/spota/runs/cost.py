"""What a certificate costs before it is begun: the simulator's steps that a plan asks for, and the time they take."""

from dataclasses import replace
from typing import Any

from spota.certify.settings import Spota
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.runs.plan import Plan
from spota.sim.env import Platform

GRADIENT = 4
"""Steps that a step with its gradient costs, about."""


def certificate_steps(plan: Plan, env: Platform) -> int | None:
    """Steps of one machine for one candidate and a first look at it; None if an optimizer does not say what it does.

    More candidates and further looks come on top; a rollout that fails early costs less.
    """
    s: Spota = plan.spota
    candidate, reference = training_steps(plan.candidate, env, s.n_c), training_steps(plan.reference, env, s.n_r)
    if candidate is None or reference is None:
        return None
    longer = s.trained_longer(1) * (training_steps(_longer(plan.reference, s.effort_factor), env, s.n_r) or 0)
    compared = 2 * s.n_G * s.n_r * s.n_J + s.performance_domains
    return candidate + s.n_G * reference + longer + compared * env.max_steps


def training_steps(optimizer: Any, env: Platform, domains: int) -> int | None:
    """Steps of one machine in one training, its evaluations included."""
    if isinstance(optimizer, PPO):
        looks = 1 + -(-optimizer.iterations // optimizer.evaluate_every)
        rollouts = optimizer.iterations * optimizer.rollouts + looks * optimizer.evaluation_rollouts
        return rollouts * domains * env.max_steps
    if isinstance(optimizer, Analytic):
        looks = 1 + -(-optimizer.iterations // optimizer.evaluate_every)
        ahead = min(optimizer.horizon or env.max_steps, env.max_steps)
        return (
            optimizer.iterations * optimizer.rows * ahead * GRADIENT + looks * optimizer.evaluation_rows * env.max_steps
        )
    return None


def _longer(optimizer: Any, factor: int) -> Any:
    return replace(optimizer, iterations=factor * optimizer.iterations)
