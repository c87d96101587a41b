"""Episodes that are driven to learn about a simulator, not about a policy: open commands and random feedback."""

import contextlib
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from spota.sim.env import Env, Platform
from spota.sim.host import HostDomains, HostEnv, Machines
from spota.sim.rollout import pure
from spota.sim.watchdog import WATCH, Watched, watching

HOLD = 10
"""Steps for which an open command is held, on average: what jumps at every step moves little."""


@dataclass(frozen=True)
class Probes:
    """How each of n machines is driven, in shares of the ranges: an open command, and a feedback."""

    open: Float[np.ndarray, "T a n"]
    gains: Float[np.ndarray, "a d n"]

    def take(self, index: np.ndarray) -> "Probes":
        """Those of some machines."""
        return Probes(self.open[..., index], self.gains[..., index])


@dataclass(frozen=True)
class Record:
    """What happened: observations before and after every step, where each machine was alive."""

    observations: Float[np.ndarray, "later d n"]
    rewards: Float[np.ndarray, "T n"]
    failed: Bool[np.ndarray, "T n"]
    alive: Bool[np.ndarray, "T n"]
    danger: Float[np.ndarray, "T n"]
    """The sum of a pure platform's dangers; zero for others, which only say when they have failed."""
    diverged: Bool[np.ndarray, "n"]
    warned: tuple[str, ...]

    def same(self, other: "Record", i: int, j: int) -> bool:
        """Whether machine i here did to the last bit what machine j did there."""
        mine, others = (tuple(_of(r, k)) for r, k in ((self, i), (other, j)))
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, others, strict=True))


def _of(record: Record, i: int) -> Iterator[np.ndarray]:
    yield from (record.observations[..., i], record.rewards[:, i], record.failed[:, i])


def some_probes(env: Platform, n: int, steps: int, seed: int, feedback: float) -> Probes:
    """Random ones; a share of them, `feedback`, acts on the observation with gains of all sizes."""
    rng = np.random.default_rng(seed)
    a, d = len(env.actions), len(env.observations)
    levels = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (steps, a, n)) + rng.uniform(-0.2, 0.2, (steps, a, n))
    switch = rng.random((steps, 1, n)) < 1 / HOLD
    switch[0] = True
    last = np.maximum.accumulate(np.where(switch, np.arange(steps)[:, None, None], 0), axis=0)
    commands = np.take_along_axis(levels, np.broadcast_to(last, levels.shape), axis=0)
    gains = rng.standard_normal((a, d, n)) * 10 ** rng.uniform(-0.5, 1.0, (1, 1, n))
    fed = np.arange(n) < round(feedback * n)
    return Probes(np.where(fed, 0.1, 1.0) * commands, np.where(fed, gains, 0.0))


def drive(env: Platform, domains: HostDomains, seeds: UInt32[np.ndarray, "n"], probes: Probes) -> Record:
    """Run every machine until it fails or the probes end."""
    low, high = (np.array([getattr(s, end) for s in env.actions])[:, None] for end in ("low", "high"))
    reach = np.array([max(abs(s.low), abs(s.high)) for s in env.observations])[:, None]
    steps, n = probes.open.shape[0], seeds.size
    alive, rows = np.ones(n, bool), []
    with _heard() as warned, _opened(env, domains, seeds) as machines:
        seen = [np.array(machines.observe(), float)]
        for t in range(steps):
            share = probes.open[t] + (probes.gains * (np.nan_to_num(seen[-1]) / reach)).sum(axis=1)
            command = np.clip((low + high) / 2 + share * (high - low) / 2, low, high)
            reward, failed = machines.step(command.astype(np.float32), alive)
            seen.append(np.where(alive, machines.observe(), seen[-1]))
            danger = getattr(machines, "danger", np.zeros(n))
            rows.append((np.where(alive, reward, 0.0), failed & alive, alive, danger))
            alive = alive & ~failed
            if not alive.any():
                break
        diverged = np.array(getattr(machines, "diverged", np.zeros(n, bool)))
    rewards, failures, lived, dangers = (np.stack(column) for column in zip(*rows, strict=True))
    return Record(np.stack(seen), rewards, failures, lived, dangers, diverged, tuple(dict.fromkeys(map(_said, warned))))


def _said(warning: warnings.WarningMessage) -> str:
    return f"{warning.category.__name__}: {warning.message}"


@contextlib.contextmanager
def _heard() -> Iterator[list[warnings.WarningMessage]]:
    """Warnings about what happens; that something will be renamed one day is none."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        yield heard


@contextlib.contextmanager
def _opened(env: Platform, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]) -> Iterator[Machines]:
    if not isinstance(env, HostEnv):
        yield PureMachines(pure(env), domains, seeds)
        return
    with watching(env.patience, lambda error: f"{env.name} broke: {error}."):
        machines = env.open(domains, seeds)
        WATCH.ended()
        try:
            yield Watched(machines)
        finally:
            machines.close()


class PureMachines:
    """A pure platform as machines, so that one driver serves both kinds."""

    def __init__(self, env: Env, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]):
        """At the start states."""
        self._env = env
        self._domains = {name: jnp.asarray(column, jnp.float32) for name, column in domains.items()}
        self._state, self._seen = _start(env, self._domains, jnp.asarray(seeds))
        self.danger = np.zeros(seeds.size)

    def observe(self) -> Float[np.ndarray, "d n"]:
        """The ideal observations."""
        return np.asarray(self._seen)

    def step(
        self, command: Float[np.ndarray, "a n"], active: Bool[np.ndarray, "n"]
    ) -> tuple[Float[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
        """One step of all; the failed ones stand still."""
        given = jnp.asarray(command), jnp.asarray(active)
        self._state, self._seen, reward, failed, danger = _step(self._env, self._domains, self._state, *given)
        self.danger = np.asarray(danger, float)
        return np.asarray(reward, float), np.asarray(failed)

    def close(self) -> None:
        """There is nothing to free."""


@functools.partial(jax.jit, static_argnums=0)
def _start(env: Env, domains: dict[str, Float[Array, "n"]], seeds: Array):
    def one(domain, seed):
        xi = env.params(domain)
        state = env.start(jax.random.key(seed), xi)
        return state, jnp.stack(env.observe(state, xi))

    return jax.vmap(one, in_axes=-1, out_axes=-1)(domains, seeds)


@functools.partial(jax.jit, static_argnums=0)
def _step(env: Env, domains: dict[str, Float[Array, "n"]], states, command: Array, active: Array):
    def one(domain, state, command, active):
        xi = env.params(domain)
        reward = env.reward(state, tuple(command), xi)
        moved = jax.tree.map(lambda new, old: jnp.where(active, new, old), env.step(state, tuple(command), xi), state)
        danger = sum(env.danger(moved, xi), jnp.zeros(()))
        return moved, jnp.stack(env.observe(moved, xi)), reward, env.failed(moved, xi), danger

    return jax.vmap(one, in_axes=-1, out_axes=-1)(domains, states, command, active)
