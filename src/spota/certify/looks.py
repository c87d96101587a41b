"""Look at a policy until it is decided: certified, refuted or, after the last look, undecided.

A look trains references on new domains, some of them longer, compares all with the policy, and bounds what it loses. If
it is neither certified nor refuted, the next look adds as many references as there are: n_G, 2 n_G, 4 n_G. α is spent
over the looks, whose number is fixed beforehand; to stop earlier, because time is over, costs nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.certify.certificate import Certificate, Subject
from spota.certify.comparison import Comparison, Solved, compare, returns_of_each
from spota.certify.effort import NO_LONGER, Longer, joined, longer_returns, train_longer
from spota.certify.procedure import Procedure, block_name
from spota.certify.references import references_from
from spota.certify.starts import CANDIDATE, Starts
from spota.certify.verdict import Rollouts, certify, challenged, measure
from spota.files.blocks import Arrays
from spota.policies import fingerprint
from spota.polopt.solve import Watch
from spota.polopt.solver import is_optimal, with_effort
from spota.sim import randomness, rollout
from spota.sim.domain import Domains
from spota.sim.env import Platform, Policy
from spota.stats.spending import Trial
from spota.stats.split import gap_at_least

PILOT = 2000
"""Unseen domains that serve nothing but choices: of the level at which the split interval cuts, and of a challenger."""
CHALLENGED_ON = 500
"""How many of them show which reference is best anywhere."""


@dataclass(frozen=True)
class Look:
    """What joined in one look."""

    references: Any
    """The policies, with a leading axis."""
    longer: Longer | None
    comparison: Comparison
    starts: Mapping[str, int]


@dataclass(frozen=True)
class Decision:
    """The last look's certificate, and the comparison of all looks that it rests on."""

    certificate: Certificate
    comparison: Comparison
    better: Policy | None
    """A reference that earns more on unseen domains for sure, if there is one."""


Notes = Callable[[Mapping[str, int]], tuple[str, ...]]
"""Warnings that depend on how many references started from which policy."""


def decide(
    run: Procedure,
    iteration: int,
    policy: Policy,
    starts_of: Callable[[int], Starts],
    n_c: int | None,
    notes: Notes = lambda _: (),
) -> Decision:
    """Look at the policy until there is a verdict, no more looks, or no time for another."""
    s, env, unseen = run.settings, run.env, None
    subject = Subject(
        env.name, randomness.seed_of(run.key), env.domain.to_dict(), env.min_return, env.max_return,
        fingerprint(policy), n_c, s.n_J, env.domain.recordings,
    )  # fmt: skip
    seen: list[Look] = []
    better: Policy | None = None
    while True:
        look, before = len(seen) + 1, sum(run.seconds)
        seen.append(_look(run, iteration, look, policy, starts_of(look)))
        unseen = _unseen(run, iteration, policy) if look == 1 else unseen
        together = _joined(seen)
        certificate = _certificate(run, iteration, look, subject, together, unseen, notes(together.starts))
        if unseen is not None and may_be_refuted(certificate):
            certificate, better = _challenged(run, iteration, look, together.references, unseen, certificate)
        cost = (sum(run.seconds) - before) * s.joining(look + 1) / s.joining(look)
        if not more_references_help(certificate) or look == s.looks or time_is_over(run, cost):
            return Decision(certificate, together.comparison, better)


def may_be_refuted(certificate: Certificate) -> bool:
    """Whether a better policy would settle it, and returns keep to a range, so that there is a bound on its gain."""
    return certificate.verdict == "undecided" and certificate.method == "split" and certificate.split is not None


def more_references_help(certificate: Certificate) -> bool:
    """Whether it would be certified if nothing about the references were left to chance."""
    c = certificate
    if c.verdict != "undecided":
        return False
    rare = c.split.rare.bound - c.split.rare.mean if c.method == "split" and c.split is not None else 0.0
    return c.mean_gap + rare + (c.effort_gain or 0.0) <= c.threshold


def time_is_over(run: Procedure, wanted: float = 0.0) -> bool:
    """Whether no time is left, or less than that many seconds."""
    limit = run.settings.max_seconds
    return limit is not None and sum(run.seconds) + wanted >= limit


