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

    As in a rollout, a failed machine is not stepped again: some simulators warn if one does. The median over the steps
    forgives a machine that is busy for a moment.
    """
    n = min(env.at_once, MACHINES)
    domains = {name: np.asarray(x, np.float64) for name, x in env.domain.sample(jax.random.key(0), n).items()}
    command = np.repeat([[(s.low + s.high) / 2] for s in env.actions], n, axis=1)
    rates, until = [], time.perf_counter() + SECONDS
    while not rates or time.perf_counter() < until:
        active = np.ones(n, bool)
        with opened(env, domains, np.arange(n, dtype=np.uint32)) as machines:
            for _ in range(env.max_steps):
                begun = time.perf_counter()
                _, failed = machines.step(command, active)
                machines.observe()
                rates.append(active.sum() / (time.perf_counter() - begun))
                active = active & ~failed
                if 2 * active.sum() < n or begun > until:
                    break
    return float(np.median(rates))
