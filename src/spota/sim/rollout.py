"""Run policies on domains: `collect` keeps the trajectories, `returns` only their sums (eq_edr, eq_SPn).

This is the seam between compiled code and the host: pure environments run here as one program, host environments in
`host_rollout`, and nobody above knows which. Everything in a rollout depends on its own domain and key only:
the same keys give two policies the same start states and the same noise, and a rollout is the same alone and inside
a batch, on one device or several.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from spota.sim import devices, host_groups, host_rollout, randomness
from spota.sim.acting import Act, acting_with
from spota.sim.checks import check_env
from spota.sim.domain import Domains, repeat
from spota.sim.effects import scale_and_clip
from spota.sim.env import Env, Platform, Policy, Trajectories
from spota.sim.host import HostEnv
from spota.sim.host_policy import HostPolicy, ready

CHUNK = 2048
"""Rollouts that a device runs at once: enough to vectorise, few enough for its cache."""

KEPT = ("observation", "command")
"""What a gradient's way back keeps of every step, besides the state: drawing the noise again would cost more."""


class World(eqx.Module):
    """All rollouts at one moment, batch last.

    The ideal observation is carried along, although the state implies it: so the compiler stores it as one array, and
    the loop that adds the noise vectorises. That makes rollouts with noise twice as fast.
    """

    state: PyTree
    ideal: Float[Array, "d n"]
    queue: Float[Array, "slots a n"]
    alive: Bool[Array, "n"]
    memory: PyTree
    """What the policy remembers; an empty tuple if it has no memory."""


class Step(eqx.Module):
    """What happened in one step of all rollouts, or in T of them; `command` is what acted, in physical units."""

    state: PyTree
    observation: Float[Array, "*T d n"]
    action: Float[Array, "*T a n"]
    command: Float[Array, "*T a n"]
    reward: Float[Array, "*T n"]
    alive: Bool[Array, "*T n"]


@dataclass(frozen=True)
class Outcome:
    """The return of every rollout, and whether it lasted until the time limit."""

    returns: Float[np.ndarray, "n m"]
    survived: Bool[np.ndarray, "n m"]


def returns(env: Platform, policy: Policy, domains: Domains, keys: Key[Array, "n m"]) -> Outcome:
    """Run m rollouts on each of n domains and sum their rewards, undiscounted (eq_edr)."""
    check(env, domains)
    policy = ready(env, policy)
    n, m = keys.shape
    rows = repeat(domains, m), randomness.reshaped(keys, -1)
    if isinstance(env, HostEnv):
        grouped = {name: np.asarray(column)[None] for name, column in rows[0].items()}  # a view, where jax compiles
        one, own = alone(policy), rows[1][None]
        total, survived = (x[0] for x in host_groups.group_returns(env, acting_with, one, grouped, own))
    else:
        run: Callable = _returns_by_steps if isinstance(policy, HostPolicy) else _compiled_returns
        total, survived = run(pure(env), policy, *rows)
    if np.isnan(total).any():
        bad = int(np.isnan(total).argmax()) // m
        raise ValueError(
            f"The return on domain {bad} of {env.name} is not a number; "
            "look for NaN in the policy's actions, e.g. a division by zero or a file with NaN weights."
        )
    return Outcome(total.reshape(n, m), survived.reshape(n, m))


