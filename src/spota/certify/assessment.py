"""A certificate for a policy that exists already, whoever trained it: where its references start from, and the rest.

found = assess_policy(key, env, policy, Analytic(), candidate_solver=Analytic(), against={"runs/a": other})
print(found.certificate)

Each reference starts, on its own domains, from the best of all policies that there are: the assessed one, candidates of
our own, and those that someone knows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from spota.certify.candidates import trained_candidate
from spota.certify.certificate import Certificate
from spota.certify.comparison import Comparison
from spota.certify.events import Assessed, Listener
from spota.certify.looks import decide
from spota.certify.procedure import Memo, Procedure, compute
from spota.certify.settings import Spota, constant
from spota.certify.starts import best_starts
from spota.files.blocks import from_arrays, to_arrays
from spota.policies.contract import Contract
from spota.policies.imitate import Imitation, imitate
from spota.policies.network import FNN, Linear, fnn, widened
from spota.policies.one_of import as_one_of
from spota.policies.onnx_policy import Imported
from spota.polopt.solver import AnySolver, as_solver
from spota.sim.env import Platform, Policy
from spota.sim.host_policy import ready
from spota.text import figure

ITSELF, IMITATED, OURS = "the policy", "its imitation", "our candidate"
"""Where references start from, besides the policies that someone knows."""
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
) -> Assessment:
    """A certificate for a policy that exists already, from references on n_r domains each that `solver` trains.

    Each reference starts from the best, on its own domains, of: the policy itself; candidates of our own, which
    `candidate_solver` trains on n_c other domains, if given; and policies `against` which it shall stand, by name. A
    network from an ONNX file is a start itself, beside ours. Other policies that are no network of the policy's depth
    are imitated by one, and a narrow network is widened first. References are compared with the policy itself in all
    cases.
    """
    settings, known = replace(settings or Spota(), spend_alpha="none"), dict(against or {})  # one policy, one test
    policy, known = ready(env, policy), {name: ready(env, other) for name, other in known.items()}
    for one in (policy, *known.values()):
        if isinstance(one, FNN | Linear | Imported):
            one.contract.check(env)
    run = Procedure(key, env, as_solver(candidate_solver or solver), solver, settings, constant, memo, listener)
    networks, imitations = _line_up(run, policy, known, with_own=candidate_solver is not None)

    def notes(starts: Mapping[str, int]) -> tuple[str, ...]:
        return tuple(_doubts(env, imitations, starts))

    found = decide(run, 1, policy, lambda look: best_starts(run, 1, look, networks), None, notes)
    run.tell(Assessed(1, found.certificate, found.certificate, policy))
    return Assessment(found.certificate, found.comparison, imitations.get(IMITATED), sum(run.seconds))


def _line_up(
    run: Procedure, policy: Policy, known: Mapping[str, Policy], with_own: bool
) -> tuple[dict[str, Any], dict[str, Imitation]]:
    """All that a reference may start from, as networks of one kind, and those of them that are imitations."""
    k_policy, *k_known = jax.random.split(run.keys(1).imitation, 1 + len(known))
    hidden = _size((policy, *known.values()), run.settings.hidden)
    networks: dict[str, Any] = {ITSELF: policy}
    imitations: dict[str, Imitation | None] = {}
    if not isinstance(policy, Imported):
        network, imitation = _network(run, k_policy, policy, hidden, "imitation")
        networks, imitations = {ITSELF if imitation is None else IMITATED: network}, {IMITATED: imitation}
    if with_own:  # it knows nothing of the assessed policy
        own = trained_candidate(run, 1, run.settings.n_c, hidden=hidden, imitation="imitation-own")
        networks |= {OURS: own.policy, **own.rivals}
    for i, (name, other) in enumerate(known.items()):
        networks[name], imitations[name] = _network(run, k_known[i], other, hidden, f"imitation-{i + 1}")
    if isinstance(policy, Imported):
        new = fnn(k_policy, run.env, hidden)
        networks = {name: as_one_of(network, policy, new) for name, network in networks.items()}
    return networks, {name: found for name, found in imitations.items() if found is not None}


def _size(policies: Sequence[Policy], usual: tuple[int, ...]) -> tuple[int, ...]:
    """Hidden layers that hold the first policy, as wide as the usual ones and as all others of its depth."""
    sizes = [policy.hidden for policy in policies if isinstance(policy, FNN)]
    first = sizes[0] if isinstance(policies[0], FNN) else usual
    return tuple(map(max, zip(*(size for size in (*sizes, usual) if len(size) == len(first)), strict=True)))


def _network(
    run: Procedure, key: Key[Array, ""], policy: Policy, hidden: tuple[int, ...], block: str
) -> tuple[FNN, Imitation | None]:
    """The policy as a network that references can start from: itself, or an imitation if its kind or depth differs."""
    scale = Contract.of(run.env).observation_scale
    if isinstance(policy, FNN) and len(policy.hidden) == len(hidden) and policy.contract.observation_scale == scale:
        return widened(policy, fnn(key, run.env, hidden)), None
    like = Imitation(fnn(key, run.env, hidden), jnp.zeros(1), jnp.zeros(1), jnp.zeros(()))
    arrays = run.block(1, block, 0, lambda _: to_arrays(imitate(key, run.env, policy, hidden)))
    imitation = from_arrays(arrays, like)
    return imitation.policy, imitation


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
