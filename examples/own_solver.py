"""A solver of your own: a climber that tries random steps, for candidates and references of SPOTA.

It is called for ONE problem and returns a policy like its start. spota calls it for every candidate and reference, and
keeps the start where that earns more. `iterations` lets spota train some references longer, to see if they are strong.
"""

from dataclasses import dataclass
from typing import Any

import jax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Key

import spota
from spota.sim.domain import Domains, count


@dataclass(frozen=True)
class Climber:
    """Go where more is earned: longer steps after a success, shorter ones after a failure."""

    iterations: int = 40
    step: float = 0.5
    rollouts: int = 4

    def __call__(self, key: Key[Array, ""], env: spota.Env, domains: Domains, start: Any) -> Any:
        """The best policy found for these domains, from that start."""
        k_rollouts, k_steps = jax.random.split(key)
        keys = jax.random.split(k_rollouts, (count(domains), self.rollouts))  # the same for all: common random numbers
        weights, policy_of = ravel_pytree(start)
        best, step = spota.returns(env, start, domains, keys).returns.mean(), self.step
        for k in jax.random.split(k_steps, self.iterations):
            tried = weights + step * jax.random.normal(k, weights.shape)
            earned = spota.returns(env, policy_of(tried), domains, keys).returns.mean()
            weights, best, step = (tried, earned, 1.5 * step) if earned > best else (weights, best, 0.85 * step)
        return policy_of(weights)


SMALL = {"n_c": 20, "n_r": 2, "n_G": 10, "n_J": 1, "max_iterations": 1, "looks": 1, "hidden": (2,)}


def main() -> None:
    """Train and certify a policy for the catapult."""
    found = spota.train("catapult", beta=100.0, settings=SMALL, candidate=Climber(), reference=Climber())
    print(found.certificate)


if __name__ == "__main__":
    main()
