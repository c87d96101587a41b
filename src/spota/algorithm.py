"""Algorithm 1 (algo_SPOTA): candidate, references, comparison and assessment, each a function, and the loop over them.

settings = Spota.paper("cart-pole")
result = spota(jax.random.key(0), make("cart-pole"), Analytic(), settings)
print(result.certificate)

Every block's result goes through a `memo` as named arrays, and everything after it is computed from what the memo gave
back: a run that stores them continues where it was stopped, with the same numbers to the last bit.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota import rollout
from spota.blocks import Arrays, from_arrays, to_arrays
from spota.certificate import Certificate, Performance, Subject, assess, figure, fingerprint, measure
from spota.comparison import Comparison, Solved, compare
from spota.domain import count
from spota.events import Assessed, BlockFinished, BlockStarted, Event, Listener, Solving
from spota.policies import FNN, Linear, first_policy, fnn
from spota.policies.imitate import Imitation, imitate
from spota.polopt.solve import Optimizer, Report, Solution
from spota.polopt.solver import Solver, as_solver
from spota.settings import GROWTHS, NonDecrSeq, Spota, constant
from spota.training import imitation_progress
from spota.types import Env, Policy

Memo = Callable[[str, Callable[[], Arrays]], Arrays]
"""(name of a block, how to compute it) → its arrays, stored or computed."""


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


@dataclass(frozen=True)
class Assessment:
    """A certificate for a policy that existed before; `imitation` is set if references had to start from one."""

    certificate: Certificate
    comparison: Comparison
    imitation: Imitation | None
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
    one = solver(k_solve[None], env, problem, _repeated(init, 1), report)  # SPOTA_optpol_cand
    return Solved(domains, _first(one))


def find_references(
    key: Key[Array, ""], env: Env, solver: Solver, start: Any, n_r: int, n_G: int, report: Report | None = None
) -> Solved:
    """Solve n_G programs of n_r random domains each, all from the same policy, all as one call of the solver."""
    k_domains, k_solve = jax.random.split(key)
    drawn = env.domain.sample(k_domains, n_G * n_r)  # SPOTA_ref_DR
    domains = {name: column.reshape(n_G, n_r) for name, column in drawn.items()}
    starts = _repeated(start, n_G)  # SPOTA_ref_init
    return Solved(domains, solver(jax.random.split(k_solve, n_G), env, domains, starts, report))  # SPOTA_optpol_ref


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
    candidates, others = as_solver(optimizer), as_solver(references or optimizer)
    run = _Run(key, env, candidates, others, settings, sequence or GROWTHS[settings.growth], memo, report)
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


def assess_policy(
    key: Key[Array, ""],
    env: Env,
    policy: Policy,
    optimizer: Optimizer | Solver,
    settings: Spota | None = None,
    *,
    memo: Memo = compute,
    report: Listener | None = None,
) -> Assessment:
    """A certificate for a policy that exists already, from references on n_r domains each that `optimizer` trains.

    References start from the policy itself if it is a network, else from a network that imitates it; they are compared
    with the policy itself in both cases.
    """
    settings = settings or Spota()
    if isinstance(policy, FNN | Linear):
        policy.contract.check(env)
    solver = as_solver(optimizer)
    run = _Run(key, env, solver, solver, settings, constant, memo, report)
    k_imitate, k_references, k_compare, k_bootstrap, k_performance = run.keys(1)
    imitation = None if isinstance(policy, FNN) else _imitation(run, k_imitate, policy)
    start = policy if imitation is None else imitation.policy
    notes = () if imitation is None else tuple(_imitation_doubts(env, imitation))
    references = _references(run, 1, k_references, start)
    comparison = _comparison(run, 1, k_compare, policy, references, None if imitation is None else start)
    certificate = _certificate(run, 1, k_bootstrap, k_performance, policy, comparison, None, notes)
    run.tell(Assessed(1, certificate, certificate, policy))
    return Assessment(certificate, comparison, imitation, sum(run.seconds))


@dataclass(frozen=True)
class _Run:
    """What stays the same over the iterations."""

    key: Key[Array, ""]
    env: Env
    candidate: Solver
    references: Solver
    settings: Spota
    sequence: NonDecrSeq
    memo: Memo
    listener: Listener | None = None
    seconds: list[float] = field(default_factory=list)
    """What each block so far has cost, in this process or in an earlier one."""

    def keys(self, iteration: int) -> Key[Array, "5"]:
        """Candidate, references, comparison, bootstrap and performance never share a key."""
        return jax.random.split(jax.random.fold_in(self.key, iteration), 5)

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


def _iterate(run: _Run, iteration: int, init: Any) -> tuple[Any, Certificate]:
    """One iteration: the four blocks of Algorithm 1."""
    k_candidate, k_references, k_compare, k_bootstrap, k_performance = run.keys(iteration)
    candidate = _candidate(run, iteration, k_candidate, init)
    references = _references(run, iteration, k_references, candidate.policy)
    comparison = _comparison(run, iteration, k_compare, candidate.policy, references)
    n_c = count(candidate.domains)
    certificate = _certificate(run, iteration, k_bootstrap, k_performance, candidate.policy, comparison, n_c)
    return candidate.policy, certificate


def _candidate(run: _Run, iteration: int, key: Key[Array, ""], init: Any) -> Solved:
    s, (n_c, _) = run.settings, run.sizes(iteration)
    if init is None and s.start == "controller":
        init = _start(run, iteration, key)

    def make(report: Report) -> Arrays:
        return find_candidate(key, run.env, run.candidate, n_c, init, report, s.hidden).to_arrays()

    like = fnn(key, run.env, s.hidden) if init is None else init
    return Solved.from_arrays(run.block(iteration, "candidate", n_c, make), like)


def _start(run: _Run, iteration: int, key: Key[Array, ""]) -> FNN:
    """An imitation of the platform's controller, with the key that a new network would have."""
    _, k_init, _ = jax.random.split(key, 3)
    s = run.settings

    def make(report: Report) -> Arrays:
        return to_arrays(first_policy(k_init, run.env, s.start, s.hidden, lambda one: report(imitation_progress(one))))

    return from_arrays(run.block(iteration, "imitation", 0, make), fnn(key, run.env, s.hidden))


