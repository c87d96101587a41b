"""How often `applies` is right, and whether posteriors of a fit tell the truth, on machines that are known.

python -m benchmarks recordings
"""

import json
import sys
import time

import jax

from spota.envs import make
from spota.experiments.recorded_machines import ranks, refusals
from spota.sim.env import Env

HANGING = {"cart-pole": (0.0, -3.14159265, 0.0, 0.0), "qube": (0.0, -3.14159265, 0.0, 0.0)}
PARAMETER = "pole_length"


def main(platforms: tuple[str, ...] = (), machines: int = 100) -> None:
    for name in platforms or ("cart-pole",):
        env, begun = make(name), time.process_time()
        assert isinstance(env, Env)
        told = refusals(jax.random.key(1), env, HANGING[name], PARAMETER, machines)
        document = {
            "env": name,
            "refused": {one.kind: f"{one.refused} of {one.machines}" for one in told},
            "ranks": ranks(jax.random.key(2), env, HANGING[name], machines).to_dict(),
            "cpu_seconds": round(time.process_time() - begun, 1),
        }
        json.dump(document, sys.stdout, indent=2)
        sys.stdout.write("\n")
