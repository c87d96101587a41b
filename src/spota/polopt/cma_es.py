"""Separable CMA-ES from the package `cma`: a second opinion beside PPO that needs no gradient of any kind.

It moves all weights at random and keeps to what earns more: slower to learn than PPO, but indifferent to rewards that
jump and to short episodes. All policies of a generation run side by side, with the same random numbers for all of them.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from spota.polopt.checks import at_least_one, positive
from spota.sim import rollout
from spota.sim.acting import acting_with
from spota.sim.domain import Domains, count, repeat
from spota.sim.env import Env, Platform
from spota.sim.host import HostEnv
from spota.sim.host_groups import group_returns
from spota.sim.randomness import generator


@dataclass(frozen=True)
class SepCMAES:
    """For one problem; as every solver of one problem, it is asked for each, and a start that earns more is kept."""

    iterations: int = 60
    """Generations."""
    population: int = 16
    """Policies in a generation."""
    rollouts: int = 2
    """Rollouts a domain, the same for all policies of all generations."""
    step: float = 0.05
    """How far the first generation lies from the start, in units of the weights; from a new network, take 0.5."""

    def __post_init__(self):
        """Refuse settings that cannot work, and a machine without the package."""
        at_least_one(self, "iterations", "rollouts")
        positive(self, "step")
        if self.population < 4:
            raise ValueError(f"population = {self.population}: a generation has at least 4 policies.")

    def __call__(self, key: Key[Array, ""], env: Platform, domains: Domains, start: Any) -> Any:
        """The best policy that was found for these domains."""
        k_rollouts, k_search = jax.random.split(key)
        first, policy_of = ravel_pytree(start)
        rows = repeat(domains, self.rollouts)
        keys = jax.random.split(k_rollouts, count(rows))
        search = self._search(np.asarray(first, np.float64), generator(k_search))
        for _ in range(self.iterations):
            tried = search.ask()
            policies = jax.vmap(policy_of)(jnp.asarray(np.stack(tried), jnp.float32))
            earned = _mean_returns(env, policies, rows, keys)
            search.tell(tried, np.where(np.isfinite(earned), -earned, np.inf).tolist())
        return policy_of(jnp.asarray(search.best.x, jnp.float32))

    def _search(self, first: Float[np.ndarray, "w"], rng: np.random.Generator) -> Any:
        """With random numbers of its own: the package would seed those of everybody."""
        own = {"seed": np.nan, "randn": lambda *shape: rng.standard_normal(shape)}
        options = {"CMA_diagonal": True, "popsize": self.population, "verbose": -9, **own}
        return installed().CMAEvolutionStrategy(first, self.step, options)


def installed() -> Any:
    """The package `cma`, if it is there."""
    try:
        import cma
    except ImportError as error:
        raise ValueError(
            "The solver cma needs the package cma, which is not installed; type: pip install 'spota[cma]'"
        ) from error
    return cma


def _mean_returns(env: Platform, policies: Any, domains: Domains, keys: Key[Array, "n"]) -> Float[np.ndarray, "K"]:
    """The mean return of each policy on the same rows."""
    if not isinstance(env, HostEnv):
        return np.asarray(_compiled(rollout.pure(env), policies, domains, keys), np.float64)
    K = jax.tree.leaves(policies)[0].shape[0]
    same = {name: jnp.broadcast_to(column, (K, *column.shape)) for name, column in domains.items()}
    total, _ = group_returns(env, acting_with, policies, same, jnp.broadcast_to(keys, (K, *keys.shape)))
    return total.mean(axis=1, dtype=np.float64)


@eqx.filter_jit
def _compiled(env: Env, policies: Any, domains: Domains, keys: Key[Array, "n"]) -> Float[Array, "K"]:
    return jax.vmap(lambda policy: rollout.summed(env, acting_with(policy), domains, keys)[0].mean())(policies)
