"""How fast a platform runs on this machine."""

import time

import jax
import jax.numpy as jnp
import numpy as np

from spota.sim.env import Env, Platform
from spota.sim.host import HostEnv
from spota.sim.probes import drive, some_probes
from spota.sim.rollout import returns

ROLLOUTS = 256
"""Side by side: enough that what is compiled vectorises."""
LONG_ENOUGH = 0.5
"""Seconds of a measurement."""
STEPS = 100
"""Of an episode on a host environment that is measured."""


def steps_per_second(env: Platform) -> float:
    """Steps of one machine a second, with all machines side by side."""
    return _host(env) if isinstance(env, HostEnv) else _pure(env)  # type: ignore[arg-type]


def _pure(env: Env) -> float:
    domains, policy = env.domain.sample(jax.random.key(0), ROLLOUTS), _rest(env)
    keys = jax.random.split(jax.random.key(1), (ROLLOUTS, 1))

    def run() -> None:
        jax.block_until_ready(returns(env, policy, domains, keys).returns)

    run()
    begun = time.perf_counter()
    run()
    return ROLLOUTS * env.max_steps / (time.perf_counter() - begun)


def _rest(env: Env):
    """Do nothing."""
    return lambda observation: jnp.zeros((len(env.actions), *observation.shape[1:]))


def _host(env: HostEnv) -> float:
    n, steps = min(ROLLOUTS, env.at_once), min(env.max_steps, STEPS)
    done, seconds, number = 0, 0.0, 0
    while seconds < LONG_ENOUGH and number < 20:
        drawn = env.domain.sample(jax.random.fold_in(jax.random.key(0), number), n)
        domains = {name: np.asarray(column, float) for name, column in drawn.items()}
        record = drive(env, domains, np.arange(n, dtype=np.uint32), some_probes(env, n, steps, number, 0.0))
        done, seconds, number = done + int(record.alive.sum()), seconds + record.seconds, number + 1
    return done / seconds
