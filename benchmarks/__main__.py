"""Run all benchmarks, or those named: `python -m benchmarks rollout`."""

import sys

from spota import devices

devices.use_all_cores()

from benchmarks import rollout  # noqa: E402  (jax must know its devices first)

BENCHMARKS = {"rollout": rollout.main}

for name in sys.argv[1:] or BENCHMARKS:
    BENCHMARKS[name]()