def _compiled_returns(
    env: Env, policy: Policy, domains: Domains, keys: Key[Array, "n"]
) -> tuple[Float[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
    """All rollouts in chunks over the devices."""
    policy = devices.replicate(policy)
    pieces = devices.chunks((domains, keys), CHUNK)
    return devices.gather([(_returns(env, policy, *piece), size) for piece, size in pieces])


def _returns_by_steps(
    env: Env, policy: HostPolicy, domains: Domains, keys: Key[Array, "n"]
) -> tuple[Float[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
    from spota.sim.host_policy_rollout import summed as by_steps  # which stands on this file

    return by_steps(env, policy, domains, keys)


def collect(env: Platform, policy: Policy, domains: Domains, keys: Key[Array, "n"]) -> Trajectories:
    """Run one rollout per domain and keep everything but the states."""
    check(env, domains)
    policy = ready(env, policy)
    if isinstance(env, HostEnv):
        steps, end = _watch_on_host(env, policy, domains, keys)
        last = host_rollout.look(env, domains, keys, end.ideal)
        return Trajectories(steps.observation, steps.action, steps.reward, steps.alive, last, end.alive)
    world, steps = _watched(pure(env), policy, domains, keys)
    return _collect(pure(env), domains, keys, world, steps)


def watch(env: Platform, policy: Policy, domains: Domains, keys: Key[Array, "n"]) -> Step:
    """Run one rollout per domain and keep every step with its true state: leaves are [T, …, n].

    The state of a host environment is hidden; its ideal observation stands for it.
    """
    check(env, domains)
    policy = ready(env, policy)
    if isinstance(env, HostEnv):
        return _watch_on_host(env, policy, domains, keys)[0]
    return _watched(pure(env), policy, domains, keys)[1]


def pure(env: Platform, instead: str = "train with --solver ppo, which needs no gradients of it") -> Env:
    """The platform, if gradients and compiled programs can go through it; `instead` says what to do if not."""
    if isinstance(env, Env):
        return env
    raise ValueError(f"{env.name} is simulated outside of jax, so that nothing can be differentiated there; {instead}.")


def alone(policy: Any) -> Any:
    """One policy with the leading axis of several."""
    return jax.tree.map(lambda x: jnp.asarray(x)[None] if eqx.is_array_like(x) else x, policy)


def check(env: Platform, domains: Domains):
    """Refuse a platform that does not fit itself, and domains that do not fit it, before anything is compiled."""
    check_env(env)
    env.domain.check(domains)
    if env.effects.delay.longest or env.effects.delay.parameter in domains:
        env.effects.delay.check(domains)


def begin(env: Env, act: Act, domains: Domains, keys: Key[Array, "n"]) -> World:
    """All rollouts at their start states, with nothing seen yet."""
    xi = _batched(env.params)(domains)
    n = keys.shape[0]
    command = jnp.zeros((len(env.actions), n))
    state = _batched(env.start)(keys, xi)
    return World(state, _ideal(env, state, xi), env.effects.delay.empty(command), jnp.ones(n, bool), act.start(n))


def look(env: Env, domains: Domains, key: randomness.Words, t: Int[Array, ""], world: World) -> Float[Array, "d n"]:
    """What the policies see at step t."""
    return env.effects.observe(key, t, world.ideal, domains)


def advance(
    env: Env, act: Act, domains: Domains, key: randomness.Words, t: Int[Array, ""], world: World
) -> tuple[World, Step]:
    """One step of all rollouts, in the order of `effects`; a failed rollout stands still and earns nothing."""
    xi = _batched(env.params)(domains)
    observation = checkpoint_name(look(env, domains, key, t, world), KEPT[0])
    memory, action = act.choose(key, t, world.memory, observation)
    wanted = scale_and_clip(action, tuple(s.low for s in env.actions), tuple(s.high for s in env.actions))
    command, queue = env.effects.delay(t, world.queue, wanted, domains)
    command = checkpoint_name(command, KEPT[1])
    reward = jnp.where(world.alive, _batched(env.reward)(world.state, tuple(command), xi), 0.0)
    moved = _batched(env.step)(world.state, tuple(env.effects.reach(command, domains)), xi)
    state = jax.tree.map(lambda new, old: jnp.where(world.alive, new, old), moved, world.state)
    alive = world.alive & ~_batched(env.failed)(state, xi)
    return World(state, _ideal(env, state, xi), queue, alive, memory), Step(
        world.state, observation, action, command, reward, world.alive
    )


def _ideal(env: Env, state: PyTree, xi: PyTree) -> Float[Array, "d n"]:
    return jnp.stack(_batched(env.observe)(state, xi))


def danger(env: Env, state: PyTree, domains: Domains) -> tuple[Float[Array, "n"], ...]:
    """How close every rollout is to each kind of failure; 1 is failure."""
    return _batched(env.danger)(state, _batched(env.params)(domains))


def _batched(method: Callable) -> Callable:
    """Platforms are written for one domain; here the batch is their last axis."""
    return jax.vmap(method, in_axes=-1, out_axes=-1)


def _watch_on_host(
    env: HostEnv, policy: Policy, domains: Domains, keys: Key[Array, "n"]
) -> tuple[Step, host_rollout.End]:
    grouped = {name: column[None] for name, column in domains.items()}
    steps, end = jax.tree.map(
        lambda x: jnp.asarray(x[0]), host_groups.group_steps(env, acting_with, alone(policy), grouped, keys[None])
    )
    return Step(steps.ideal, steps.observation, steps.action, steps.command, steps.reward, steps.alive), end


def summed(env: Env, act: Act, domains: Domains, keys: Key[Array, "n"]) -> tuple[Float[Array, "n"], Bool[Array, "n"]]:
    """The return of every rollout and whether it survived, inside a compiled program; nothing else is stored."""
    words = randomness.words(keys)

    def body(carry, t):
        world, total = carry
        world, step = advance(env, act, domains, words, t, world)
        return (world, total + step.reward), None

    start = begin(env, act, domains, keys), jnp.zeros(keys.shape)
    (world, total), _ = jax.lax.scan(body, start, jnp.arange(env.max_steps))
    return total, world.alive


@eqx.filter_jit
def _returns(
    env: Env, policy: Policy, domains: Domains, keys: Key[Array, "n"]
) -> tuple[Float[Array, "n"], Bool[Array, "n"]]:
    return summed(env, acting_with(policy), domains, keys)


def _watched(env: Env, policy: Policy, domains: Domains, keys: Key[Array, "n"]) -> tuple[World, Step]:
    """Every step of compiled rollouts, or of those of a policy on the host."""
    if isinstance(policy, HostPolicy):
        from spota.sim.host_policy_rollout import recorded  # which stands on this file

        return recorded(env, policy, domains, keys)
    return _watch(env, policy, domains, keys)


@eqx.filter_jit
def _watch(env: Env, policy: Policy, domains: Domains, keys: Key[Array, "n"]) -> tuple[World, Step]:
    words, act = randomness.words(keys), acting_with(policy)
    steps = jnp.arange(env.max_steps)
    start = begin(env, act, domains, keys)
    return jax.lax.scan(lambda w, t: advance(env, act, domains, words, t, w), start, steps)


def _collect(env: Env, domains: Domains, keys: Key[Array, "n"], world: World, steps: Step) -> Trajectories:
    end = _looked(env, domains, keys, world)
    return Trajectories(steps.observation, steps.action, steps.reward, steps.alive, end, world.alive)


@eqx.filter_jit
def _looked(env: Env, domains: Domains, keys: Key[Array, "n"], world: World) -> Float[Array, "d n"]:
    """What is seen after the last step."""
    return look(env, domains, randomness.words(keys), jnp.int32(env.max_steps), world)