def _look(run: Procedure, iteration: int, look: int, policy: Policy, starts: Starts) -> Look:
    """The blocks of a look at a policy, up to the comparison."""
    references = _references(run, iteration, look, starts.policies)
    longer = _longer(run, iteration, look, references, starts.policies)
    comparison = _comparison(run, iteration, look, policy, references, starts)
    return Look(references.policy, longer, comparison, starts.counts)


def _joined(seen: list[Look]) -> Look:
    """All looks as one."""
    if len(seen) == 1:
        return seen[0]
    parts = [one.longer for one in seen if one.longer is not None]
    longer = joined(parts) if parts else None
    counts = {name: sum(one.starts[name] for one in seen) for name in seen[0].starts}
    references, comparison = (
        jax.tree.map(lambda *parts: jnp.concatenate(parts), *(getattr(one, part) for one in seen))
        for part in ("references", "comparison")
    )
    return Look(references, longer, comparison, counts)


def _references(run: Procedure, iteration: int, look: int, starts: Any) -> Solved:
    """The references that join, each from its own start."""
    (_, n_r), n = run.sizes(iteration), run.settings.joining(look)
    key, block = run.keys(iteration, look).references, block_name("references", look)

    def make(watch: Watch) -> Arrays:
        solver = run.solver(run.reference_solver, iteration, block)
        return references_from(key, run.env, solver, starts, n_r, n, watch).to_arrays()

    return Solved.from_arrays(run.block(iteration, block, n_r, make, n), starts)


def _longer(run: Procedure, iteration: int, look: int, references: Solved, starts: Any) -> Longer | None:
    """The first of those that join and their longer trainings; None if nobody can or wants to measure these."""
    s, (_, n_r), m = run.settings, run.sizes(iteration), run.settings.trained_longer(look)
    solver, block = with_effort(run.reference_solver, s.effort_factor), block_name("effort", look)
    if is_optimal(run.reference_solver):
        return NO_LONGER
    if solver is None or m == 0:
        return None

    def make(watch: Watch) -> Arrays:
        k_solve, k_compare = jax.random.split(run.keys(iteration, look).effort)
        found = train_longer(k_solve, run.env, run.solver(solver, iteration, block), references, starts, m, watch)
        longer, usual = longer_returns(k_compare, run.env, found, references, s.n_J, s.chunk)
        return {**found.to_arrays(), "longer_returns": longer, "usual_returns": usual}

    arrays = run.block(iteration, block, n_r, make, m)
    if "longer_returns" not in arrays:
        raise ValueError(
            f"The block {block} of iteration {iteration} was written by an earlier version of spota, which kept less "
            "of it; begin the run anew in another directory, with --out."
        )
    return Longer(arrays["longer_returns"], arrays["usual_returns"], s.effort_factor)


def _comparison(
    run: Procedure, iteration: int, look: int, policy: Policy, references: Solved, starts: Starts
) -> Comparison:
    """The policy against the references that join."""
    s, key = run.settings, run.keys(iteration, look).comparison
    before = None if set(starts.counts) == {CANDIDATE} else starts.policies

    def make(watch: Watch) -> Arrays:
        del watch
        return compare(key, run.env, policy, references, s.n_J, s.rejection, s.chunk, before).to_arrays()

    _, n_r = run.sizes(iteration)
    block = block_name("comparison", look)
    return Comparison.from_arrays(run.block(iteration, block, n_r, make, s.joining(look)))


