"""A solver of your own: separable CMA-ES from the package `cma`, for candidates and references of SPOTA.

It is called for ONE problem and returns a policy like its start. spota calls it for every candidate and reference, and
keeps the start where that earns more. `iterations` lets spota train some references longer, to see if they are strong.
"""

from dataclasses import dataclass
from typing import Any

import cma
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Key

import spota
from spota.sim.domain import Domains, count


@dataclass(frozen=True)
class SepCMAES:
    """Search with a normal distribution whose covariance is diagonal."""

    iterations: int = 30
    step: float = 0.5
    rollouts: int = 4

    def __call__(self, key: Key[Array, ""], env: spota.Env, domains: Domains, start: Any) -> Any:
        """The best policy found for these domains, from that start."""
        first, policy_of = ravel_pytree(start)
        keys = jax.random.split(key, (count(domains), self.rollouts))  # the same for all: common random numbers
        seed = int(jax.random.randint(key, (), 1, 2**31 - 1))
        search = cma.CMAEvolutionStrategy(
            np.asarray(first, np.float64), self.step, {"CMA_diagonal": True, "seed": seed, "verbose": -9}
        )
        for _ in range(self.iterations):
            tried = search.ask()
            policies = [policy_of(jnp.asarray(weights, jnp.float32)) for weights in tried]
            search.tell(tried, [-float(spota.returns(env, p, domains, keys).returns.mean()) for p in policies])
        return policy_of(jnp.asarray(search.best.x, jnp.float32))


SMALL = {"n_c": 20, "n_r": 2, "n_G": 10, "n_J": 1, "max_iterations": 1, "looks": 1, "hidden": (2,)}


def main() -> None:
    """Train and certify a policy for the catapult."""
    mine = SepCMAES(iterations=5)
    found = spota.train("catapult", beta=100.0, settings=SMALL, candidate=mine, reference=mine)
    print(found.certificate)


if __name__ == "__main__":
    main()
