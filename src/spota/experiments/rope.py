"""A rope to pull: a platform of one step whose optimum is known, and on which a few domains make a policy fail.

Every rope has its best pull, and to be off costs quadratically. A weak rope, which is rare, tears beyond its limit and
earns nothing. Who knows a few ropes pulls as their mean wants it; the optimum pulls less, below most limits.

optimum(0.01)          # −0.04: where the first weak ropes begin to tear
gap(0.0, 0.01)         # 9.62: what the mean of all best pulls loses, almost all of it on one rope in a hundred
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from numpy.polynomial import Polynomial

from spota.polopt.rows import Score
from spota.polopt.solve import Solution, Watch
from spota.polopt.solver import optimal, solves_all
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import Effects
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Bernoulli, Uniform

TOP = 1000.0  # the return of the best pull
COST = 200.0  # of being off by 1
BEST = (-0.3, 0.3)  # where best pulls are, uniformly; their mean is 0
LIMITS = (-0.04, 0.0)  # where weak ropes tear, uniformly


@dataclass(frozen=True, eq=False)
class Rope(Env):
    """Pull once, without knowing the rope."""

    domain: DomainDistribution
    effects: Effects = Effects()  # noqa: RUF009, frozen

    name = "rope"
    dt = 1.0
    max_steps = 1
    max_reward = TOP
    observations = (Signal("nothing", "-", 0.0, 1.0),)
    actions = (Signal("pull", "-", -1.0, 1.0),)

    def params(self, domain: Mapping[str, Any]) -> tuple[Scalar, Scalar]:
        """The best pull, and the limit, which only a weak rope has."""
        return domain["best"], limit_of(domain, jnp)

    def start(self, key: Key[Array, ""], xi: Any) -> Scalar:
        """Always the same."""
        del key, xi
        return jnp.zeros(())

    def observe(self, state: Scalar, xi: Any) -> tuple[Scalar, ...]:
        """Nothing that tells the rope."""
        del xi
        return (state,)

    def reward(self, state: Scalar, action: tuple[Scalar, ...], xi: tuple[Scalar, Scalar]) -> Scalar:
        """What the pull earns."""
        del state
        return earned(action[0], *xi, jnp)

    def step(self, state: Scalar, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        """Nothing is left to do."""
        del action, xi
        return state


class Pull(eqx.Module):
    """A policy with one parameter: it always pulls the same."""

    pull: Float[Array, "*problems"] | float = 0.0
    """With a leading axis where several policies are stacked."""

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "1 *n"]:
        """The same whatever is observed."""
        return jnp.broadcast_to(jnp.asarray(self.pull, jnp.float32), (1, *observation.shape[1:]))


@functools.cache
def rope(weak: float) -> Rope:
    """The platform on which that share of the ropes is weak; the same one each time, so that it is compiled once."""
    return Rope(
        DomainDistribution(
            best=Parameter(Uniform(*BEST), "-", "best pull"),
            weak=Parameter(Bernoulli(weak), "-", "whether it tears", sign="nonnegative"),
            limit=Parameter(Uniform(*LIMITS), "-", "where it tears if it is weak"),
        )
    )


def limit_of(domain: Mapping[str, Any], xp: Any = np) -> Any:
    """The limit of a weak rope; others have none."""
    return xp.where(domain["weak"] > 0.5, domain["limit"], xp.inf)


def earned(pull: Any, best: Any, limit: Any, xp: Any = np) -> Any:
    """The return of a pull on ropes."""
    return xp.where(pull > limit, 0.0, TOP - COST * (pull - best) ** 2)


@optimal
@solves_all
def best_pulls(
    keys: Key[Array, "P"],
    env: Env,
    domains: dict[str, Float[Array, "P n"]],
    inits: Pull,
    watch: Watch | None = None,
) -> Solution:
    """The best pull for each set of ropes; a `Solver` without any search."""
    del keys, env, watch
    host = {name: np.asarray(column, np.float64) for name, column in domains.items()}
    best, limit = host["best"], limit_of(host)
    tried = np.concatenate([np.asarray(inits.pull, np.float64)[:, None], turning_points(best, limit)], axis=-1)
    returns = earned(tried[..., None], best[:, None], limit[:, None]).mean(axis=-1)
    chosen = returns.argmax(axis=-1)[:, None]
    theta, most = (np.take_along_axis(x, chosen, axis=-1)[:, 0] for x in (tried, returns))
    curve = jnp.asarray(np.stack([returns[:, 0], most], axis=-1), jnp.float32)
    start, end = (jax.vmap(Score)(column, jnp.ones_like(column)) for column in curve.T)
    return Solution(
        Pull(jnp.asarray(theta, jnp.float32)), end, start, curve, jnp.ones_like(curve), jnp.arange(2.0),
        jnp.zeros(theta.size, bool),
    )  # fmt: skip


def turning_points(best: Float[np.ndarray, "P n"], limit: Float[np.ndarray, "P n"]) -> Float[np.ndarray, "P m"]:
    """Pulls one of which is the best: each limit, and the mean best pull of the ropes that hold if the j weakest tear.

    Between two limits the mean return is a parabola about that mean; at a limit it falls.
    """
    order = np.argsort(limit, axis=-1)
    best, limit = (np.take_along_axis(x, order, axis=-1) for x in (best, limit))
    holding = best[:, ::-1].cumsum(axis=-1)[:, ::-1] / np.arange(best.shape[-1], 0, -1)
    return np.concatenate([holding, np.where(np.isfinite(limit), limit, holding)], axis=-1)


def expected_return(pull: Any, weak: float) -> Any:
    """J(θ): a rope's strength does not depend on its best pull, so that two factors are left."""
    low, high = LIMITS
    tearing = weak * np.clip((pull - low) / (high - low), 0.0, 1.0)
    return (1 - tearing) * _ordinary()(pull)


def optimum(weak: float) -> float:
    """θ*: where the first weak rope tears, beyond where the last does, or where J has no slope in between."""
    low, high = LIMITS
    holding = Polynomial([1 + weak * low / (high - low), -weak / (high - low)])
    level = (holding * _ordinary()).deriv().roots()
    between = [float(x.real) for x in level if np.isreal(x) and low < x.real < high]
    return max([low, high, *between], key=lambda pull: expected_return(pull, weak))


def gap(pull: Any, weak: float) -> Any:
    """G(θ), exactly."""
    return expected_return(optimum(weak), weak) - expected_return(pull, weak)


def _ordinary() -> Polynomial:
    """The expected return of a pull that tears nothing: best pulls have mean 0."""
    low, high = BEST
    return Polynomial([TOP - COST * (high - low) ** 2 / 12, 0.0, -COST])
