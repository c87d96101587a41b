"""How often `applies` is right, and whether posteriors of a fit tell the truth, on machines that are known.

python -m benchmarks recordings
python -m benchmarks recordings --seeds 7
"""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax

from spota.envs import make
from spota.experiments.recorded_machines import ranks, refusals
from spota.sim.env import Env

HANGING = {"cart-pole": (0.0, -3.14159265, 0.0, 0.0), "qube": (0.0, -3.14159265, 0.0, 0.0)}
PARAMETER = "pole_length"


def main(platforms: tuple[str, ...] = (), seeds: tuple[int, ...] = (), machines: int = 100) -> None:
    for name in platforms or ("cart-pole",):
        for seed in seeds or (1,):
            for document in _documents(name, seed, machines):
                sys.stdout.write(json.dumps({"env": name, "seed": seed, **document}) + "\n")
                sys.stdout.flush()


def _documents(name: str, seed: int, machines: int) -> Iterator[dict[str, Any]]:
    """One line for each question, as soon as it is answered."""
    env, begun = make(name), time.process_time()
    assert isinstance(env, Env)
    k_refusals, k_ranks = jax.random.split(jax.random.key(seed))
    for told in refusals(k_refusals, env, HANGING[name], PARAMETER, machines):
        yield {"machines": told.kind, "refused": str(told), "cpu_seconds": round(time.process_time() - begun, 1)}
    found = ranks(k_ranks, env, HANGING[name], machines).to_dict()
    yield {"ranks": found, "cpu_seconds": round(time.process_time() - begun, 1)}
