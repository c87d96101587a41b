"""A network that imitates another policy: where a solver starts from if it cannot start from the policy itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from spota.policies.architecture import USUAL, Architecture, Network, new_network, remembering
from spota.policies.network import FNN, scaled
from spota.policies.stacked import Stacked, after
from spota.sim import rollout
from spota.sim.acting import followed, remembers
from spota.sim.env import Platform, Policy, Reactive, Trajectories

BATCH = 4096
"""Observations in one Adam step."""
TRIED = 256
"""Random domains that choose among the rounds."""


@dataclass(frozen=True)
class Round:
    """A word after each round: how the network fares on domains that it was not fitted on, and the best so far."""

    number: int
    rounds: int
    outcome: rollout.Outcome
    best: float
    policy: Network
    """The best network so far."""
    error: float
    """Root mean square difference of the actions."""
    steps: int
    """Simulated steps of the round."""


class Imitation(eqx.Module):
    """The network, and how it fares beside the original on domains that it was not fitted on."""

    policy: Network
    returns: Float[Array, "n"]
    original_returns: Float[Array, "n"]
    error: Float[Array, ""]
    """Root mean square difference of the actions at the end of its fit."""


def imitate(
    key: Key[Array, ""],
    env: Platform,
    policy: Policy,
    architecture: Architecture = USUAL,
    *,
    rounds: int = 3,
    steps: int = 2000,
    domains: int = 48,
    learning_rate: float = 1e-2,
    watch: Callable[[Round], None] | None = None,
) -> Imitation:
    """Fit a network to what the policy does, by Adam on the squared difference of the actions.

    The first round looks at what the policy itself sees on random domains. The later ones add what the imitation sees,
    because small errors lead it to where the policy never was (Ross, Gordon, Bagnell 2011). The round that earns most
    is kept: where a task forgives little, the last one need not be it.

    A network with a stack learns from stacks. The units of a recurrent one stay as they begin, and do nothing: there
    it imitates by what it sees alone.
    """
    if rounds < 1 or steps < 1 or domains < 1:
        raise ValueError(f"rounds={rounds}, steps={steps}, domains={domains}: each must be at least 1.")
    k_init, k_fit, k_choose, k_test = jax.random.split(key, 4)
    pupil, seen, tried = new_network(k_init, env, replace(architecture, recurrent=0)), [], []
    for i in range(rounds):
        k_domains, k_rollouts, k_adam = jax.random.split(jax.random.fold_in(k_fit, i), 3)
        seen.append(_look(k_domains, k_rollouts, env, policy if i == 0 else pupil, policy, pupil, domains))
        inputs, actions, alive = (jnp.concatenate(parts, axis=-1) for parts in zip(*seen, strict=True))
        pupil, error = _fit(k_adam, pupil, inputs, actions, alive, steps=steps, learning_rate=learning_rate)
        outcome = _try(k_choose, env, pupil, TRIED)
        tried.append((float(outcome.returns.mean()), pupil, error))
        earned, best, _ = _best(tried)
        if watch is not None:
            watch(Round(i + 1, rounds, outcome, earned, best, float(error), domains * env.max_steps))
    _, best, error = _best(tried)
    mine, original = (jnp.asarray(_try(k_test, env, p, domains).returns[:, 0]) for p in (best, policy))
    whole = remembering(k_init, best, architecture) if isinstance(best, FNN) else best
    return Imitation(whole, mine, original, error)


def _best(tried: list[tuple[float, Network, Float[Array, ""]]]) -> tuple[float, Network, Float[Array, ""]]:
    """The round with the highest return."""
    return max(tried, key=lambda one: one[0])


def _look(
    k_domains: Key[Array, ""],
    k_rollouts: Key[Array, ""],
    env: Platform,
    actor: Policy,
    teacher: Policy,
    pupil: Network,
    n: int,
) -> tuple[Float[Array, "inputs N"], Float[Array, "a N"], Bool[Array, "N"]]:
    """What the pupil reads where the actor goes, what the teacher does there, and which of it is before a failure."""
    seen = rollout.collect(env, actor, env.domain.sample(k_domains, n), jax.random.split(k_rollouts, n))
    inputs = _stacks(pupil, seen) if isinstance(pupil, Stacked) else seen.observations
    inputs, observations = (jnp.swapaxes(x, 0, 1).reshape(x.shape[1], -1) for x in (inputs, seen.observations))
    if remembers(teacher):
        actions = jnp.swapaxes(_followed(teacher, seen.observations), 0, 1).reshape(len(env.actions), -1)
    else:
        actions = cast(Reactive, teacher)(observations)
    return inputs, jnp.clip(actions, -1.0, 1.0), seen.alive.reshape(-1)


_followed = eqx.filter_jit(followed)


@eqx.filter_jit
def _stacks(pupil: Stacked, seen: Trajectories) -> Float[Array, "T inputs n"]:
    """What the first layer of a stacked network reads at each step."""

    def step(past, now):
        observation, action = now
        seen = scaled(pupil.contract, observation)
        return after(past, seen, action), jnp.concatenate([seen, pupil.chosen(past)])

    start = pupil.start(seen.alive.shape[-1])
    return jax.lax.scan(step, start, (seen.observations, jnp.clip(seen.actions, -1.0, 1.0)))[1]


@partial(jax.jit, static_argnames=("steps", "learning_rate"))
def _fit(
    key: Key[Array, ""],
    pupil: Network,
    inputs: Float[Array, "_ N"],
    actions: Float[Array, "a N"],
    alive: Bool[Array, "N"],
    *,
    steps: int,
    learning_rate: float,
) -> tuple[Network, Float[Array, ""]]:
    """Adam with a cosine decay; every step takes other inputs."""
    import optax  # slow to import

    adam = optax.adam(optax.cosine_decay_schedule(learning_rate, steps))

    def step(carry, t):
        pupil, memory = carry
        chosen = jax.random.randint(jax.random.fold_in(key, t), (BATCH,), 0, alive.size)
        loss, gradient = jax.value_and_grad(_loss)(pupil, inputs[:, chosen], actions[:, chosen], alive[chosen])
        move, memory = adam.update(gradient, memory)
        return (optax.apply_updates(pupil, move), memory), loss

    (pupil, _), losses = jax.lax.scan(step, (pupil, adam.init(pupil)), jnp.arange(steps))  # type: ignore[arg-type]
    return pupil, jnp.sqrt(losses[-1])


def _loss(
    pupil: Network, inputs: Float[Array, "_ b"], actions: Float[Array, "a b"], alive: Bool[Array, "b"]
) -> Float[Array, ""]:
    """Mean squared difference of the actions, over what happened before a failure."""
    d = len(pupil.contract.observations)
    done = pupil.on(inputs[:d], inputs[d:]) if isinstance(pupil, Stacked) else cast(FNN, pupil)(inputs)
    squares = ((done - actions) ** 2).mean(axis=0)
    return jnp.where(alive, squares, 0.0).sum() / jnp.maximum(alive.sum(), 1)


def _try(key: Key[Array, ""], env: Platform, policy: Policy, n: int) -> rollout.Outcome:
    """One rollout on each of n random domains; the same ones for the same key."""
    k_domains, k_rollouts = jax.random.split(key)
    return rollout.returns(env, policy, env.domain.sample(k_domains, n), jax.random.split(k_rollouts, (n, 1)))
