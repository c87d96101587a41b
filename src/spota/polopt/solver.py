"""What SPOTA asks of an optimizer: solve several problems, each a set of domains and a start, with one call."""

from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from jaxtyping import Array, Float, Key

from spota.polopt.solve import Optimizer, Report, Solution, solve_many
from spota.sim.env import Env

S = TypeVar("S")


@runtime_checkable
class Solver(Protocol):
    """Solve P approximated stochastic programs (eq_SPn); the result has a leading axis over them."""

    def __call__(
        self,
        keys: Key[Array, "P"],
        env: Env,
        domains: dict[str, Float[Array, "P n"]],
        inits: Any,
        report: Report | None = None,
        /,
    ) -> Solution:
        """Problem p is `domains[…][p]`, from the policy `inits[p]` with fresh optimizer state."""
        ...


def as_solver(optimizer: "Optimizer | Solver") -> Solver:
    """An optimizer's settings as a solver; a callable is one already."""
    return cast(Solver, optimizer if callable(optimizer) else partial(solve_many, optimizer))


def optimal(solver: S) -> S:
    """Say of a solver that it finds the optimum of every problem, so that more effort gains nothing."""
    cast(Any, solver).optimal = True
    return solver


def is_optimal(optimizer: "Optimizer | Solver") -> bool:
    """Whether it was said to find the optimum of every problem."""
    return getattr(optimizer, "optimal", False)


def with_effort(optimizer: "Optimizer | Solver", factor: int) -> "Optimizer | Solver | None":
    """The same optimizer with `factor` times its iterations; None for a solver that does not say how many it has."""
    if not is_dataclass(optimizer) or "iterations" not in {f.name for f in fields(optimizer)}:
        return None
    settings = cast(Any, optimizer)
    return replace(settings, iterations=factor * settings.iterations)
