"""Run all benchmarks, or those named: `python -m benchmarks rollout`."""

import sys

from spota import devices

devices.use_all_cores()

from benchmarks import learning, rollout  # noqa: E402  (jax must know its devices first)

BENCHMARKS = {"rollout": rollout.main, "learning": learning.main}

for name in sys.argv[1:] or ["rollout"]:  # learning takes ten minutes: ask for it by name
    BENCHMARKS[name]()
