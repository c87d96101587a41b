"""Rollouts on host environments: the physics of a step on the host, all that is ours of it as one compiled program.

Policies may differ between groups of rollouts: P policies with R rollouts each have P · R machines side by side, and
one policy is P = 1. Random numbers are those of a pure environment: functions of a rollout's key and step.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from spota.sim import randomness
from spota.sim.acting import Act, HowToAct, given
from spota.sim.checks import users_line
from spota.sim.effects import Queue, scale_and_clip
from spota.sim.env import Platform
from spota.sim.host import HostDomains, HostEnv, MachineError, Machines
from spota.sim.host_policy import HostPolicy
from spota.sim.watchdog import WATCH, Watched, watching

GroupedDomains = Mapping[str, Float[Array | np.ndarray, "P _"]]
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

    observation: Any  # [d, n]
    action: Any  # [a, n]
    command: Any  # [a, n]
    reached: Any  # [a, n], what reaches the physics


def play(env: HostEnv, how: HowToAct, policies: Any, domains: GroupedDomains, keys: Key[Array, "P R"], see: See) -> End:
    """One episode on every machine; a failed one stands still and earns nothing. NaN from the physics is a failure.

    Policies have a leading axis P. The caller sees to it that the machines are not too many, see `host_groups`.
    """
    words = jnp.moveaxis(randomness.words(keys), 0, 1)
    heard = {name: jnp.asarray(domains[name]) for name in env.effects.parameters}
    decide, held = _deciding(env, how, policies, words, heard, keys.shape)
    columns = {name: np.asarray(column, np.float64).reshape(-1) for name, column in domains.items()}
    seeds = randomness.seeds(keys.reshape(-1))
    with opened(env, columns, lambda: env.open(columns, seeds)) as machines:
        ideal = _observed(env, columns, machines)
        alive = np.asarray(np.isfinite(ideal).all(axis=0))
        for t in range(env.max_steps):
            if not alive.any():
                break
            found, held = decide(np.int32(t), ideal, held)
            ours = _apart(env, np.asarray(found))
            with blaming(env, columns):
                after = _physics(env, machines, ours.reached, ideal, alive)
            see(t, HostStep(ours.observation, ideal, ours.action, ours.command, after.reward, alive))
            ideal, alive = after.ideal, after.alive
    return End(ideal, alive)


def look(
    env: Platform, domains: dict[str, Float[Array, "n"]], keys: Key[Array, "n"], ideal: Float[Array, "d n"]
) -> Float[Array, "d n"]:
    """What a policy would see after the last step."""
    return env.effects.observe(randomness.words(keys), jnp.int32(env.max_steps), ideal, domains)


class After(NamedTuple):
    """What the physics made of a step: what was earned, what is seen now, and which machines go on."""

    reward: Float[np.ndarray, "n"]
    ideal: Float[np.ndarray, "d n"]
    alive: Bool[np.ndarray, "n"]


def _physics(
    env: HostEnv,
    machines: Machines,
    reached: Float[np.ndarray, "a n"],
    ideal: Float[np.ndarray, "d n"],
    alive: Bool[np.ndarray, "n"],
) -> After:
    """One step of the machines; a policy's NaN makes the reward NaN, as elsewhere."""
    sane = np.isfinite(reached).all()
    earned, failed = machines.step(reached if sane else np.where(np.isfinite(reached).all(axis=0), reached, 0.0), alive)
    earned, failed = _shaped(env, "step", earned, alive.shape), np.asarray(failed, bool)
    moved = _shaped(env, "observe", machines.observe(), ideal.shape)
    if sane and alive.all() and np.isfinite(earned).all() and np.isfinite(moved).all():  # as in most steps
        return After(earned, moved, ~failed)
    sane, whole, seen = (np.isfinite(x).all(axis=0) for x in (reached, earned[None], moved))
    reward = np.where(sane, np.where(alive & whole, earned, 0.0), np.where(alive, np.nan, 0.0))
    return After(reward, np.where(alive & seen, moved, ideal), alive & whole & ~failed & seen)


def _deciding(
    env: HostEnv, how: HowToAct, policies: Any, words: Any, heard: GroupedDomains, shape: tuple[int, ...]
) -> tuple[Callable, Any]:
    """What is ours of a step, from (t, ideal, held), and what is held at first: the queue, and what policies remember.

    A policy on the host acts between two programs.
    """
    queue = _empty_queue(env, shape)
    if not isinstance(policies, HostPolicy):
        first, before, arrays = _program(env, how, policies)
        return lambda t, ideal, held: before(arrays, words, heard, t, ideal, held), (queue, first(arrays, words))
    own = {name: column[0] for name, column in heard.items()}

    def decide(t, ideal, held):
        action = policies(np.asarray(_observation(env, words[0], t, ideal, own)))
        _, before, arrays = _program(env, given, jnp.asarray(action)[None])
        return before(arrays, words, heard, t, ideal, held)

    return decide, (queue, ())


@functools.partial(jax.jit, static_argnums=0)
def _observation(
    env: HostEnv, words: randomness.Words, t: Int[Array, ""], ideal: Float[Array, "d n"], domains: dict
) -> Float[Array, "d n"]:
    """What the sensors read."""
    return env.effects.observe(words, t, ideal, domains)


