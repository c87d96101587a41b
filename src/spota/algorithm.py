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
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota import devices, rollout
from spota.blocks import Arrays, from_arrays, to_arrays
from spota.bootstrap import check_alpha
from spota.certificate import METHODS, SPENDING, Certificate, Performance, Subject, assess, figure, fingerprint, measure
from spota.domain import Domains, count
from spota.gap import RULES, Gaps, check_choice, gap_samples, reject_outliers
from spota.policies.imitate import Imitation, imitate
from spota.policies.network import FNN, fnn
from spota.polopt.rows import Rows, Score, row_returns
from spota.polopt.solve import Optimizer, Progress, Report, Solution
from spota.polopt.solver import Solver, as_solver
from spota.types import Env, Policy

NonDecrSeq = Callable[[int, int], int]
"""(n_0, iteration) → n; iterations count from 1, and n never falls."""


def linear_growth(n_0: int, iteration: int) -> int:
    """n_0, 2 n_0, 3 n_0, …: the paper's."""
    return n_0 * iteration


def doubling(n_0: int, iteration: int) -> int:
    """n_0, 2 n_0, 4 n_0, …"""
    return n_0 * 2 ** (iteration - 1)


def constant(n_0: int, iteration: int) -> int:
    """n_0 for ever."""
    del iteration
    return n_0


GROWTHS: dict[str, NonDecrSeq] = {"linear": linear_growth, "doubling": doubling, "constant": constant}


@dataclass(frozen=True)
class Spota:
    """The settings of Algorithm 1, under the paper's names."""

    n_c: int = 5
    """Domains of the first candidate."""
    n_r: int = 1
    """Domains of a reference in the first iteration."""
    n_G: int = 20
    """References."""
    n_J: int = 50
    """Rollouts a domain in the comparison."""
    n_b: int = 1000
    """Resamples of the bootstrap."""
    alpha: float = 0.05
    """Probability of error."""
    beta: float = 50.0
    """Threshold of trust: the largest loss of return, on average, that is accepted."""
    max_iterations: int = 10
    """The run ends here, certified or not."""
    max_seconds: float | None = None
    """No iteration begins after this time; time before an interruption counts."""
    growth: str = "linear"
    """How n_c and n_r grow over the iterations: linear (the paper's), doubling or constant."""
    method: str = "studentized_reference"
    """The interval that decides; docs/coverage.md says why, and `basic_pooled` is the paper's."""
    rejection: str = "first"
    """A negative gap is replaced by the first better reference's (the paper's), or by the best."""
    warm_start: bool = False
    """Whether a candidate starts from the one before."""
    spend_alpha: str = "none"
    """Whether α is spent over the iterations, each of which is a test: none (the paper's), halves or squares."""
    performance_domains: int = 2000
    """Unseen domains for the bounds on the return; 0 leaves them out."""
    worst_share: float = 0.2
    """The share of rollouts that counts as worst."""
    hidden: tuple[int, ...] = (16, 16)
    """Hidden layers of a new policy."""
    chunk: int | None = None
    """References that the comparison runs at once; None means all. It changes the memory that is used, nothing else."""

    def __post_init__(self):
        """Refuse settings that cannot work."""
        for name in ("n_c", "n_r", "n_G", "n_J", "n_b", "max_iterations"):
            _at_least(name, getattr(self, name), 1)
        _at_least("performance_domains", self.performance_domains, 0)
        if self.chunk is not None:
            _at_least("chunk", self.chunk, 1)
        check_alpha(self.alpha)
        for name in ("beta", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name}={value}: must be positive and finite; write {name}=60.")
        if not 0 < self.worst_share <= 1:
            raise ValueError(f"worst_share={self.worst_share}: a share is in ]0, 1]; write worst_share=0.2.")
        check_choice("method", self.method, METHODS)
        check_choice("rejection", self.rejection, RULES)
        check_choice("spend_alpha", self.spend_alpha, SPENDING)
        check_choice("growth", self.growth, GROWTHS)

    @classmethod
    def paper(cls, env_name: str, **others: Any) -> "Spota":
        """The values of tab_exp_hparams, with the paper's interval."""
        own = {"ball-balancer": {"beta": 50.0, "n_J": 120}, "cart-pole": {"beta": 60.0, "n_J": 50}}
        check_choice("env_name", env_name, own)
        return cls(**{"method": "basic_pooled", **own[env_name], **others})


Memo = Callable[[str, Callable[[], Arrays]], Arrays]
"""(name of a block, how to compute it) → its arrays, stored or computed."""


def compute(name: str, block: Callable[[], Arrays]) -> Arrays:
    """The memo that remembers nothing."""
    del name
    return block()


