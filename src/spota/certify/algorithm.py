"""Algorithm 1 (algo_SPOTA): candidates one after the other, each looked at until it is decided.

settings = Spota.paper("cart-pole")
result = spota(jax.random.key(0), make("cart-pole"), Analytic(), settings)
print(result.certificate)
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Key

from spota.certify.certificate import Certificate
from spota.certify.comparison import Solved
from spota.certify.events import Assessed, Listener
from spota.certify.looks import CANDIDATE, Starts, decide, time_is_over
from spota.certify.procedure import Memo, Procedure, compute
from spota.certify.references import repeated
from spota.certify.settings import GROWTHS, NonDecrSeq, Spota
from spota.files.blocks import Arrays, from_arrays, to_arrays
from spota.policies import FNN, first_policy, fnn
from spota.polopt.imitating import imitation_progress
from spota.polopt.solve import Report, Solution
from spota.polopt.solver import AnyOptimizer, Solver, as_solver
from spota.sim.domain import count
from spota.sim.env import Platform


@dataclass(frozen=True)
class Result:
    """What SPOTA ends with: the certified policy, or the one with the lowest bound, and all certificates."""

    policy: Any
    certificate: Certificate
    iteration: int
    """Where this policy comes from."""
    history: tuple[Certificate, ...]
    reason: str
    """Why it ended: "certified", "max_iterations" or "max_seconds"."""
    seconds: float
    """What all blocks have cost."""


def find_candidate(
    key: Key[Array, ""],
    env: Platform,
    solver: Solver,
    n_c: int,
    init: Any = None,
    report: Report | None = None,
    hidden: tuple[int, ...] = (16, 16),
) -> Solved:
    """Solve the approximated program on n_c random domains, from a new policy unless given one."""
    k_domains, k_init, k_solve = jax.random.split(key, 3)
    init = fnn(k_init, env, hidden) if init is None else init
    domains = env.domain.sample(k_domains, n_c)  # SPOTA_cand_DR
    problem = {name: column[None] for name, column in domains.items()}
    one = solver(k_solve[None], env, problem, repeated(init, 1), report)  # SPOTA_optpol_cand
    return Solved(domains, _first(one))


def spota(
    key: Key[Array, ""],
    env: Platform,
    optimizer: AnyOptimizer,
    settings: Spota | None = None,
    *,
    references: AnyOptimizer | None = None,
    init: Any = None,
    sequence: NonDecrSeq | None = None,
    memo: Memo = compute,
    report: Listener | None = None,
) -> Result:
    """Algorithm 1: candidates on more and more domains, until the upper bound on the gap of one is at most β.

    If a candidate is neither certified nor refuted, more references join it, `settings.looks` times at most, before
    the next one is tried; α is spent over all that.

    `optimizer` trains the candidates and, unless there is another one in `references`, the references. `init` is a
    policy that the candidates start from instead of new ones; `sequence` overrides `settings.growth`.
    """
    settings = settings or Spota()
    candidates, growth = as_solver(optimizer), sequence or GROWTHS[settings.growth]
    run = Procedure(key, env, candidates, references or optimizer, settings, growth, memo, report)
    tried: list[tuple[Any, Certificate]] = []
    for iteration in range(1, settings.max_iterations + 1):
        start = tried[-1][0] if settings.warm_start and tried else init
        tried.append(_iterate(run, iteration, start))
        policy, best = _lowest(tried)
        run.tell(Assessed(iteration, tried[-1][1], best, policy))
        if best.certified:  # SPOTA_stopping_criterion
            return _result(run, tried, "certified")
        if time_is_over(run):
            return _result(run, tried, "max_seconds")
    return _result(run, tried, "max_iterations")


def _iterate(run: Procedure, iteration: int, init: Any) -> tuple[Any, Certificate]:
    """One iteration: a candidate, then references that join it until it is decided."""
    candidate = _candidate(run, iteration, run.keys(iteration).candidate, init)

    def starts_of(look: int) -> Starts:
        joining = run.settings.joining(look)
        return Starts(repeated(candidate.policy, joining), {CANDIDATE: joining})  # SPOTA_ref_init

    found = decide(run, iteration, candidate.policy, starts_of, n_c=count(candidate.domains))
    return candidate.policy, found.certificate


def _candidate(run: Procedure, iteration: int, key: Key[Array, ""], init: Any) -> Solved:
    s, (n_c, _) = run.settings, run.sizes(iteration)
    if init is None and s.start == "controller":
        init = _start(run, iteration, key)

    def make(report: Report) -> Arrays:
        return find_candidate(key, run.env, run.candidate, n_c, init, report, s.hidden).to_arrays()

    like = fnn(key, run.env, s.hidden) if init is None else init
    return Solved.from_arrays(run.block(iteration, "candidate", n_c, make), like)


def _start(run: Procedure, iteration: int, key: Key[Array, ""]) -> FNN:
    """An imitation of the platform's controller, with the key that a new network would have."""
    _, k_init, _ = jax.random.split(key, 3)
    s = run.settings

    def make(report: Report) -> Arrays:
        return to_arrays(first_policy(k_init, run.env, s.start, s.hidden, lambda one: report(imitation_progress(one))))

    return from_arrays(run.block(iteration, "imitation", 0, make), fnn(key, run.env, s.hidden))


def _first(many: Solution) -> Solution:
    """The only problem's solution; `evaluated_at` has no axis over problems."""
    many = eqx.tree_at(lambda s: s.evaluated_at, many, many.evaluated_at[None])
    return jax.tree.map(lambda x: x[0], many)


def _lowest(tried: list[tuple[Any, Certificate]]) -> tuple[Any, Certificate]:
    """The policy with the lowest bound; the first that is certified has it."""
    return min(tried, key=lambda one: one[1].ucbog)


def _result(run: Procedure, tried: list[tuple[Any, Certificate]], reason: str) -> Result:
    policy, certificate = _lowest(tried)
    history = tuple(c for _, c in tried)
    return Result(policy, certificate, history.index(certificate) + 1, history, reason, sum(run.seconds))
