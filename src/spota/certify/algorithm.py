"""Algorithm 1 (algo_SPOTA): candidates one after the other, each looked at until it is decided.

settings = Spota.paper("cart-pole")
result = spota(jax.random.key(0), make("cart-pole"), Analytic(), settings)
print(result.certificate)
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Key

from spota.certify.candidates import trained_candidate
from spota.certify.certificate import Certificate
from spota.certify.events import Assessed, Listener
from spota.certify.looks import Decision, decide, time_is_over
from spota.certify.procedure import Memo, Procedure, Spread, compute, together
from spota.certify.settings import GROWTHS, NonDecrSeq, Spota
from spota.certify.starts import CANDIDATE, Starts, best_starts
from spota.polopt.solver import AnySolver
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


def spota(
    key: Key[Array, ""],
    env: Platform,
    solver: AnySolver,
    settings: Spota | None = None,
    *,
    reference_solver: AnySolver | None = None,
    init: Any = None,
    sequence: NonDecrSeq | None = None,
    memo: Memo = compute,
    listener: Listener | None = None,
    spread: Spread = together,
) -> Result:
    """Algorithm 1: candidates on more and more domains, until the upper bound on the gap of one is at most β.

    If a candidate is neither certified nor refuted, more references join it, `settings.looks` times at most, before
    the next one is tried; α is spent over all that. A reference that earned more than the candidate on unseen domains,
    for sure, is where one training of the next candidate starts.

    `solver` trains the candidates and, unless there is another one in `reference_solver`, the references. `init` is a
    policy that the candidates start from instead of new ones; `sequence` overrides `settings.growth`; `spread` says
    where problems are solved.
    """
    settings = settings or Spota()
    growth = sequence or GROWTHS[settings.growth]
    run = Procedure(key, env, solver, reference_solver or solver, settings, growth, memo, listener, spread)
    tried: list[tuple[Any, Certificate]] = []
    better = None
    for iteration in range(1, settings.max_iterations + 1):
        start, before = tried[-1][0] if settings.warm_start and tried else init, sum(run.seconds)
        candidate, found = _iterate(run, iteration, start, better)
        tried.append((candidate, found.certificate))
        better = found.better
        policy, best = _lowest(tried)
        run.tell(Assessed(iteration, tried[-1][1], best, policy))
        if best.certified:  # SPOTA_stopping_criterion
            return _result(run, tried, "certified")
        if time_is_over(run, sum(run.seconds) - before):  # the next one will not be faster
            return _result(run, tried, "max_seconds")
    return _result(run, tried, "max_iterations")


def _iterate(run: Procedure, iteration: int, init: Any, better: Any) -> tuple[Any, Decision]:
    """One iteration: a candidate, then references that join it until it is decided."""
    n_c, _ = run.sizes(iteration)
    candidate = trained_candidate(run, iteration, n_c, init, better=better)
    networks = {CANDIDATE: candidate.policy, **candidate.rivals}

    def starts_of(look: int) -> Starts:
        return best_starts(run, iteration, look, networks)  # SPOTA_ref_init

    return candidate.policy, decide(run, iteration, candidate.policy, starts_of, n_c)


def _lowest(tried: list[tuple[Any, Certificate]]) -> tuple[Any, Certificate]:
    """The policy with the lowest bound; the first that is certified has it."""
    return min(tried, key=lambda one: one[1].ucbog)


def _result(run: Procedure, tried: list[tuple[Any, Certificate]], reason: str) -> Result:
    policy, certificate = _lowest(tried)
    history = tuple(c for _, c in tried)
    return Result(policy, certificate, history.index(certificate) + 1, history, reason, sum(run.seconds))
