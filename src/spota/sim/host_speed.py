"""How fast a host environment is on this machine, measured in less than a second."""

import time

import jax
import numpy as np

from spota.sim.host import HostEnv
from spota.sim.host_rollout import opened

MACHINES = 64
SECONDS = 0.3
"""Of measuring, at least."""


def steps_per_second(env: HostEnv) -> float:
    """Steps of all machines together, with commands in the middle of their ranges; an estimate for planning."""
    n = min(env.at_once, MACHINES)
    domains = {name: np.asarray(x, np.float64) for name, x in env.domain.sample(jax.random.key(0), n).items()}
    command = np.repeat([[(s.low + s.high) / 2] for s in env.actions], n, axis=1)
    active, steps = np.ones(n, bool), 0
    with opened(env, domains, np.arange(n, dtype=np.uint32)) as machines:
        machines.step(command, active)
        begun = time.perf_counter()
        while time.perf_counter() - begun < SECONDS:
            machines.step(command, active)
            machines.observe()
            steps += n
        return steps / (time.perf_counter() - begun)
