"""How a rollout chooses its actions: from what it sees, and from what its policy remembers, if it remembers anything.

What a policy without memory remembers is an empty tuple: its programs are those that they were without this file.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard, cast

import jax
from jaxtyping import Array, Float, Int, PyTree

from spota.sim.env import Platform, Policy, Reactive, Remembering
from spota.sim.randomness import Words

Choose = Callable[[Words, Int[Array, ""], PyTree, Float[Array, "d n"]], tuple[PyTree, Float[Array, "a n"]]]
"""(key words, step, memory, observation) → (memory, action); exploration draws from the words."""


class Act(NamedTuple):
    """How rollouts choose actions."""

    start: Callable[[int], PyTree]
    """What so many rollouts remember before their first step, batch last."""
    choose: Choose


class Stepping(NamedTuple):
    """What a policy that remembers does: (rollouts) → memory, and (memory, observation) → (memory, action)."""

    start: Callable[[int], PyTree]
    step: Callable[[PyTree, Float[Array, "d n"]], tuple[PyTree, Float[Array, "a n"]]]


HowToAct = Callable[[Any], Act]
"""From a policy to how it acts; a function of a module, because programs are kept by it."""


def remembers(policy: Any) -> TypeGuard[Remembering]:
    """Whether the policy has a memory: a method `start` and a method `step`."""
    return isinstance(policy, Remembering) and not isinstance(policy, type | Platform)  # which has both, too


def stepping(policy: Policy) -> Stepping:
    """The policy as one that remembers; what one without memory remembers is an empty tuple."""
    if remembers(policy):
        return Stepping(policy.start, policy.step)
    reactive = cast(Reactive, policy)
    return Stepping(lambda _: (), lambda memory, observation: (memory, reactive(observation)))


def followed(policy: Policy, observations: Float[Array, "T d n"]) -> Float[Array, "T a n"]:
    """What the policy does if it sees this, one step after the other."""
    start, step = stepping(policy)
    # A method of a module that is traced cannot be a key of jax's caches; a function around it can.
    return jax.lax.scan(lambda memory, now: step(memory, now), start(observations.shape[-1]), observations)[1]


def acting_with(policy: Policy) -> Act:
    """Act with the policy's mean: no exploration."""
    start, step = stepping(policy)
    return Act(start, lambda _key, _t, memory, observation: step(memory, observation))


def given(action: Float[Array, "a n"]) -> Act:
    """Act as was decided already, on the host."""
    return without_memory(lambda _key, _t, _observation: action)


def without_memory(choose: Callable[[Words, Int[Array, ""], Float[Array, "d n"]], Float[Array, "a n"]]) -> Act:
    """Act on what is seen alone."""
    return Act(lambda _: (), lambda key, t, memory, observation: (memory, choose(key, t, observation)))
