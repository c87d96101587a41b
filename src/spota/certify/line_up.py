"""All that the references of an existing policy may start from, as networks of one architecture.

That is the policy's own, if it is a network, as wide as ours and as all others of its depth, with the longest memory
among them: the comparison is fair only if a reference can remember what the policy remembers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from spota.certify.candidates import trained_candidate
from spota.certify.procedure import Procedure
from spota.files.blocks import from_arrays, to_arrays
from spota.policies.architecture import Architecture, Network, architecture_of, holds, new_network, widened
from spota.policies.contract import Contract
from spota.policies.imitate import Imitation, imitate
from spota.policies.network import fnn
from spota.policies.one_of import as_one_of
from spota.policies.onnx_policy import Imported
from spota.polopt.optimizer import trains_memory
from spota.sim.acting import remembers
from spota.sim.env import Policy

ITSELF, IMITATED, OURS = "the policy", "its imitation", "our candidate"
"""Where references start from, besides the policies that someone knows."""
USUAL_MEMORY = 8
"""Observations that references act on if the policy has a memory of its own kind, unless told otherwise."""


def line_up(
    run: Procedure, policy: Policy, known: Mapping[str, Policy], with_own: bool
) -> tuple[dict[str, Any], dict[str, Imitation]]:
    """All that a reference may start from, as networks of one kind, and those of them that are imitations.

    Beside a network from an ONNX file stands one of ours, without memory, and each reference is one of both.
    """
    k_policy, *k_known = jax.random.split(run.keys(1).imitation, 1 + len(known))
    architecture = common((policy, *known.values()), run.settings.architecture)
    if not trains_memory(run.reference_solver) or isinstance(policy, Imported):
        architecture = Architecture(architecture.hidden)
    networks: dict[str, Any] = {ITSELF: policy}
    imitations: dict[str, Imitation | None] = {}
    if not isinstance(policy, Imported):
        network, imitation = _network(run, k_policy, policy, architecture, "imitation")
        networks, imitations = {ITSELF if imitation is None else IMITATED: network}, {IMITATED: imitation}
    if with_own:  # it knows nothing of the assessed policy
        own = trained_candidate(run, 1, run.settings.n_c, architecture=architecture, imitation="imitation-own")
        networks |= {OURS: own.policy, **own.rivals}
    for i, (name, other) in enumerate(known.items()):
        networks[name], imitations[name] = _network(run, k_known[i], other, architecture, f"imitation-{i + 1}")
    if isinstance(policy, Imported):
        new = fnn(k_policy, run.env, architecture.hidden)
        networks = {name: as_one_of(network, policy, new) for name, network in networks.items()}
    return networks, {name: found for name, found in imitations.items() if found is not None}


def common(policies: Sequence[Policy], usual: Architecture) -> Architecture:
    """An architecture that holds the first policy, the usual one, and others where it can."""
    found = [one for one in map(architecture_of, policies) if one is not None]
    first = architecture_of(policies[0])
    if first is None and remembers(policies[0]) and not usual.remembers:
        usual = replace(usual, memory=USUAL_MEMORY)
    known = [*found, usual] if first else [usual, *found]
    depth = len(known[0].hidden)
    hidden = tuple(map(max, zip(*(one.hidden for one in known if len(one.hidden) == depth), strict=True)))
    kind = next((one for one in known if one.remembers), known[0])
    alike = [one for one in known if one.stride == kind.stride and bool(one.recurrent) == bool(kind.recurrent)]
    memory, recurrent = (max(getattr(one, size) for one in alike) for size in ("memory", "recurrent"))
    return Architecture(hidden, memory, kind.stride, recurrent)


def _network(
    run: Procedure, key: Key[Array, ""], policy: Policy, architecture: Architecture, block: str
) -> tuple[Network, Imitation | None]:
    """The policy as a network that references can start from: itself, or an imitation if it cannot be part of one."""
    new: Any = new_network(key, run.env, architecture)
    own, scale = architecture_of(policy), Contract.of(run.env).observation_scale
    fits = own is not None and holds(architecture, own)
    if fits and isinstance(policy, Network) and policy.contract.observation_scale == scale:
        return widened(policy, new), None
    like = Imitation(new, jnp.zeros(1), jnp.zeros(1), jnp.zeros(()))
    arrays = run.block(1, block, 0, lambda _: to_arrays(imitate(key, run.env, policy, architecture)))
    imitation = from_arrays(arrays, like)
    return imitation.policy, imitation
