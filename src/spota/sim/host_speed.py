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
    """Steps of all machines together, with commands in the middle of their ranges; an estimate for planning.

    As in a rollout, a failed machine is not stepped again: some simulators warn if one does, and time would be wrong.
    """
    n = min(env.at_once, MACHINES)
    domains = {name: np.asarray(x, np.float64) for name, x in env.domain.sample(jax.random.key(0), n).items()}
    command = np.repeat([[(s.low + s.high) / 2] for s in env.actions], n, axis=1)
    steps, seconds, until = 0, 0.0, time.perf_counter() + SECONDS
    while not steps or time.perf_counter() < until:
        active = np.ones(n, bool)
        with opened(env, domains, np.arange(n, dtype=np.uint32)) as machines:
            for _ in range(env.max_steps):
                begun = time.perf_counter()
                _, failed = machines.step(command, active)
                machines.observe()
                steps, seconds = steps + int(active.sum()), seconds + time.perf_counter() - begun
                active = active & ~failed
                if not active.any() or begun > until:
                    break
    return steps / seconds
