"""Algorithm 1 (algo_SPOTA): candidate, references, comparison and assessment, each a function, and the loop over them.

settings = Spota.paper("cart-pole")
result = spota(jax.random.key(0), make("cart-pole"), Analytic(), settings)
print(result.certificate)

Every block's result goes through a `memo` as named arrays, and everything after it is computed from what the memo gave
back: a run that stores them continues where it was stopped, with the same numbers to the last bit.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota import rollout
from spota.blocks import Arrays, from_arrays, to_arrays
from spota.certificate import Certificate, Subject, fingerprint
from spota.comparison import Comparison, Solved, compare
from spota.domain import Domains, count
from spota.effort import EXACT, Effort, gains, train_longer
from spota.events import Assessed, BlockFinished, BlockStarted, Event, Listener, Solving
from spota.policies import FNN, first_policy, fnn
from spota.polopt.solve import Optimizer, Report, Solution
from spota.polopt.solver import Solver, as_solver, is_optimal, with_effort
from spota.settings import GROWTHS, NonDecrSeq, Spota
from spota.training import imitation_progress
from spota.types import Env, Policy
from spota.verdict import Rollouts, assess, measure

Memo = Callable[[str, Callable[[], Arrays]], Arrays]
"""(name of a block, how to compute it) → its arrays, stored or computed."""

PILOT = 2000
"""Unseen domains that serve nothing but the choice of the level at which the split interval cuts."""


def compute(name: str, block: Callable[[], Arrays]) -> Arrays:
    """The memo that remembers nothing."""
    del name
    return block()


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
    env: Env,
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


def find_references(
    key: Key[Array, ""], env: Env, solver: Solver, start: Any, n_r: int, n_G: int, report: Report | None = None
) -> Solved:
    """Solve n_G programs of n_r random domains each, all from the same policy, all as one call of the solver."""
    return references_from(key, env, solver, repeated(start, n_G), n_r, n_G, report)  # SPOTA_ref_init


def references_from(
    key: Key[Array, ""], env: Env, solver: Solver, starts: Any, n_r: int, n_G: int, report: Report | None = None
) -> Solved:
    """The same, each from a policy of its own: `starts` has a leading axis over the references."""
    domains, k_solve = reference_domains(key, env, n_r, n_G)
    return Solved(domains, solver(jax.random.split(k_solve, n_G), env, domains, starts, report))  # SPOTA_optpol_ref


def reference_domains(
    key: Key[Array, ""], env: Env, n_r: int, n_G: int
) -> tuple[dict[str, Float[Array, "n_G n_r"]], Key[Array, ""]]:
    """The domains of the references, and the key that is left to solve for them."""
    k_domains, k_solve = jax.random.split(key)
    drawn = env.domain.sample(k_domains, n_G * n_r)  # SPOTA_ref_DR
    return {name: column.reshape(n_G, n_r) for name, column in drawn.items()}, k_solve


def spota(
    key: Key[Array, ""],
    env: Env,
    optimizer: Optimizer | Solver,
    settings: Spota | None = None,
    *,
    references: Optimizer | Solver | None = None,
    init: Any = None,
    sequence: NonDecrSeq | None = None,
    memo: Memo = compute,
    report: Listener | None = None,
) -> Result:
    """Algorithm 1: candidates on more and more domains, until the upper bound on their gap is at most β.

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
        if settings.max_seconds is not None and sum(run.seconds) >= settings.max_seconds:
            return _result(run, tried, "max_seconds")
    return _result(run, tried, "max_iterations")


class Keys(NamedTuple):
    """The keys of an iteration; what they are for never shares one."""

    candidate: Key[Array, ""]
    references: Key[Array, ""]
    comparison: Key[Array, ""]
    bootstrap: Key[Array, ""]
    performance: Key[Array, ""]
    effort: Key[Array, ""]
    imitation: Key[Array, ""]
    starts: Key[Array, ""]
    pilot: Key[Array, ""]