def _program(env: HostEnv, how: HowToAct, policies: Any) -> tuple[Callable, Callable, list[Any]]:
    """What policies of this kind remember at first, their compiled step, and the arrays that both take of them."""
    leaves, structure = jax.tree.flatten(policies)
    fixed = tuple(None if hasattr(leaf, "shape") else leaf for leaf in leaves)
    arrays = [jnp.asarray(leaf) for leaf, other in zip(leaves, fixed, strict=True) if other is None]
    return *_compiled(env, how, structure, fixed), arrays


@functools.lru_cache(maxsize=PROGRAMS)
def _compiled(env: HostEnv, how: HowToAct, structure: Any, fixed: tuple[Any, ...]) -> tuple[Callable, Callable]:
    """Noise, policy, scaling, delay and dead band of all machines; one policy after the other, so that what one does
    depends on no other, to the last bit. All of it comes back as one array: each costs as much as a small product."""

    def act_of(arrays):
        rest = iter(arrays)
        return how(jax.tree.unflatten(structure, [next(rest) if leaf is None else leaf for leaf in fixed]))

    def first(arrays, words):
        return jax.lax.map(lambda group: act_of(group[0]).start(group[1].shape[-1]), (arrays, words))

    def one(group, t):
        arrays, words, domains, ideal, held = group
        ours, held = _before(env, act_of(arrays), words, domains, t, ideal, held)
        return jnp.concatenate(ours), held

    def before(arrays, words, domains, t, ideal, held):
        P = words.shape[0]
        apart = jnp.moveaxis(ideal.reshape(ideal.shape[0], P, -1), 1, 0)
        groups = arrays, words, domains, apart, held
        if P == 1:  # without the loop, which would cost as much as the policy
            ours, held = one(jax.tree.map(lambda x: x[0], groups), t)
            return ours, jax.tree.map(lambda x: x[None], held)
        ours, held = jax.lax.map(lambda group: one(group, t), groups)
        return jnp.moveaxis(ours, 0, 1).reshape(ours.shape[1], -1), held

    return jax.jit(first), jax.jit(before, donate_argnums=5)


def _apart(env: HostEnv, found: Float[np.ndarray, "rows n"]) -> Before:
    """The rows of a compiled step under their names."""
    d, a = len(env.observations), len(env.actions)
    return Before(found[:d], found[d : d + a], found[d + a : d + 2 * a], found[d + 2 * a :])


def _before(
    env: HostEnv,
    act: Act,
    words: randomness.Words,
    domains: dict[str, Float[Array, "n"]],
    t: Int[Array, ""],
    ideal: Float[Array, "d n"],
    held: tuple[Queue, PyTree],
) -> tuple[Before, tuple[Queue, PyTree]]:
    """The order of `rollout.advance`, up to the physics; the queue of commands and the policy's memory are held."""
    queue, memory = held
    observation = env.effects.observe(words, t, ideal, domains)
    memory, action = act.choose(words, t, memory, observation)
    wanted = scale_and_clip(action, tuple(s.low for s in env.actions), tuple(s.high for s in env.actions))
    command, queue = env.effects.delay(t, queue, wanted, domains)
    return Before(observation, action, command, env.effects.reach(command, domains)), (queue, memory)


def _empty_queue(env: HostEnv, shape: tuple[int, ...]) -> Float[Array, "P slots a R"]:
    P, R = shape
    one = env.effects.delay.empty(jnp.zeros((len(env.actions), R)))
    return jnp.broadcast_to(one, (P, *one.shape)) + 0.0  # an array of its own, which the program may reuse


def _observed(env: HostEnv, columns: HostDomains, machines: Machines) -> Float[np.ndarray, "d n"]:
    with blaming(env, columns):
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
def opened(env: HostEnv, columns: HostDomains, begin: Callable[[], Machines]) -> Iterator[Machines]:
    """The machines, which are watched, and closed in any case."""
    with watching(env.patience, lambda error: blamed(env, columns, error)):
        with blaming(env, columns):
            machines = begin()
        WATCH.ended()
        try:
            yield Watched(machines)
        finally:
            machines.close()


@contextlib.contextmanager
def blaming(env: HostEnv, columns: HostDomains) -> Iterator[None]:
    """Whatever a simulator raises becomes one sentence."""
    try:
        yield
    except Exception as error:
        raise ValueError(blamed(env, columns, error)) from error


def blamed(env: HostEnv, columns: HostDomains, error: Exception) -> str:
    """Which platform broke on which domain, and how."""
    n = next(iter(columns.values())).size
    known = getattr(error, "machine", None)
    known = 0 if known is None and n == 1 else known
    which = f"domain {known}" if known is not None else f"one of {n} domains, the first of which is"
    values = ", ".join(f"{name}={column[known or 0]:g}" for name, column in columns.items())
    kind = "" if isinstance(error, MachineError | ValueError) else f"{type(error).__name__}: "
    what = f"{kind}{error}".rstrip(".")
    return f"{env.name} broke on {which} ({values}): {what}{users_line(error)}."
