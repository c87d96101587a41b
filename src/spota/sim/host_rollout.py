"""Rollouts on host environments: the physics of a step on the host, all that is ours of it as one compiled program.

Policies may differ between groups of rollouts: P policies with R rollouts each have P · R machines side by side, and
one policy is P = 1. Random numbers are those of a pure environment: functions of a rollout's key and step.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from spota.sim import randomness
from spota.sim.checks import users_line
from spota.sim.effects import Queue, scale_and_clip
from spota.sim.env import Platform
from spota.sim.host import HostDomains, HostEnv, MachineError, Machines
from spota.sim.host_policy import HostPolicy

Act = Callable[[randomness.Words, Int[Array, ""], Float[Array, "d n"]], Float[Array, "a n"]]
"""How a rollout chooses actions: (key words, step, observation) → action; exploration draws from the words."""
HowToAct = Callable[[Any], Act]
"""From a policy to how it acts; a function of a module, because programs are kept by it."""
GroupedDomains = dict[str, Float[Array, "P _"]]
"""Domains of P groups of R rollouts, by name."""

PROGRAMS = 64
"""Compiled steps that are kept, one for each platform, way to act and kind of policy."""


class HostStep(NamedTuple):
    """What happened in one step of all machines; `command` is what acted, in physical units, `alive` is before it.

    Whoever keeps many steps or groups has further axes in front.
    """

    observation: Any  # [d, n]
    ideal: Any  # [d, n]
    action: Any  # [a, n]
    command: Any  # [a, n]
    reward: Any  # [n]
    alive: Any  # [n]


class End(NamedTuple):
    """The last ideal observation, and which machines lasted until the time limit."""

    ideal: Any  # [d, n]
    alive: Any  # [n]


See = Callable[[int, HostStep], None]
"""Hears of every step until the last machine has failed."""


class Before(NamedTuple):
    """What is ours of a step, before the physics."""

    observation: Float[Array, "d n"]
    action: Float[Array, "a n"]
    command: Float[Array, "a n"]
    reached: Float[Array, "a n"]
    """What reaches the physics."""


def play(env: HostEnv, how: HowToAct, policies: Any, domains: GroupedDomains, keys: Key[Array, "P R"], see: See) -> End:
    """One episode on every machine; a failed one stands still and earns nothing. NaN from the physics is a failure.

    Policies have a leading axis P. The caller sees to it that the machines are not too many, see `host_groups`.
    """
    words = jnp.moveaxis(randomness.words(keys), 0, 1)
    decide = _deciding(env, how, policies, words, domains)
    queue = _empty_queue(env, keys.shape)
    columns = {name: np.asarray(column, np.float64).reshape(-1) for name, column in domains.items()}
    with opened(env, columns, randomness.seeds(keys.reshape(-1))) as machines:
        ideal = _observed(env, columns, machines)
        alive = np.asarray(np.isfinite(ideal).all(axis=0))
        for t in range(env.max_steps):
            if not alive.any():
                break
            ours, queue = decide(np.int32(t), ideal, queue)
            with _blaming(env, columns):
                reward, moved, goes_on = _physics(env, machines, np.asarray(ours.reached), alive)
            see(t, HostStep(ours.observation, ideal, ours.action, ours.command, reward, alive))
            ideal, alive = np.where(alive & np.isfinite(moved).all(axis=0), moved, ideal), alive & goes_on
    return End(ideal, alive)


def look(
    env: Platform, domains: dict[str, Float[Array, "n"]], keys: Key[Array, "n"], ideal: Float[Array, "d n"]
) -> Float[Array, "d n"]:
    """What a policy would see after the last step."""
    return env.effects.observe(randomness.words(keys), jnp.int32(env.max_steps), ideal, domains)


def _physics(
    env: HostEnv, machines: Machines, reached: Float[np.ndarray, "a n"], alive: Bool[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "d n"], Bool[np.ndarray, "n"]]:
    """Reward, new ideal observation, and which machines go on; a policy's NaN makes the reward NaN, as elsewhere."""
    sane = np.isfinite(reached).all(axis=0)
    earned, failed = machines.step(reached if sane.all() else np.where(sane, reached, 0.0), alive)
    earned, failed = _shaped(env, "step", earned, alive.shape), np.asarray(failed, bool)
    moved = _shaped(env, "observe", machines.observe(), (len(env.observations), alive.size))
    whole = np.isfinite(earned)
    reward = np.where(sane, np.where(alive & whole, earned, 0.0), np.where(alive, np.nan, 0.0))
    return reward, moved, whole & ~failed & np.isfinite(moved).all(axis=0)


def _deciding(env: HostEnv, how: HowToAct, policies: Any, words: Any, domains: GroupedDomains) -> Callable:
    """What is ours of a step, from (t, ideal, queue); a policy on the host acts between two programs."""
    if not isinstance(policies, HostPolicy):
        before, arrays = _program(env, how, policies)
        return lambda t, ideal, queue: before(arrays, words, domains, t, ideal, queue)
    own = {name: column[0] for name, column in domains.items()}

    def decide(t, ideal, queue):
        action = policies(np.asarray(_observation(env, words[0], t, ideal, own)))
        before, arrays = _program(env, _given, jnp.asarray(action)[None])
        return before(arrays, words, domains, t, ideal, queue)

    return decide