@dataclass(frozen=True)
class Procedure:
    """What stays the same over the iterations, and how a block is computed."""

    key: Key[Array, ""]
    env: Env
    candidate: Solver
    references: Optimizer | Solver
    settings: Spota
    sequence: NonDecrSeq
    memo: Memo
    listener: Listener | None = None
    seconds: list[float] = field(default_factory=list)
    """What each block so far has cost, in this process or in an earlier one."""

    def keys(self, iteration: int) -> Keys:
        """The keys of an iteration."""
        return Keys(*jax.random.split(jax.random.fold_in(self.key, iteration), len(Keys._fields)))

    def sizes(self, iteration: int) -> tuple[int, int]:
        """n_c and n_r of an iteration."""
        now, before = (
            tuple(int(self.sequence(n, max(i, 1))) for n in (self.settings.n_c, self.settings.n_r))
            for i in (iteration, iteration - 1)
        )
        if min(now) < 1 or any(n < old for n, old in zip(now, before, strict=True)):
            raise ValueError(
                f"The sequence gives n_c, n_r = {before} and then {now}: sizes are at least 1 and never fall; "
                "write e.g. sequence=lambda n_0, k: n_0 * k."
            )
        return now[0], now[1]

    def tell(self, event: Event) -> None:
        """Report, if anyone listens."""
        if self.listener is not None:
            self.listener(event)

    def block(self, iteration: int, name: str, n: int, make: Callable[[Report], Arrays], problems: int = 1) -> Arrays:
        """Let the memo give the arrays of a block, and report its beginning and end."""
        self.tell(BlockStarted(iteration, name, n, problems))
        computed = []

        def now() -> Arrays:
            begun = time.monotonic()
            arrays = make(lambda progress: self.tell(Solving(iteration, name, progress)))
            computed.append(name)
            # What an interrupted run has spent is spent: the time is a result like any other.
            return {**arrays, "seconds": np.array(time.monotonic() - begun)}

        arrays = self.memo(f"{block_directory(iteration)}/{name}", now)
        self.seconds.append(float(arrays["seconds"]))
        self.tell(BlockFinished(iteration, name, self.seconds[-1], not computed, arrays))
        return arrays


def _iterate(run: Procedure, iteration: int, init: Any) -> tuple[Any, Certificate]:
    """One iteration: the four blocks of Algorithm 1, and what stands beside them."""
    keys = run.keys(iteration)
    candidate = _candidate(run, iteration, keys.candidate, init)
    starts = repeated(candidate.policy, run.settings.n_G)  # SPOTA_ref_init
    references = references_block(run, iteration, keys.references, starts)
    effort = effort_block(run, iteration, keys.effort, references, starts)
    comparison = comparison_block(run, iteration, keys.comparison, candidate.policy, references)
    certificate = certificate_block(
        run, iteration, candidate.policy, comparison, effort,
        starts={"the candidate": run.settings.n_G}, n_c=count(candidate.domains),
    )  # fmt: skip
    return candidate.policy, certificate


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


def references_block(run: Procedure, iteration: int, key: Key[Array, ""], starts: Any) -> Solved:
    """The references, each from its own start."""
    (_, n_r), n_G = run.sizes(iteration), run.settings.n_G

    def make(report: Report) -> Arrays:
        return references_from(key, run.env, as_solver(run.references), starts, n_r, n_G, report).to_arrays()

    return Solved.from_arrays(run.block(iteration, "references", n_r, make, n_G), starts)


def effort_block(run: Procedure, iteration: int, key: Key[Array, ""], references: Solved, starts: Any) -> Effort | None:
    """What the first references gain by a longer training; None if nobody can or wants to measure it."""
    s, (_, n_r) = run.settings, run.sizes(iteration)
    longer = with_effort(run.references, s.effort_factor)
    if is_optimal(run.references):
        return EXACT
    if longer is None or s.n_effort == 0:
        return None

    def make(report: Report) -> Arrays:
        k_solve, k_compare = jax.random.split(key)
        found = train_longer(k_solve, run.env, as_solver(longer), references, starts, s.n_effort, report)
        return {**found.to_arrays(), "gains": gains(k_compare, run.env, found, references, s.n_J, s.chunk)}

    return Effort(run.block(iteration, "effort", n_r, make, s.n_effort)["gains"], s.effort_factor)


