"""Many rollouts on host environments: P policies with R rollouts each, as many at once as the environment allows."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from spota.sim.acting import HowToAct
from spota.sim.host import HostEnv
from spota.sim.host_rollout import End, GroupedDomains, HostStep, play


def pieces(env: HostEnv, policies: int, rollouts: int) -> Iterator[tuple[np.ndarray, int]]:
    """Cut the R rollouts of each policy into pieces for as many machines as there may be at once.

    Yields the rollouts of a piece, and how many of them count: the last one is repeated to fill up, so that all pieces
    have one shape and one program.
    """
    rounds = -(-policies * rollouts // env.at_once)
    width = -(-rollouts // min(rounds, rollouts))
    for first in range(0, rollouts, width):
        yield np.minimum(np.arange(first, first + width), rollouts - 1), min(width, rollouts - first)


def group_returns(
    env: HostEnv,
    how: HowToAct,
    policies: Any,
    domains: GroupedDomains,
    keys: Key[Array, "P R"],
) -> tuple[Float[np.ndarray, "P R"], Bool[np.ndarray, "P R"]]:
    """The return of every rollout, and whether it survived; nothing else is stored."""
    P, R = keys.shape
    total, survived = np.zeros((P, R), np.float32), np.zeros((P, R), bool)
    for index, size in pieces(env, P, R):
        earned = np.zeros(P * index.size)

        def see(_: int, step: HostStep, earned: np.ndarray = earned) -> None:
            earned += step.reward

        end = play(env, how, policies, *_some(domains, keys, index), see)
        for into, found in ((total, earned), (survived, end.alive)):
            into[:, index[:size]] = found.reshape(P, -1)[:, :size]
    return total, survived


def group_steps(
    env: HostEnv, how: HowToAct, policies: Any, domains: GroupedDomains, keys: Key[Array, "P R"]
) -> tuple[HostStep, End]:
    """Every step of every rollout: arrays are [P, T, channel, R]; zeros stand where nothing happened any more."""
    P, R = keys.shape
    parts = [
        _apart(_recorded(env, how, policies, *_some(domains, keys, index)), P, size)
        for index, size in pieces(env, P, R)
    ]
    return jax.tree.map(lambda *some: np.concatenate(some, axis=-1), *parts)


def _recorded(
    env: HostEnv, how: HowToAct, policies: Any, domains: GroupedDomains, keys: Key[Array, "P R"]
) -> tuple[HostStep, End]:
    """One piece: arrays are [T, channel, P · R]."""
    T, d, a, n = env.max_steps, len(env.observations), len(env.actions), keys.size
    shapes = ((T, d, n), (T, d, n), (T, a, n), (T, a, n), (T, n))
    kept = HostStep(*(np.zeros(shape, np.float32) for shape in shapes), alive=np.zeros((T, n), bool))

    def see(t: int, step: HostStep) -> None:
        for into, value in zip(kept, step, strict=True):
            into[t] = np.asarray(value)

    return kept, play(env, how, policies, domains, keys, see)


def _apart(found: tuple[HostStep, End], policies: int, size: int) -> tuple[HostStep, End]:
    """The policies' axis in front, and only the rollouts that count."""
    return jax.tree.map(lambda x: np.moveaxis(x.reshape(*x.shape[:-1], policies, -1), -2, 0)[..., :size], found)


def _some(
    domains: GroupedDomains, keys: Key[Array, "P R"], index: np.ndarray
) -> tuple[GroupedDomains, Key[Array, "P _"]]:
    """The domains and keys of some rollouts; nothing is copied if these are all."""
    if index.size == keys.shape[1]:  # then they are in order
        return domains, keys
    return {name: np.asarray(column)[:, index] for name, column in domains.items()}, keys[:, index]
