"""What a certificate costs on a host environment: what is simulated and learned, and how long this machine takes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from spota.certify.looks import PILOT
from spota.policies import fnn
from spota.polopt.epopt import EPOpt
from spota.polopt.learning_time import learning_seconds
from spota.polopt.optimizer import Optimizer
from spota.polopt.ppo import PPO
from spota.polopt.solver import with_effort
from spota.runs.plan import Plan
from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.host_groups import pieces
from spota.sim.host_speed import Pace, pace
from spota.text import duration


class Pass(NamedTuple):
    """Rollouts of several policies side by side, so many times."""

    times: int
    policies: int
    rollouts: int
    """Of each policy."""


@dataclass(frozen=True)
class Cost:
    """Of one candidate and the first look at it."""

    steps: int
    simulating: float
    """Seconds in the simulator, and in what is ours of a rollout."""
    learning: float | None
    """Seconds of learning from it; None if nobody knows, because a solver is someone's own."""
    further: float = 0.0
    """Seconds of all further looks, if none of them decides but the last."""

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return self.simulating + (self.learning or 0.0)

    def __str__(self) -> str:
        """In words."""
        if self.learning is None:
            what, where = "Beside the trainings a certificate needs", ""
        else:
            what, where = "A candidate and its certificate need", f", {duration(self.learning)} of it to learn"
        again = f" {duration(self.seconds + self.further)}" if self.further else " more"
        return (
            f"{what} {_short(float(self.steps))} steps of the simulator: about {duration(self.seconds)} here{where}, "
            f"or{again} if it is looked at as often as it may be; compiling and the page are not counted. Another "
            "candidate takes as long again."
        )


def estimated(plan: Plan, env: HostEnv) -> Cost:
    """The cost of a plan, from short measurements of rollouts and updates on this machine."""
    measured = pace(env, fnn(jax.random.key(0), env, plan.spota.hidden))
    first, later = (simulating(some, env, measured) for some in (passes(plan), further_passes(plan)))
    if not all(isinstance(one, PPO) for one in (plan.candidate, plan.reference)):
        return Cost(steps(plan, env), first, None, later)
    learned, learned_later = learning(plan, env)
    return Cost(steps(plan, env), first, learned, later + learned_later)


def steps(plan: Plan, env: Platform) -> int:
    """Steps of one candidate and the first look at it, if no rollout fails early."""
    return sum(one.times * one.policies * one.rollouts for one in passes(plan)) * env.max_steps


def simulating(some: Iterable[Pass], env: HostEnv, measured: Pace) -> float:
    """Seconds of these passes, each in pieces of as many machines as there may be at once."""
    total = 0.0
    for times, policies, rollouts in some:
        widths = [policies * index.size for index, _ in pieces(env, policies, rollouts)]
        total += times * sum(measured.seconds(width, env.max_steps, policies) for width in widths)
    return total


def learning(plan: Plan, env: HostEnv) -> tuple[float, float]:
    """Seconds of all updates up to the first look, and of further ones; each reference takes as long as the others."""
    s = plan.spota
    one = learning_seconds(plan.candidate, env, s.trainings, s.n_c, s.hidden)
    each = learning_seconds(plan.reference, env, s.n_G, s.n_r, s.hidden) / s.n_G
    first, *later = (each * (s.joining(k) + s.effort_factor * s.trained_longer(k)) for k in range(1, s.looks + 1))
    return one + first, sum(later, start=0.0)


def passes(plan: Plan) -> Iterator[Pass]:
    """Everything that is simulated for one candidate and the first look at it."""
    s = plan.spota
    yield from training(plan.candidate, s.trainings, s.n_c)
    yield from looking(plan, 1)
    if s.performance_domains:
        yield Pass(1, 1, s.performance_domains + PILOT)


def further_passes(plan: Plan) -> Iterator[Pass]:
    """What all further looks add, and the challengers of those that end without a verdict."""
    s = plan.spota
    for look in range(2, s.looks + 1):
        yield from looking(plan, look)
    if s.looks > 1 and s.performance_domains:
        yield Pass(s.looks, 1, s.performance_domains)


def looking(plan: Plan, look: int) -> Iterator[Pass]:
    """The references that join in a look, some of them trained longer, and their comparison with the policy."""
    s, n, m = plan.spota, plan.spota.joining(look), plan.spota.trained_longer(look)
    yield from training(plan.reference, n, s.n_r)
    if m:
        yield from training(with_effort(plan.reference, s.effort_factor), m, s.n_r)
        yield Pass(2, m, s.n_r * s.n_J)
    yield Pass(2, n, s.n_r * s.n_J)


def training(solver: Any, problems: int, n: int) -> Iterator[Pass]:
    """The rollouts of a training on n domains of each problem; none where nobody knows them."""
    if not isinstance(solver, Optimizer):
        return
    update, evaluation = solver.rollouts_on(n)
    yield Pass(solver.iterations, problems, update)
    yield Pass(1 + -(-solver.iterations // solver.evaluate_every), problems, evaluation)
    if isinstance(solver, EPOpt):  # it runs many to choose the worst from
        yield Pass(solver.iterations - solver.warm_up_iterations, problems, n * solver.many)


def _short(number: float) -> str:
    """57 million, 300,000."""
    return f"{number / 1e6:,.0f} million" if number >= 1e7 else f"{float(f'{number:.2g}'):,.0f}"
