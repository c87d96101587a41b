"""A certificate for a policy that exists already, whoever trained it: where its references start from, and the rest.

found = assess_policy(jax.random.key(0), env, policy, Analytic(), candidate=Analytic(), against={"runs/a": other})
print(found.certificate)

References that start from a poor policy may never come near the best. So each starts, on its own domains, from the best
of all policies that there are: the assessed one, a candidate of our own, and those that someone knows. Then, however
weak the optimizer is, the gap is at least what these earn more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.certify.algorithm import find_candidate
from spota.certify.certificate import Certificate
from spota.certify.comparison import Comparison, Solved, returns_everywhere
from spota.certify.events import Assessed, Listener
from spota.certify.looks import Starts, decide
from spota.certify.procedure import Memo, Procedure, block_name, compute
from spota.certify.references import reference_domains
from spota.certify.settings import Spota, constant
from spota.files.blocks import Arrays, from_arrays, to_arrays
from spota.policies.contract import Contract
from spota.policies.imitate import Imitation, imitate
from spota.policies.network import FNN, Linear, fnn
from spota.polopt.solve import Report
from spota.polopt.solver import AnyOptimizer, as_solver
from spota.sim.env import Platform, Policy
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
    optimizer: AnyOptimizer,
    settings: Spota | None = None,
    *,
    candidate: AnyOptimizer | None = None,
    against: Mapping[str, Policy] | None = None,
    memo: Memo = compute,
    report: Listener | None = None,
) -> Assessment:
    """A certificate for a policy that exists already, from references on n_r domains each that `optimizer` trains.

    Each reference starts from the best, on its own domains, of: the policy itself; a candidate of our own, which
    `candidate` trains on n_c other domains, if given; and policies `against` which it shall stand, by name. What is no
    network of the policy's size is imitated by one. References are compared with the policy itself in all cases.
    """
    settings, known = replace(settings or Spota(), spend_alpha="none"), dict(against or {})  # one policy, one test
    for one in (policy, *known.values()):
        if isinstance(one, FNN | Linear):
            one.contract.check(env)
    run = Procedure(key, env, as_solver(candidate or optimizer), optimizer, settings, constant, memo, report)
    networks, imitations = _line_up(run, policy, known, with_own=candidate is not None)

    def notes(starts: Mapping[str, int]) -> tuple[str, ...]:
        return tuple(_doubts(env, imitations, starts))

    found = decide(run, 1, policy, lambda look: _starts(run, look, networks), None, notes)
    run.tell(Assessed(1, found.certificate, found.certificate, policy))
    return Assessment(found.certificate, found.comparison, imitations.get(IMITATED), sum(run.seconds))


def earnings(
    key: Key[Array, ""],
    env: Platform,
    networks: Mapping[str, FNN],
    domains: dict[str, Float[Array, "n_G n_r"]],
    n_J: int,
) -> Float[np.ndarray, "networks n_G"]:
    """What each network earns on the domains of each reference, with the same random numbers for all of them."""
    keys = jax.random.split(key, (*next(iter(domains.values())).shape, n_J))
    earned = [returns_everywhere(env, network, domains, keys).mean(axis=(1, 2)) for network in networks.values()]
    return np.stack([np.asarray(returns) for returns in earned])


def _line_up(
    run: Procedure, policy: Policy, known: Mapping[str, Policy], with_own: bool
) -> tuple[dict[str, FNN], dict[str, Imitation]]:
    """All that a reference may start from, as networks of one size, and those of them that are imitations."""
    keys = run.keys(1)
    k_policy, *k_known = jax.random.split(keys.imitation, 1 + len(known))
    network, imitation = _network(run, k_policy, policy, None, "imitation")
    networks, imitations = {ITSELF if imitation is None else IMITATED: network}, {IMITATED: imitation}
    if with_own:
        networks[OURS] = _own_candidate(run, keys.candidate, network.hidden)
    for i, (name, other) in enumerate(known.items()):
        networks[name], imitations[name] = _network(run, k_known[i], other, network.hidden, f"imitation-{i + 1}")
    return networks, {name: found for name, found in imitations.items() if found is not None}


def _starts(run: Procedure, look: int, networks: Mapping[str, FNN]) -> Starts:
    """The best network for each reference on its own domains; the first of those that are equally good."""
    s, keys, n = run.settings, run.keys(1, look), run.settings.joining(look)
    domains, _ = reference_domains(keys.references, run.env, s.n_r, n)

    def make(report: Report) -> Arrays:
        del report
        return {"earned": earnings(keys.starts, run.env, networks, domains, s.n_J)}

    chosen = run.block(1, block_name("starts", look), s.n_r, make, n)["earned"].argmax(axis=0)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[chosen], *networks.values())
    return Starts(stacked, {name: int((chosen == i).sum()) for i, name in enumerate(networks)})


def _own_candidate(run: Procedure, key: Key[Array, ""], hidden: tuple[int, ...]) -> FNN:
    """A candidate that knows nothing of the assessed policy, but has a network of its size."""
    n_c = run.settings.n_c

    def make(report: Report) -> Arrays:
        return find_candidate(key, run.env, run.candidate, n_c, None, report, hidden).to_arrays()

    return Solved.from_arrays(run.block(1, "candidate", n_c, make), fnn(key, run.env, hidden)).policy


def _network(
    run: Procedure, key: Key[Array, ""], policy: Policy, hidden: tuple[int, ...] | None, block: str
) -> tuple[FNN, Imitation | None]:
    """The policy as a network that references can start from: itself, or an imitation if its kind or size differs."""
    contract = Contract.of(run.env)
    if isinstance(policy, FNN) and hidden in (None, policy.hidden):
        if policy.contract.observation_scale == contract.observation_scale:
            return FNN(policy.weights, policy.biases, contract), None
        hidden = policy.hidden
    size = hidden or run.settings.hidden
    like = Imitation(fnn(key, run.env, size), jnp.zeros(1), jnp.zeros(1), jnp.zeros(()))
    arrays = run.block(1, block, 0, lambda _: to_arrays(imitate(key, run.env, policy, size)))
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
