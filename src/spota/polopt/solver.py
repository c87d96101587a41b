"""What SPOTA asks of a solver: solve several problems, each a set of domains and a start, with one call.

A solver of one's own is a function of one problem, in whatever language and with whatever library:

def solve(key, env, domains, start):   # domains by name, n values each; start is a policy
    ...
    return policy                      # of the same kind, with other numbers

It becomes a `Solver` here, which calls it for one problem after the other, tries what it found beside its start on the
problem's own domains with common random numbers, and keeps the better one: no reference is worse than its start.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.polopt.checks import refuse_another_kind, refuse_nan
from spota.polopt.optimizer import Optimizer, Progress, Solution, Watch, evaluations_of_each, refuse_host
from spota.polopt.rows import Score
from spota.polopt.solve import solve_many
from spota.sim import rollout
from spota.sim.domain import Domains, count
from spota.sim.env import Platform

S = TypeVar("S")


@runtime_checkable
class Solver(Protocol):
    """Solve P approximated stochastic programs (eq_SPn); the result has a leading axis over them."""

    def __call__(
        self,
        keys: Key[Array, "P"],
        env: Any,
        domains: dict[str, Float[Array, "P n"]],
        inits: Any,
        watch: Watch | None = None,
        /,
    ) -> Solution:
        """Problem p is `domains[…][p]`, from the policy `inits[p]` with fresh optimizer state."""
        ...


Solve = Callable[[Key[Array, ""], Any, Domains, Any], Any]
"""(key, platform, domains, start) → policy: a solver of one's own, for one problem."""
AnySolver = Optimizer | Solver | Solve
ARGUMENTS = ("key", "env", "domains", "start")


def as_solver(solver: AnySolver) -> Solver:
    """A solver of any kind as one of several problems; a function of one problem is called for each of them."""
    if isinstance(solver, Optimizer):
        return cast(Solver, partial(solve_many, solver))
    return cast(Solver, solver if _solves_all(solver) else partial(one_by_one, solver))


def solves_all(solver: S) -> S:
    """Say of a function that it is a `Solver` already: it takes all problems in one call and fills in the solution."""
    cast(Any, solver).solves_all = True
    return solver


def optimal(solver: S) -> S:
    """Say of a solver that it finds the optimum of every problem, so that more effort gains nothing."""
    cast(Any, solver).optimal = True
    return solver


def is_optimal(solver: AnySolver) -> bool:
    """Whether it was said to find the optimum of every problem."""
    return getattr(solver, "optimal", False)


def with_effort(solver: AnySolver, factor: int) -> AnySolver | None:
    """The same solver with `factor` times its iterations; None for a solver that does not say how many it has."""
    if not is_dataclass(solver) or "iterations" not in {f.name for f in fields(solver)}:
        return None
    settings = cast(Any, solver)
    return replace(settings, iterations=factor * settings.iterations)


def check_solver(solver: Any, env: Platform) -> None:
    """Refuse what is no solver, and settings that do not fit the platform, before any work begins."""
    if isinstance(solver, Optimizer):
        refuse_host(solver, env)
        solver.check(env)
    elif isinstance(solver, type):
        raise ValueError(f"{name_of(solver)} is a class; give an object of it: {name_of(solver)}().")
    elif not callable(solver):
        raise ValueError(
            f"{solver!r} is no solver; give a function solve({', '.join(ARGUMENTS)}) that returns a policy."
        )
    elif not _solves_all(solver):
        _check_arguments(solver)


def name_of(solver: Any) -> str:
    """What its author calls it."""
    return getattr(solver, "__qualname__", type(solver).__qualname__)


def one_by_one(
    solve: Solve,
    keys: Key[Array, "P"],
    env: Platform,
    domains: dict[str, Float[Array, "P n"]],
    inits: Any,
    watch: Watch | None = None,
) -> Solution:
    """Solve one problem after the other with a function that solves one."""
    solved: list[Solution] = []
    for p, key in enumerate(keys):
        problem = {name: column[p] for name, column in domains.items()}
        solved.append(_solved(solve, key, env, problem, jax.tree.map(lambda x, p=p: x[p], inits)))
        if watch is not None:
            watch(_progress(solved, keys.shape[0], env, count(problem)))
    return _stacked(solved)


def _solves_all(solver: Any) -> bool:
    return getattr(solver, "solves_all", False)


def _check_arguments(solve: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called as one of one problem."""
    signature = inspect.signature(solve)
    try:
        signature.bind(*ARGUMENTS)
    except TypeError as error:
        name = name_of(solve)
        raise ValueError(
            f"{name}{signature} cannot be called with ({', '.join(ARGUMENTS)}): {error}; a solver takes these "
            f"four, solves one problem and returns a policy."
        ) from error


def _solved(solve: Solve, key: Key[Array, ""], env: Platform, domains: Domains, start: Any) -> Solution:
    """One problem: what the function finds, or its start where that earns as much."""
    k_solve, k_evaluate = jax.random.split(key)
    found = _checked(name_of(solve), solve(k_solve, env, domains, start), start)
    before, after = (_evaluated(k_evaluate, env, domains, policy) for policy in (start, found))
    best, score = (found, after) if after.returns > before.returns else (start, before)
    curve, survival = (jnp.stack([getattr(s, figure) for s in (before, after)]) for figure in ("returns", "survival"))
    return Solution(best, score, before, curve, survival, jnp.arange(2.0), jnp.array(False))


def _checked(name: str, found: Any, start: Any) -> Any:
    """What a function returned, if it is a policy of the start's kind; its numbers get the start's types."""
    if isinstance(found, Solution):
        raise ValueError(f"{name} returned a Solution, so it takes all problems at once; mark it with @solves_all.")
    refuse_another_kind(name, found, start, "policy")
    refuse_nan(name, found)
    return jax.tree.map(lambda new, old: jnp.asarray(new, jnp.asarray(old).dtype), found, start)


def _evaluated(key: Key[Array, ""], env: Platform, domains: Domains, policy: Any) -> Score:
    """The same random numbers for every policy that has the same key."""
    n = count(domains)
    outcome = rollout.returns(env, policy, domains, jax.random.split(key, (n, evaluations_of_each(n))))
    return Score(jnp.asarray(outcome.returns.mean()), jnp.asarray(outcome.survived.mean(dtype=np.float32)))


def _stacked(solved: list[Solution]) -> Solution:
    """All solutions with a leading axis; `evaluated_at` has none."""
    many = jax.tree.map(lambda *leaves: jnp.stack(leaves), *solved)
    return eqx.tree_at(lambda s: s.evaluated_at, many, solved[0].evaluated_at)


def _progress(solved: list[Solution], problems: int, env: Platform, n: int) -> Progress:
    """A word after each problem, about those that are solved; of steps only those of the evaluation are known."""
    found = _stacked(solved)
    return Progress(
        len(solved),
        problems,
        np.asarray(found.curve[:, -1]),
        np.asarray(found.survival[:, -1]),
        np.asarray(found.score.returns),
        found.policy,
        2 * n * evaluations_of_each(n) * env.max_steps,
        {},
    )