def _given(action: Float[Array, "a n"]) -> Act:
    """Act as was decided already."""
    return lambda _key, _t, _observation: action


@functools.partial(jax.jit, static_argnums=0)
def _observation(
    env: HostEnv, words: randomness.Words, t: Int[Array, ""], ideal: Float[Array, "d n"], domains: dict
) -> Float[Array, "d n"]:
    """What the sensors read."""
    return env.effects.observe(words, t, ideal, domains)


def _program(env: HostEnv, how: HowToAct, policies: Any) -> tuple[Callable, list[Any]]:
    """The compiled step for policies of this kind, and the arrays that it takes of them."""
    leaves, structure = jax.tree.flatten(policies)
    fixed = tuple(None if hasattr(leaf, "shape") else leaf for leaf in leaves)
    arrays = [jnp.asarray(leaf) for leaf, other in zip(leaves, fixed, strict=True) if other is None]
    return _compiled(env, how, structure, fixed), arrays


@functools.lru_cache(maxsize=PROGRAMS)
def _compiled(env: HostEnv, how: HowToAct, structure: Any, fixed: tuple[Any, ...]) -> Callable:
    """Noise, policy, scaling, delay and dead band of all machines; one policy after the other, so that what one does
    depends on no other, to the last bit."""

    def before(arrays, words, domains, t, ideal, queue):
        P = words.shape[0]
        apart = jnp.moveaxis(ideal.reshape(ideal.shape[0], P, -1), 1, 0)

        def one(group):
            arrays, words, domains, ideal, queue = group
            rest = iter(arrays)
            policy = jax.tree.unflatten(structure, [next(rest) if leaf is None else leaf for leaf in fixed])
            return _before(env, how(policy), words, domains, t, ideal, queue)

        ours, queue = jax.lax.map(one, (arrays, words, domains, apart, queue))
        return Before(*(jnp.moveaxis(x, 0, 1).reshape(x.shape[1], -1) for x in ours)), queue

    return jax.jit(before, donate_argnums=5)


def _before(
    env: HostEnv,
    act: Act,
    words: randomness.Words,
    domains: dict[str, Float[Array, "n"]],
    t: Int[Array, ""],
    ideal: Float[Array, "d n"],
    queue: Queue,
) -> tuple[Before, Queue]:
    """The order of `rollout.advance`, up to the physics."""
    observation = env.effects.observe(words, t, ideal, domains)
    action = act(words, t, observation)
    wanted = scale_and_clip(action, tuple(s.low for s in env.actions), tuple(s.high for s in env.actions))
    command, queue = env.effects.delay(t, queue, wanted, domains)
    return Before(observation, action, command, env.effects.reach(command, domains)), queue


def _empty_queue(env: HostEnv, shape: tuple[int, ...]) -> Float[Array, "P slots a R"]:
    P, R = shape
    one = env.effects.delay.empty(jnp.zeros((len(env.actions), R)))
    return jnp.broadcast_to(one, (P, *one.shape)) + 0.0  # an array of its own, which the program may reuse


def _observed(env: HostEnv, columns: HostDomains, machines: Machines) -> Float[np.ndarray, "d n"]:
    with _blaming(env, columns):
        n = next(iter(columns.values())).size
        return _shaped(env, "observe", machines.observe(), (len(env.observations), n))


def _shaped(env: HostEnv, method: str, found: Any, wanted: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """An array of its own, of numbers of 32 bits, with the wanted shape."""
    array = np.array(found, np.float32)
    if array.shape != wanted:
        rows = f"one row for each of {', '.join(s.name for s in env.observations)}, " if len(wanted) > 1 else ""
        raise ValueError(
            f"{method} returned an array of shape {array.shape} where {wanted} is needed: {rows}one column for each "
            "machine"
        )
    return array


@contextlib.contextmanager
def opened(env: HostEnv, columns: HostDomains, seeds: np.ndarray) -> Iterator[Machines]:
    """The machines, which are closed in any case."""
    with _blaming(env, columns):
        machines = env.open(columns, seeds)
    try:
        yield machines
    finally:
        machines.close()


@contextlib.contextmanager
def _blaming(env: HostEnv, columns: HostDomains) -> Iterator[None]:
    """Whatever a simulator raises becomes one sentence: which platform, which domain, what was raised."""
    try:
        yield
    except Exception as error:
        n = next(iter(columns.values())).size
        known = getattr(error, "machine", 0 if n == 1 else None)
        which = f"domain {known}" if known is not None else f"one of {n} domains, the first of which is"
        values = ", ".join(f"{name}={column[known or 0]:g}" for name, column in columns.items())
        kind = "" if isinstance(error, MachineError | ValueError) else f"{type(error).__name__}: "
        what = f"{kind}{error}".rstrip(".")
        raise ValueError(f"{env.name} broke on {which} ({values}): {what}{users_line(error)}.") from error
