"""How fast a platform runs on this machine."""

import time

import jax

from spota.sim import host_speed
from spota.sim.env import Env, Platform
from spota.sim.host import HostEnv
from spota.sim.host_speed import rest
from spota.sim.rollout import pure, returns

ROLLOUTS = 256
"""Side by side: enough that what is compiled vectorises."""


def steps_per_second(env: Platform) -> float:
    """Steps of one machine a second, with all machines side by side."""
    return host_speed.steps_per_second(env, rest(env)) if isinstance(env, HostEnv) else _pure(pure(env))


def _pure(env: Env) -> float:
    domains, policy = env.domain.sample(jax.random.key(0), ROLLOUTS), rest(env)
    keys = jax.random.split(jax.random.key(1), (ROLLOUTS, 1))

    def run() -> None:
        jax.block_until_ready(returns(env, policy, domains, keys).returns)

    run()
    begun = time.perf_counter()
    run()
    return ROLLOUTS * env.max_steps / (time.perf_counter() - begun)
