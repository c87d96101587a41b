"""How fast a host environment is on this machine, measured through the seam in about a second."""

import contextlib
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from spota.sim.acting import acting_with
from spota.sim.host import HostEnv
from spota.sim.host_rollout import HostStep, play
from spota.sim.rollout import alone

FEW, MANY = 32, 256
"""Machines side by side in two measurements of what a run costs."""
SEVERAL = 64
"""In one of steps a second."""
POLICIES = 8
"""That share the many machines in a third one."""
SECONDS = 0.3
"""Of each measurement, about."""
WARMING = 3
"""Steps before it, which compile."""


class Pace(NamedTuple):
    """What a rollout costs, in seconds: each call for all machines, each machine in a call, to open a machine, and in
    each call every policy after the first."""

    call: float
    machine: float
    opening: float
    policy: float = 0.0

    def seconds(self, machines: int, steps: int, policies: int = 1) -> float:
        """Of one rollout on so many machines side by side, which so many policies share."""
        a_step = self.call + machines * self.machine + (policies - 1) * self.policy
        return machines * self.opening + steps * a_step


def pace(env: HostEnv, policy: Any) -> Pace:
    """From three measurements with this policy; a call costs the same for few and for many machines."""
    few, many = min(FEW, env.at_once), min(MANY, env.at_once)
    (_, small), (opening, large) = _timed(env, policy, few), _timed(env, policy, many)
    machine = large / many if few == many else max(large - small, 0.0) / (many - few)
    shared = _timed(env, policy, many, POLICIES)[1] if many % POLICIES == 0 else large
    return Pace(max(large - many * machine, 0.0), machine, opening / many, max(shared - large, 0.0) / (POLICIES - 1))


def steps_per_second(env: HostEnv, policy: Any) -> float:
    """Steps of several machines together."""
    n = min(SEVERAL, env.at_once)
    return n / _timed(env, policy, n)[1]


class _MeasuredError(Exception):
    """There is no need to go on."""


def _timed(env: HostEnv, policy: Any, n: int, policies: int = 1) -> tuple[float, float]:
    """Seconds to open n machines, and of one step of all; a moment in which others are busy counts: a run has them."""
    drawn = env.domain.sample(jax.random.key(0), n)
    domains = {name: column.reshape(policies, -1) for name, column in drawn.items()}
    keys = jax.random.split(jax.random.key(1), (policies, n // policies))
    several = jax.tree.map(lambda x: jnp.repeat(x, policies, axis=0) if eqx.is_array(x) else x, alone(policy))
    moments: list[float] = []

    def see(_: int, step: HostStep) -> None:
        moments.append(time.perf_counter())
        warm, over = len(moments) > WARMING, 2 * np.count_nonzero(step.alive) < n
        if over or (warm and moments[-1] - moments[1] > seconds):
            raise _MeasuredError

    for seconds in (0.0, SECONDS):  # noqa: B007, `see` reads it
        moments[:] = [time.perf_counter()]
        with contextlib.suppress(_MeasuredError):
            play(env, acting_with, several, domains, keys, see)
    first, *others = np.diff(moments).tolist() or [0.0]
    step = float(np.mean(others)) if others else first
    return max(first - step, 0.0), step


def rest(env: Any) -> Any:
    """A policy that does nothing, for a measurement of the simulator alone."""
    return lambda observation: jnp.zeros((len(env.actions), *observation.shape[1:]))