@dataclass(frozen=True)
class BlockStarted:
    """A block begins; `n` is the number of domains of one problem in it."""

    iteration: int
    block: str
    n: int


@dataclass(frozen=True)
class BlockFinished:
    """A block ended; `replayed` if the memo had its result."""

    iteration: int
    block: str
    seconds: float
    replayed: bool


@dataclass(frozen=True)
class Solving:
    """An optimizer's word from inside a block."""

    iteration: int
    block: str
    progress: Progress


@dataclass(frozen=True)
class Assessed:
    """An iteration ended with this certificate; `best_ucbog` is the lowest so far."""

    iteration: int
    certificate: Certificate
    best_ucbog: float


Event = BlockStarted | BlockFinished | Solving | Assessed
Listener = Callable[[Event], None]


class Solved(eqx.Module):
    """Domains, and what the optimizer found on them: one candidate, or n_G references with a leading axis."""

    domains: dict[str, Float[Array, "*problems n"]]
    solution: Solution

    @property
    def policy(self) -> Any:
        """The best policy that was found, or all of them."""
        return self.solution.policy

    def to_arrays(self) -> Arrays:
        """For the memo; all but the policy's arrays have names of their own."""
        s = self.solution
        figures = {"returns": s.score.returns, "survival": s.score.survival}
        start = {"start_returns": s.start.returns, "start_survival": s.start.survival}
        curves = {"curve": s.curve, "survival_curve": s.survival, "evaluated_at": s.evaluated_at}
        plain = {**figures, **start, **curves, "diverged": s.diverged}
        return {
            **to_arrays({"domain": self.domains, "policy": self.policy}),
            **{name: np.asarray(value) for name, value in plain.items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], like: Any) -> "Solved":
        """Read what `to_arrays` wrote; `like` is any policy of the same structure."""
        a = {name: jnp.asarray(value) for name, value in arrays.items()}
        domains = {name.removeprefix("domain."): value for name, value in a.items() if name.startswith("domain.")}
        score = _scores(a["returns"], a["survival"]), _scores(a["start_returns"], a["start_survival"])
        curves = a["curve"], a["survival_curve"], a["evaluated_at"]
        policy = from_arrays(arrays, {"policy": like})["policy"]
        return cls(domains, Solution(policy, *score, *curves, a["diverged"]))


class Comparison(eqx.Module):
    """Returns of candidate and references on the references' domains, with the same random numbers, and their gaps."""

    candidate_returns: Float[Array, "n_G n_r n_J"]
    reference_returns: Float[Array, "n_G n_r n_J"]
    improvement: Float[Array, "n_G"]
    """Mean gain of each reference over its start, on its own domains."""
    cross_gaps: Float[Array, "n_G n_G n_r"]
    """[k', k, i]: gap against reference k' on domain ξ_i^k; NaN where nobody asked."""
    gaps: Gaps

    def to_arrays(self) -> Arrays:
        """For the memo."""
        return to_arrays(self)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Comparison":
        """Read what `to_arrays` wrote."""
        a = {name: jnp.asarray(value) for name, value in arrays.items()}
        gaps = Gaps(**{name: a[f"gaps.{name}"] for name in ("raw", "final", "replaced", "clipped")})
        own = ("candidate_returns", "reference_returns", "improvement", "cross_gaps")
        return cls(**{name: a[name] for name in own}, gaps=gaps)


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


@dataclass(frozen=True)
class Assessment:
    """A certificate for a policy that existed before; `imitation` is set if references had to start from one."""

    certificate: Certificate
    comparison: Comparison
    imitation: Imitation | None


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


def compare(
    key: Key[Array, ""],
    env: Env,
    candidate: Policy,
    references: Solved,
    n_J: int,
    rule: str = "first",
    chunk: int | None = None,
    start: Policy | None = None,
) -> Comparison:
    """Gaps of the candidate on the references' domains, with synchronised seeds and outlier rejection.

    `start` is what the references started from, if it is not the candidate itself.
    """
    n_G, n_r = next(iter(references.domains.values())).shape
    keys = jax.random.split(key, (n_G, n_r, n_J))  # one key a rollout, for everybody: SPOTA_seed_sync_start
    candidate_returns = _everywhere(env, candidate, references.domains, keys)
    reference_returns = returns_of_each(env, references.policy, references.domains, keys, chunk)
    raw = gap_samples(reference_returns, candidate_returns)  # SPOTA_optgap_diff_sample
    cross = _cross_gaps(env, references, keys, candidate_returns, raw, chunk)
    gaps = _reject(raw, cross, rule)  # SPOTA_outlier_rejection_start
    before = candidate_returns if start is None else _everywhere(env, start, references.domains, keys)
    improvement = gap_samples(reference_returns, before).mean(axis=1)
    return Comparison(candidate_returns, reference_returns, improvement, cross, gaps)


