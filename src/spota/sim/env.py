"""The contracts: what an environment and a policy are, and the values that travel between the modules."""

import abc
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import Effects, ObservationNoise

Scalar = Float[Array, ""] | float
Kind = TypeVar("Kind", bound="Platform")


@dataclass(frozen=True)
class Signal:
    """One observed or commanded quantity; `low` and `high` are an actuator's range, or a sensor's usual range."""

    name: str
    unit: str
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Platform(abc.ABC):
    """What is known about a platform before anything moves; its physics are an `Env` or a `HostEnv`."""

    domain: DomainDistribution
    effects: Effects

    name: ClassVar[str]
    dt: ClassVar[float]
    max_steps: ClassVar[int]
    max_reward: ClassVar[float]
    min_reward: ClassVar[float] = 0.0
    """No reward is below it; finite-sample bounds on the return rest on it."""
    observations: ClassVar[tuple[Signal, ...]]
    actions: ClassVar[tuple[Signal, ...]]
    lqr_weights: ClassVar[tuple[tuple[float, ...], tuple[float, ...]] | None] = None
    """Diagonals Q and R for `policies.lqr`, on observations and commands; None without an equilibrium."""
    optional: ClassVar[Mapping[str, Parameter]] = {}
    """Parameters that the equations know and that the platform's own table leaves out; another table may have them."""
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """What no machine can exceed, beyond the sign of a parameter: an efficiency is at most 1."""
    controller: ClassVar[str | None] = None
    """The classical controller that a trained policy is measured with, a name of `policies.CONTROLLERS`."""

    @property
    def max_return(self) -> float:
        """The largest undiscounted return that an episode can have."""
        return self.max_reward * self.max_steps

    @property
    def min_return(self) -> float:
        """The smallest return; at most 0, which is what an episode earns that fails at once."""
        return min(self.min_reward, 0.0) * self.max_steps

    @functools.cached_property
    def own_domain(self) -> DomainDistribution:
        """The table that the platform came with, whichever it has now."""
        first = type(self).__dataclass_fields__["domain"].default
        return first if isinstance(first, DomainDistribution) else self.domain

    def with_effects(self: Kind, **effects: Any) -> Kind:
        """The same platform with other effects: `env.with_effects(noise=None)`."""
        return self._changed(effects=replace(self.effects, **effects))

    def with_domain(self: Kind, domain: DomainDistribution) -> Kind:
        """The same platform with another table, and with room for its delays."""
        delay = self.effects.delay
        longest = domain[delay.parameter].marginal.support[1] if delay.parameter in domain else 0.0
        effects = self.effects
        if longest > delay.longest:
            effects = replace(effects, delay=replace(delay, longest=math.ceil(longest)))
        return self._changed(domain=domain, effects=effects)

    def _changed(self: Kind, **fields: Any) -> Kind:
        other = replace(self, **fields)
        vars(other)["own_domain"] = self.own_domain  # which a platform that a function made has nowhere else
        return other

    def check_noise(self, noise: ObservationNoise | None):
        """Refuse noise that does not fit the observation."""
        if noise is not None and len(noise.std) != len(self.observations):
            raise ValueError(
                f"{self.name} observes {len(self.observations)} signals "
                f"({', '.join(s.name for s in self.observations)}), but the noise has {len(noise.std)} values."
            )

    def __post_init__(self):
        """Refuse effects that do not fit the platform."""
        self.check_noise(self.effects.noise)


@dataclass(frozen=True, eq=False)
class Env(Platform):
    """A platform with randomized parameters, written for ONE domain with named scalars.

    ξ is an argument of every method, never hidden state. `rollout` batches over domains, adds the effects, and
    scales actions from [−1, 1] to the ranges of `actions`.
    """

    @abc.abstractmethod
    def params(self, domain: Mapping[str, Any]) -> Any:
        """ξ in the form that the equations use, from one domain by name."""

    @abc.abstractmethod
    def start(self, key: Key[Array, ""], xi: Any) -> Any:
        """Draw an initial state."""

    @abc.abstractmethod
    def observe(self, state: Any, xi: Any) -> tuple[Scalar, ...]:
        """The ideal observation, one scalar per signal of `observations`."""

    @abc.abstractmethod
    def reward(self, state: Any, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        """The reward of a state and of the command that acts there, in physical units."""

    @abc.abstractmethod
    def step(self, state: Any, action: tuple[Scalar, ...], xi: Any) -> Any:
        """The state after one time step."""

    def danger(self, state: Any, xi: Any) -> tuple[Scalar, ...]:
        """How close the state is to each kind of failure: 0 is far away, above 1 is failure. Default: never."""
        del state, xi
        return ()

    def failed(self, state: Any, xi: Any) -> Bool[Array, ""]:
        """Whether the episode ends in failure here, as it does in NaN; the time limit is not a failure."""
        safe = [jnp.asarray(danger <= 1) for danger in self.danger(state, xi)]
        safe += [jnp.isfinite(leaf) for leaf in jax.tree.leaves(state)]
        return ~functools.reduce(jnp.logical_and, safe, jnp.asarray(True))

    def at(self, observation: tuple[Scalar, ...], xi: Any) -> Any:
        """The state that an ideal observation belongs to: where a recording's segment begins."""
        del observation, xi
        raise ValueError(
            f"{self.name} does not say which state an observation belongs to, so nothing can start where a recording "
            "was; write its method at(observation, xi)."
        )

    def equilibrium(self, xi: Any) -> Any:
        """The state of rest to balance at."""
        del xi
        raise ValueError(f"{self.name} has no equilibrium.")


@runtime_checkable
class Reactive(Protocol):
    """A policy without memory: observation → action in [−1, 1]; the channel is the first axis, batch axes follow."""

    def __call__(self, observation: Float[Array, "d *n"], /) -> Float[Array, "a *n"]:
        """The action that the policy takes when it does not explore."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A policy with memory, its own from the first step of an episode on; the batch is the last axis of everything."""

    def start(self, n: int, /) -> PyTree:
        """What it remembers before the first step of n rollouts: any pytree of arrays."""
        ...

    def step(self, state: PyTree, observation: Float[Array, "d n"], /) -> tuple[PyTree, Float[Array, "a n"]]:
        """What it remembers then, and the action in [−1, 1] that it takes when it does not explore."""
        ...


Policy = Reactive | Remembering
"""What acts in a rollout."""


class Trajectories(eqx.Module):
    """Rollouts side by side, batch last. After a failure rewards are zero and `alive` is false."""

    observations: Float[Array, "T d n"]
    actions: Float[Array, "T a n"]
    rewards: Float[Array, "T n"]
    alive: Bool[Array, "T n"]
    last_observation: Float[Array, "d n"]
    survived: Bool[Array, "n"]