def _references(run: _Run, iteration: int, key: Key[Array, ""], start: Any) -> Solved:
    (_, n_r), n_G = run.sizes(iteration), run.settings.n_G

    def make(report: Report) -> Arrays:
        return find_references(key, run.env, run.references, start, n_r, n_G, report).to_arrays()

    return Solved.from_arrays(run.block(iteration, "references", n_r, make, n_G), start)


def _comparison(
    run: _Run, iteration: int, key: Key[Array, ""], candidate: Policy, references: Solved, start: Any = None
) -> Comparison:
    s = run.settings

    def make(report: Report) -> Arrays:
        del report
        return compare(key, run.env, candidate, references, s.n_J, s.rejection, s.chunk, start).to_arrays()

    _, n_r = run.sizes(iteration)
    return Comparison.from_arrays(run.block(iteration, "comparison", n_r, make, s.n_G))


def _certificate(
    run: _Run,
    iteration: int,
    k_bootstrap: Key[Array, ""],
    k_performance: Key[Array, ""],
    policy: Policy,
    comparison: Comparison,
    n_c: int | None,
    notes: tuple[str, ...] = (),
) -> Certificate:
    """Bootstrap the gaps, and measure the policy on unseen domains."""
    s, env = run.settings, run.env
    subject = Subject(
        env.name, _seed(run.key), env.domain.to_dict(), env.max_return, fingerprint(policy), n_c, s.n_J
    )  # fmt: skip
    performance = _performance(run, iteration, k_performance, policy) if s.performance_domains else None

    def make(report: Report) -> Arrays:
        del report
        certificate = assess(
            k_bootstrap, comparison.gaps, subject, threshold=s.beta, method=s.method, alpha=s.alpha, n_b=s.n_b,
            iteration=iteration, spending=s.spend_alpha, improvement=float(comparison.improvement.mean()),
            performance=performance, notes=notes,
        )  # fmt: skip
        return {"json": np.array(certificate.to_json())}

    return Certificate.from_json(str(run.block(iteration, "certificate", 0, make)["json"]))


def _performance(run: _Run, iteration: int, key: Key[Array, ""], policy: Policy) -> Performance:
    s, env = run.settings, run.env

    def make(report: Report) -> Arrays:
        del report
        k_domains, k_rollouts = jax.random.split(key)
        domains = env.domain.sample(k_domains, s.performance_domains)
        outcome = rollout.returns(env, policy, domains, jax.random.split(k_rollouts, (s.performance_domains, 1)))
        return {"returns": np.asarray(outcome.returns[:, 0]), "survived": np.asarray(outcome.survived[:, 0])}

    found = run.block(iteration, "performance", s.performance_domains, make)
    share = float(found["survived"].mean())
    return measure(found["returns"], share, env.min_return, env.max_return, s.alpha, s.worst_share)


def _imitation(run: _Run, key: Key[Array, ""], policy: Policy) -> Imitation:
    hidden = run.settings.hidden
    like = Imitation(fnn(key, run.env, hidden), jnp.zeros(1), jnp.zeros(1), jnp.zeros(()))
    arrays = run.block(1, "imitation", 0, lambda _: to_arrays(imitate(key, run.env, policy, hidden)))
    return from_arrays(arrays, like)


def _imitation_doubts(env: Env, imitation: Imitation):
    ours, theirs = float(imitation.returns.mean()), float(imitation.original_returns.mean())
    if theirs - ours > 0.05 * (env.max_return - env.min_return):
        yield (
            f"The references started from a network that imitates the policy, and it earns {figure(ours)} where the "
            f"policy earns {figure(theirs)}: they had to make up for that first, and may be weak."
        )


def _repeated(policy: Any, times: int) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (times, *jnp.shape(x))), policy)


def _first(many: Solution) -> Solution:
    """The only problem's solution; `evaluated_at` has no axis over problems."""
    many = eqx.tree_at(lambda s: s.evaluated_at, many, many.evaluated_at[None])
    return jax.tree.map(lambda x: x[0], many)


def _lowest(tried: list[tuple[Any, Certificate]]) -> tuple[Any, Certificate]:
    """The policy with the lowest bound; the first that is certified has it."""
    return min(tried, key=lambda one: one[1].ucbog)


def _result(run: _Run, tried: list[tuple[Any, Certificate]], reason: str) -> Result:
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
