"""A certificate for a policy that exists already, whoever trained it: where its references start from, and the rest.

found = assess_policy(key, env, policy, Analytic(), candidate_solver=Analytic(), against={"runs/a": other})
print(found.certificate)

Each reference starts, on its own domains, from the best of all policies that there are: the assessed one, candidates of
our own, and those that someone knows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Array, Key

from spota.certify.certificate import Certificate
from spota.certify.comparison import Comparison
from spota.certify.events import Assessed, Listener
from spota.certify.line_up import IMITATED, line_up
from spota.certify.looks import decide
from spota.certify.procedure import Memo, Procedure, Spread, compute, together
from spota.certify.settings import Spota, constant
from spota.certify.starts import best_starts
from spota.policies import Stored
from spota.policies.imitate import Imitation
from spota.policies.onnx_policy import Imported
from spota.polopt.solver import AnySolver
from spota.sim.acting import remembers
from spota.sim.env import Platform, Policy
from spota.sim.host_policy import ready
from spota.text import figure

POOR_IMITATION = 0.05
"""An imitation that earns less than its original by this share of all returns is poor."""


@dataclass(frozen=True)
class Assessment:
    """A certificate for a policy that existed before; `imitation` is set if a network had to stand in for it."""

    certificate: Certificate
    comparison: Comparison
    imitation: Imitation | None
    seconds: float
    """What all blocks have cost."""


def assess_policy(
    key: Key[Array, ""],
    env: Platform,
    policy: Policy,
    solver: AnySolver,
    settings: Spota | None = None,
    *,
    candidate_solver: AnySolver | None = None,
    against: Mapping[str, Policy] | None = None,
    memo: Memo = compute,
    listener: Listener | None = None,
    spread: Spread = together,
) -> Assessment:
    """A certificate for a policy that exists already, from references on n_r domains each that `solver` trains.

    Each reference starts from the best, on its own domains, of: the policy itself; candidates of our own, which
    `candidate_solver` trains on n_c other domains, if given; and policies `against` which it shall stand, by name. A
    network from an ONNX file is a start itself, beside ours. Other policies that are no network of the policy's depth
    are imitated by one, and a narrow network is widened first. They all have the policy's memory, if it has one.
    References are compared with the policy itself in all cases.
    """
    settings, known = replace(settings or Spota(), spend_alpha="none"), dict(against or {})  # one policy, one test
    for one in (policy, *known.values()):
        if isinstance(one, Stored | Imported):
            one.contract.check(env)
    policy, known = ready(env, policy), {name: ready(env, other) for name, other in known.items()}
    run = Procedure(key, env, candidate_solver or solver, solver, settings, constant, memo, listener, spread)
    networks, imitations = line_up(run, policy, known, with_own=candidate_solver is not None)

    def notes(starts: Mapping[str, int]) -> tuple[str, ...]:
        return (*_doubts(env, imitations, starts), *_without_memory(policy, networks))

    found = decide(run, 1, policy, lambda look: best_starts(run, 1, look, networks), None, notes)
    run.tell(Assessed(1, found.certificate, found.certificate, policy))
    return Assessment(found.certificate, found.comparison, imitations.get(IMITATED), sum(run.seconds))


def _doubts(env: Platform, imitations: Mapping[str, Imitation], starts: Mapping[str, int]) -> Iterator[str]:
    """An imitation that is much worse than its original is a poor start, and no opponent like the original."""
    for name, imitation in imitations.items():
        ours, theirs = float(imitation.returns.mean()), float(imitation.original_returns.mean())
        if theirs - ours <= POOR_IMITATION * (env.max_return - env.min_return):
            continue
        earns = f"earns {figure(ours)} where the original earns {figure(theirs)}"
        if name != IMITATED:
            yield f"References could start from {name} only as a network that imitates it, which {earns}."
        elif starts[name]:
            yield (
                f"{starts[name]} references started from a network that imitates the policy. It {earns}: they "
                "had to make up for that first, and may be weak."
            )


def _without_memory(policy: Policy, networks: Mapping[str, Any]) -> Iterator[str]:
    """References that remember nothing are no match for a policy that does."""
    if remembers(policy) and not any(remembers(network) for network in networks.values()):
        yield (
            "The policy has a memory, and its references have none, because their solver trains none: what the "
            "policy loses may look too small."
        )
