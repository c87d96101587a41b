"""What SPOTA asks of an optimizer: solve several problems, each a set of domains and a start, with one call."""

from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

from jaxtyping import Array, Float, Key

from spota.polopt.solve import Optimizer, Report, Solution, solve_many
from spota.types import Env


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
