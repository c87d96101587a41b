"""What references start from: the best of several policies, each judged on the domains of the reference.

References that start from a poor policy may never come near the best, and those that start from a good one may stay on
its plateau. With several starts the gap is at least what the best of them earns more, however weak the solver is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.certify.comparison import returns_everywhere
from spota.certify.procedure import Procedure, block_name
from spota.certify.references import reference_domains, repeated
from spota.files.blocks import Arrays
from spota.polopt.solve import Watch
from spota.sim.env import Platform

CANDIDATE = "the candidate"
"""Where references start from that start from the policy which they are compared with."""


@dataclass(frozen=True)
class Starts:
    """What each reference of a look starts from, with a leading axis, and how many start from which policy."""

    policies: Any
    counts: Mapping[str, int]


def best_starts(run: Procedure, iteration: int, look: int, networks: Mapping[str, Any]) -> Starts:
    """The best network for each reference on its own domains; the first of those that are equally good."""
    n = run.settings.joining(look)
    if len(networks) == 1:
        ((name, network),) = networks.items()
        return Starts(repeated(network, n), {name: n})
    (_, n_r), keys = run.sizes(iteration), run.keys(iteration, look)
    domains, _ = reference_domains(keys.references, run.env, n_r, n)

    def make(watch: Watch) -> Arrays:
        del watch
        return {"earned": earnings(keys.starts, run.env, networks, domains, run.settings.n_J)}

    chosen = run.block(iteration, block_name("starts", look), n_r, make, n)["earned"].argmax(axis=0)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[chosen], *networks.values())
    return Starts(stacked, {name: int((chosen == i).sum()) for i, name in enumerate(networks)})


def earnings(
    key: Key[Array, ""],
    env: Platform,
    networks: Mapping[str, Any],
    domains: dict[str, Float[Array, "n_G n_r"]],
    n_J: int,
) -> Float[np.ndarray, "networks n_G"]:
    """What each network earns on the domains of each reference, with the same random numbers for all of them."""
    keys = jax.random.split(key, (*next(iter(domains.values())).shape, n_J))
    earned = [returns_everywhere(env, network, domains, keys).mean(axis=(1, 2)) for network in networks.values()]
    return np.stack([np.asarray(returns) for returns in earned])