def returns_of_each(
    env: Env,
    policies: Any,
    domains: dict[str, Float[Array, "K n"]],
    keys: Key[Array, "K n m"],
    chunk: int | None = None,
) -> Float[Array, "K n m"]:
    """Returns of K policies, each on its own n domains with m rollouts; `chunk` policies run as one program."""
    K, n, m = keys.shape
    width = min(chunk or K, K)
    rows = {name: jnp.repeat(column, m, axis=-1) for name, column in domains.items()}, keys.reshape(K, n * m)
    parts = []
    for first in range(0, K, width):
        index = np.minimum(np.arange(first, first + width), K - 1)  # the last one fills up: one shape, one program
        some, theirs = (x if width == K else _chosen(x, index) for x in (policies, rows))
        some = devices.replicate(some)
        pieces = devices.chunks(theirs, max(1, rollout.CHUNK // width))
        parts.append(devices.gather([(_row_returns(env, some, d, k), size) for (d, k), size in pieces]))
    return jnp.concatenate(parts)[:K].reshape(K, n, m)


def spota(
    key: Key[Array, ""],
    env: Env,
    optimizer: Optimizer | Solver,
    settings: Spota | None = None,
    *,
    init: Any = None,
    sequence: NonDecrSeq | None = None,
    memo: Memo = compute,
    report: Listener | None = None,
) -> Result:
    """Algorithm 1: candidates on more and more domains, until the upper bound on their gap is at most β.

    `init` is a policy that the candidates start from instead of new ones; `sequence` overrides `settings.growth`.
    """
    settings = settings or Spota()
    run = _Run(key, env, as_solver(optimizer), settings, sequence or GROWTHS[settings.growth], memo, report)
    tried: list[tuple[Any, Certificate]] = []
    seconds = 0.0
    for iteration in range(1, settings.max_iterations + 1):
        begun = time.monotonic()
        start = tried[-1][0] if settings.warm_start and tried else init
        tried.append(_iterate(run, iteration, start))
        best = min(range(len(tried)), key=lambda i: tried[i][1].ucbog)
        run.tell(Assessed(iteration, tried[-1][1], tried[best][1].ucbog))
        # What an interrupted run has spent already is spent: the time is a result like any other.
        seconds += float(memo(f"{_name(iteration)}/time", lambda b=begun: _elapsed(b))["seconds"])
        if tried[-1][1].certified:  # SPOTA_stopping_criterion
            return _result(tried, len(tried) - 1, "certified")
        if settings.max_seconds is not None and seconds >= settings.max_seconds:
            return _result(tried, best, "max_seconds")
    return _result(tried, min(range(len(tried)), key=lambda i: tried[i][1].ucbog), "max_iterations")


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
    """A certificate for a policy that exists already, from references on n_r domains each.

    References start from the policy itself if it is a network, else from a network that imitates it; they are compared
    with the policy itself in both cases.
    """
    settings = settings or Spota()
    if isinstance(policy, FNN):
        policy.contract.check(env)
    run = _Run(key, env, as_solver(optimizer), settings, constant, memo, report)
    k_imitate, k_references, k_compare, k_bootstrap, k_performance = run.keys(1)
    imitation = None if isinstance(policy, FNN) else _imitation(run, k_imitate, policy)
    start = policy if imitation is None else imitation.policy
    notes = () if imitation is None else tuple(_imitation_doubts(env, imitation))
    references = _references(run, 1, k_references, start)
    comparison = _comparison(run, 1, k_compare, policy, references, None if imitation is None else start)
    certificate = _certificate(run, 1, k_bootstrap, k_performance, policy, comparison, None, notes)
    run.tell(Assessed(1, certificate, certificate.ucbog))
    return Assessment(certificate, comparison, imitation)


@dataclass(frozen=True)
class _Run:
    """What stays the same over the iterations."""

    key: Key[Array, ""]
    env: Env
    solver: Solver
    settings: Spota
    sequence: NonDecrSeq
    memo: Memo
    listener: Listener | None = field(default=None)

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

    def block(self, iteration: int, name: str, n: int, make: Callable[[Report], Arrays]) -> Arrays:
        """Let the memo give the arrays of a block, and report its beginning and end."""
        self.tell(BlockStarted(iteration, name, n))
        begun, computed = time.monotonic(), []

        def now() -> Arrays:
            computed.append(name)
            return make(lambda progress: self.tell(Solving(iteration, name, progress)))

        arrays = self.memo(f"{_name(iteration)}/{name}", now)
        self.tell(BlockFinished(iteration, name, time.monotonic() - begun, not computed))
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

    def make(report: Report) -> Arrays:
        return find_candidate(key, run.env, run.solver, n_c, init, report, s.hidden).to_arrays()

    like = fnn(key, run.env, s.hidden) if init is None else init
    return Solved.from_arrays(run.block(iteration, "candidate", n_c, make), like)


def _references(run: _Run, iteration: int, key: Key[Array, ""], start: Any) -> Solved:
    _, n_r = run.sizes(iteration)

    def make(report: Report) -> Arrays:
        return find_references(key, run.env, run.solver, start, n_r, run.settings.n_G, report).to_arrays()

    return Solved.from_arrays(run.block(iteration, "references", n_r, make), start)


def _comparison(
    run: _Run, iteration: int, key: Key[Array, ""], candidate: Policy, references: Solved, start: Any = None
) -> Comparison:
    s = run.settings

    def make(report: Report) -> Arrays:
        del report
        return compare(key, run.env, candidate, references, s.n_J, s.rejection, s.chunk, start).to_arrays()

    _, n_r = run.sizes(iteration)
    return Comparison.from_arrays(run.block(iteration, "comparison", n_r, make))


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

    return Certificate.from_json(str(run.block(iteration, "certificate", comparison.gaps.raw.shape[1], make)["json"]))


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


def _cross_gaps(
    env: Env,
    references: Solved,
    keys: Key[Array, "n_G n_r n_J"],
    candidate_returns: Float[Array, "n_G n_r n_J"],
    raw: Float[Array, "n_G n_r"],
    chunk: int | None,
) -> Float[Array, "n_G n_G n_r"]:
    """The gaps against all references on those domains where the own one lost; NaN elsewhere."""
    n_G = raw.shape[0]
    cross = np.full((n_G, *raw.shape), np.nan, np.float32)
    lost = np.nonzero(np.asarray(raw) < 0)
    if lost[0].size:
        there = {name: np.asarray(column)[lost] for name, column in references.domains.items()}
        domains = {name: jnp.asarray(np.tile(column, (n_G, 1))) for name, column in there.items()}
        same_keys = keys[lost]  # for every reference
        same_keys = jnp.broadcast_to(same_keys[None], (n_G, *same_keys.shape))
        theirs = np.asarray(returns_of_each(env, references.policy, domains, same_keys, chunk))
        cross[:, *lost] = (theirs - np.asarray(candidate_returns)[lost]).mean(axis=-1)
    return jnp.asarray(cross)


def _everywhere(
    env: Env, policy: Policy, domains: dict[str, Float[Array, "K n"]], keys: Key[Array, "K n m"]
) -> Float[Array, "K n m"]:
    """Returns of one policy on all domains."""
    K, n, m = keys.shape
    flat: Domains = {name: column.reshape(K * n) for name, column in domains.items()}
    return rollout.returns(env, policy, flat, keys.reshape(K * n, m)).returns.reshape(K, n, m)


_reject = eqx.filter_jit(reject_outliers)  # one program instead of twenty small ones


@eqx.filter_jit
def _row_returns(
    env: Env, policies: Any, domains: dict[str, Float[Array, "K rows"]], keys: Key[Array, "K rows"]
) -> Float[Array, "K rows"]:
    return jax.vmap(lambda policy, d, k: row_returns(env, rollout.acting_with(policy), Rows(d, k))[0])(
        policies, domains, keys
    )


def _chosen(tree: Any, index: np.ndarray) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


def _repeated(policy: Any, times: int) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (times, *jnp.shape(x))), policy)


def _first(many: Solution) -> Solution:
    """The only problem's solution; `evaluated_at` has no axis over problems."""
    many = eqx.tree_at(lambda s: s.evaluated_at, many, many.evaluated_at[None])
    return jax.tree.map(lambda x: x[0], many)


def _scores(returns: Float[Array, "*problems"], survival: Float[Array, "*problems"]) -> Score:
    make: Callable = jax.vmap(Score) if returns.ndim else Score
    return make(returns, survival)


def _result(tried: list[tuple[Any, Certificate]], chosen: int, reason: str) -> Result:
    policy, certificate = tried[chosen]
    return Result(policy, certificate, chosen + 1, tuple(c for _, c in tried), reason)


def _elapsed(begun: float) -> Arrays:
    return {"seconds": np.array(time.monotonic() - begun)}


def _seed(key: Key[Array, ""]) -> int:
    """The number that `jax.random.key` makes this key of."""
    high, low = np.asarray(jax.random.key_data(key), np.uint64)[:2]
    return int(high << np.uint64(32) | low)


def _name(iteration: int) -> str:
    return f"iteration-{iteration:02d}"


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name}={value}: must be at least {least}; write {name}={max(least, 1)}.")
