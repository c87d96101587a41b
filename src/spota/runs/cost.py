"""What a certificate costs on a host environment: steps to simulate, and about how long this machine takes for them."""

from dataclasses import dataclass
from typing import Any

from spota.certify.looks import PILOT
from spota.polopt.epopt import EPOpt
from spota.polopt.optimizer import Optimizer
from spota.runs.plan import Plan
from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.host_speed import steps_per_second
from spota.text import duration


@dataclass(frozen=True)
class Cost:
    """Of one candidate and the first look at it."""

    steps: int
    steps_per_second: float
    whole: bool
    """Whether the trainings are in it; nobody knows what a solver of someone's own simulates."""

    @property
    def seconds(self) -> float:
        """About how long it takes; learning from the steps takes a little longer."""
        return self.steps / self.steps_per_second

    def __str__(self) -> str:
        """In words."""
        what = "A candidate and its certificate need" if self.whole else "Beside the trainings a certificate needs"
        return (
            f"The simulator makes about {_short(self.steps_per_second)} steps a second here. {what} "
            f"{_short(float(self.steps))} of them: about {duration(self.seconds)}, or more if it is looked at again."
        )


def estimated(plan: Plan, env: HostEnv) -> Cost:
    """The cost of a plan, from a short measurement."""
    trained = plan.candidate, plan.reference
    return Cost(steps(plan, env), steps_per_second(env), all(isinstance(one, Optimizer) for one in trained))


def steps(plan: Plan, env: Platform) -> int:
    """Steps of one candidate and the first look at it, if no rollout fails early."""
    s, m = plan.spota, plan.spota.trained_longer(1)
    compared = 2 * (s.n_G + m) * s.n_r * s.n_J
    unseen = s.performance_domains + PILOT if s.performance_domains else 0
    trainings = (
        rollouts(plan.candidate, s.n_c)
        + s.n_G * rollouts(plan.reference, s.n_r)
        + m * s.effort_factor * rollouts(plan.reference, s.n_r)
    )
    return (trainings + compared + unseen) * env.max_steps


def rollouts(solver: Any, n: int) -> int:
    """Rollouts of one training on n domains; none where nobody knows it."""
    if not isinstance(solver, Optimizer):
        return 0
    update, evaluation = solver.rollouts_on(n)
    evaluations = 1 + -(-solver.iterations // solver.evaluate_every)
    found = solver.iterations * update + evaluations * evaluation
    if isinstance(solver, EPOpt):  # it runs many to choose the worst from
        found += n * solver.many * (solver.iterations - solver.warm_up_iterations)
    return found


def _short(number: float) -> str:
    """57 million, 300,000."""
    return f"{number / 1e6:,.0f} million" if number >= 1e7 else f"{float(f'{number:.2g}'):,.0f}"