def _certificate(
    run: Procedure,
    iteration: int,
    look: int,
    subject: Subject,
    seen: Look,
    unseen: Arrays | None,
    notes: tuple[str, ...],
) -> Certificate:
    """Bound what the policy loses, and what it earns on unseen domains."""
    s, comparison, performance, rollouts = run.settings, seen.comparison, None, None
    if unseen is not None:
        survived = float(unseen["survived"].mean())
        range_ = subject.min_return, subject.max_return
        performance = measure(unseen["returns"], survived, *range_, s.alpha, s.worst_share)
        compared = np.asarray(comparison.candidate_returns), np.asarray(comparison.best_known)
        rollouts = Rollouts(*compared, unseen["returns"], unseen["pilot"])
    floor = -np.inf if rollouts is None or s.method != "split" else rollouts.floor
    effort = None if seen.longer is None else seen.longer.above(floor)
    trial = Trial(iteration, s.max_iterations, look, s.looks, s.spend_alpha)

    def make(watch: Watch) -> Arrays:
        del watch
        certificate = certify(
            run.keys(iteration, look).bootstrap, comparison.gaps, subject, trial,
            threshold=s.beta, method=s.method, alpha=s.alpha, n_b=s.n_b,
            rollouts=rollouts, effort=effort, starts=seen.starts,
            improvement=float(comparison.improvement.mean()), performance=performance, notes=notes,
            blocks=run.contents_of(iteration),
        )  # fmt: skip
        return _as_arrays(certificate)

    return _from_arrays(run.block(iteration, block_name("certificate", look), 0, make))


def _unseen(run: Procedure, iteration: int, policy: Policy) -> Arrays | None:
    """The policy's returns on unseen domains, one rollout each, and on those of a pilot; None if nobody wants them."""
    env, n, keys = run.env, run.settings.performance_domains, run.keys(iteration)
    if n == 0:
        return None

    def make(watch: Watch) -> Arrays:
        del watch
        unseen, theirs = _new_domains(keys.performance, env, n)
        pilot, its = _new_domains(keys.pilot, env, PILOT)
        domains = {name: jnp.asarray(np.concatenate([unseen[name], pilot[name]])) for name in unseen}
        outcome = rollout.returns(env, policy, domains, randomness.joined([theirs, its]))
        returns, survived = outcome.returns[:, 0], outcome.survived[:, 0]
        return {"returns": returns[:n], "survived": survived[:n], "pilot": returns[n:]}

    return run.block(iteration, "performance", n, make)


def _challenged(
    run: Procedure, iteration: int, look: int, references: Any, unseen: Arrays, certificate: Certificate
) -> tuple[Certificate, Policy | None]:
    """What the reference that is best on domains of the pilot earns more than the policy on unseen ones, at least.

    The reference itself stands beside if that is more than nothing.
    """
    env, n, keys, mine = run.env, run.settings.performance_domains, run.keys(iteration), unseen["returns"]

    def make(watch: Watch) -> Arrays:
        del watch
        best = int(np.argmax(_means(env, references, *_new_domains(keys.pilot, env, CHALLENGED_ON))))
        challenger = jax.tree.map(lambda x: x[best], references)
        theirs = np.asarray(rollout.returns(env, challenger, *_new_domains(keys.performance, env, n)).returns[:, 0])
        alpha = certificate.alpha + certificate.effort_alpha
        lower = gap_at_least(theirs, mine, env.min_return, env.max_return, alpha)
        return {**_as_arrays(challenged(certificate, lower)), "reference": np.array(best + 1), "returns": theirs}

    arrays = run.block(iteration, block_name("challenger", look), n, make)
    told, best = _from_arrays(arrays), int(arrays["reference"]) - 1
    return told, jax.tree.map(lambda x: x[best], references) if (told.gap_at_least or 0.0) > 0 else None


def _means(env: Platform, policies: Any, domains: Domains, keys: Key[Array, "n 1"]) -> Float[np.ndarray, "K"]:
    """The mean return of each policy on the same domains with the same random numbers."""
    K = jax.tree.leaves(policies)[0].shape[0]
    same = {name: jnp.asarray(np.broadcast_to(column, (K, *column.shape))) for name, column in domains.items()}
    returns = returns_of_each(env, policies, same, jnp.broadcast_to(keys, (K, *keys.shape)))
    return np.asarray(returns.mean(axis=(1, 2)))


def _new_domains(key: Key[Array, ""], env: Platform, n: int) -> tuple[Domains, Key[Array, "n 1"]]:
    """Domains, and a key for one rollout on each."""
    k_domains, k_rollouts = jax.random.split(key)
    return env.domain.sample(k_domains, n), jax.random.split(k_rollouts, (n, 1))


def _as_arrays(certificate: Certificate) -> Arrays:
    return {"json": np.array(certificate.to_json())}


def _from_arrays(arrays: Arrays) -> Certificate:
    return Certificate.from_json(str(arrays["json"]))
