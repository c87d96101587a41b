"""What an optimizer inside our loop is, and what it returns and tells."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Key, PyTree

from spota.polopt.rows import Score
from spota.sim.domain import Domains
from spota.sim.env import Platform
from spota.sim.host import HostEnv

EVALUATION_ROWS = 400
"""Rollouts in an evaluation, about, unless an optimizer says otherwise."""


class Optimizer(abc.ABC):
    """An optimizer inside our loop: pure functions for ONE problem, which jax compiles.

    Extend it as a frozen dataclass with `iterations`, `begin`, `update` and `policy`; the rest has defaults. What is
    not written in jax is a plain function instead, see `polopt.solver`.
    """

    iterations: int
    """How many updates."""
    evaluate_every: int = 20
    """How many updates between two evaluations."""
    fresh_domains: bool = False
    """Whether every update draws new domains from the environment's distribution."""

    with_memory: ClassVar[bool] = True
    """Whether it can train policies that remember."""

    @abc.abstractmethod
    def begin(self, key: Key[Array, ""], env: Platform, policy: Any) -> PyTree:
        """The learner's state before the first update: fresh optimizer, reset exploration."""

    @abc.abstractmethod
    def update(self, env: Platform, domains: Domains, key: Key[Array, ""], state: PyTree) -> tuple[PyTree, dict]:
        """One update; returns the new state and figures to log.

        An optimizer that leaves out updates which are not finite says so by a figure `finite`; for others the loop
        looks at the parameters of the policy.
        """

    @abc.abstractmethod
    def policy(self, state: PyTree) -> Any:
        """The policy that the learner would act with; of the kind that `begin` was given."""

    def rollouts_on(self, n: int) -> tuple[int, int]:
        """Rollouts in an update and in an evaluation on n domains; in an evaluation every domain has as many, or the
        first ones have one each."""
        return n, n * evaluations_of_each(n)

    def width(self, n: int) -> float:
        """Width of the kernel around each domain of a problem of n, in standard deviations of ν; 0: none."""
        del n
        return 0.0

    def update_on_host(
        self, env: HostEnv, mesh: Mesh, keys: Key[Array, "P"], domains: dict[str, Float[Array, "P n"]], states: PyTree
    ) -> tuple[PyTree, dict]:
        """One update of all problems on a host environment, whose physics cannot be compiled; PPO has one."""
        raise NotImplementedError

    @property
    def worst_share(self) -> float:
        """The share of an evaluation's rollouts, the worst ones, whose mean return says which policy is best."""
        return 1.0

    def check(self, env: Platform) -> None:
        """Refuse an environment that the settings do not fit."""
        del env


def evaluations_of_each(n: int) -> int:
    """Rollouts on each of n domains in an evaluation, unless an optimizer says otherwise."""
    return -(-EVALUATION_ROWS // n)


def refuse_host(optimizer: Optimizer, env: Platform) -> None:
    """Refuse a host environment for an optimizer that goes through the simulator with jax."""
    if isinstance(env, HostEnv) and type(optimizer).update_on_host is Optimizer.update_on_host:
        raise ValueError(
            f"{type(optimizer).__name__} goes through the simulator with jax, and {env.name} is simulated outside of "
            "it; train with --solver ppo, or give a function solve(key, env, domains, start)."
        )


def trains_memory(solver: Any) -> bool:
    """Whether it can train policies that remember; somebody's own function is believed to."""
    return getattr(solver, "with_memory", True)


def refuse_memory(solver: Any) -> None:
    """Refuse a solver that cannot train policies with a memory."""
    if not trains_memory(solver):
        raise ValueError(
            f"{type(solver).__name__} learns from single observations, so it cannot train a policy with a memory; "
            "train with --solver analytic, or leave the memory out."
        )


class Best(eqx.Module):
    """The best policy so far, what makes it the best, its score on its own domains, and the start's."""

    policy: Any
    objective: Float[Array, "*problems"]
    score: Score
    start: Score


class Solution(eqx.Module):
    """What an optimizer found. Leaves have a leading axis over problems when several were solved together."""

    policy: Any
    score: Score
    start: Score
    curve: Float[Array, "*problems evaluations"]
    survival: Float[Array, "*problems evaluations"]
    evaluated_at: Float[Array, "evaluations"]
    diverged: Bool[Array, "*problems"]


@dataclass(frozen=True)
class Progress:
    """A word about how it goes after an update; figures have one entry a problem, `policy` is the best so far."""

    iteration: int
    iterations: int
    returns: np.ndarray
    survival: np.ndarray
    best: np.ndarray
    policy: Any
    steps: int
    metrics: dict[str, np.ndarray]


Watch = Callable[[Progress], None]