def comparison_block(
    run: Procedure, iteration: int, key: Key[Array, ""], candidate: Policy, references: Solved, starts: Any = None
) -> Comparison:
    """Candidate against references; `starts` if these did not start from it."""
    s = run.settings

    def make(report: Report) -> Arrays:
        del report
        return compare(key, run.env, candidate, references, s.n_J, s.rejection, s.chunk, starts).to_arrays()

    _, n_r = run.sizes(iteration)
    return Comparison.from_arrays(run.block(iteration, "comparison", n_r, make, s.n_G))


def certificate_block(
    run: Procedure,
    iteration: int,
    policy: Policy,
    comparison: Comparison,
    effort: Effort | None,
    *,
    starts: Mapping[str, int],
    n_c: int | None,
    notes: tuple[str, ...] = (),
) -> Certificate:
    """Measure the policy on unseen domains, and bound what it loses."""
    s, env, keys = run.settings, run.env, run.keys(iteration)
    subject = Subject(
        env.name, _seed(run.key), env.domain.to_dict(), env.min_return, env.max_return, fingerprint(policy), n_c, s.n_J
    )  # fmt: skip
    performance = rollouts = None
    if s.performance_domains:
        found = _unseen(run, iteration, keys, policy)
        performance = measure(
            found["returns"], float(found["survived"].mean()), env.min_return, env.max_return, s.alpha, s.worst_share
        )
        compared = np.asarray(comparison.candidate_returns), np.asarray(comparison.best_known)
        rollouts = Rollouts(*compared, found["returns"], found["pilot"])

    def make(report: Report) -> Arrays:
        del report
        certificate = assess(
            keys.bootstrap, comparison.gaps, subject, threshold=s.beta, method=s.method, alpha=s.alpha, n_b=s.n_b,
            iteration=iteration, spending=s.spend_alpha, rollouts=rollouts, effort=effort, starts=starts,
            improvement=float(comparison.improvement.mean()), performance=performance, notes=notes,
        )  # fmt: skip
        return {"json": np.array(certificate.to_json())}

    return Certificate.from_json(str(run.block(iteration, "certificate", 0, make)["json"]))


def _unseen(run: Procedure, iteration: int, keys: Keys, policy: Policy) -> Arrays:
    """The policy's returns on unseen domains, one rollout each, and on those of a pilot."""
    env, n = run.env, run.settings.performance_domains

    def make(report: Report) -> Arrays:
        del report
        both = _new_domains(keys.performance, env, n), _new_domains(keys.pilot, env, PILOT)
        outcome = rollout.returns(env, policy, *jax.tree.map(lambda *parts: jnp.concatenate(parts), *both))
        returns, survived = np.asarray(outcome.returns[:, 0]), np.asarray(outcome.survived[:, 0])
        return {"returns": returns[:n], "survived": survived[:n], "pilot": returns[n:]}

    return run.block(iteration, "performance", n, make)


def _new_domains(key: Key[Array, ""], env: Env, n: int) -> tuple[Domains, Key[Array, "n 1"]]:
    """Domains, and a key for one rollout on each."""
    k_domains, k_rollouts = jax.random.split(key)
    return env.domain.sample(k_domains, n), jax.random.split(k_rollouts, (n, 1))


def repeated(policy: Any, times: int) -> Any:
    """One policy several times, with a leading axis."""
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (times, *jnp.shape(x))), policy)


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


def _seed(key: Key[Array, ""]) -> int:
    """The number that `jax.random.key` makes this key of."""
    high, low = np.asarray(jax.random.key_data(key), np.uint64)[:2]
    return int(high << np.uint64(32) | low)


def block_directory(iteration: int) -> str:
    """Where the blocks of an iteration are."""
    return f"iteration-{iteration:02d}"
