"""Certified policies on machines of their table, over the line and in the simulator: does the certificate hold?"""

import time

from spota.deploy.sources import deployable
from spota.experiments.transfer_table import MACHINES, on_the_table


def main(runs: tuple[str, ...], seeds: tuple[int, ...] = (), machines: int = MACHINES) -> None:
    """Each run on so many machines, for each seed."""
    if not runs:
        raise ValueError("machines needs certified runs, e.g. python -m benchmarks machines --runs runs/a runs/b")
    for run in runs:
        for seed in seeds or (0,):
            begun = time.process_time()
            found = on_the_table(deployable(run, None), seed, machines)
            print(f"{run}, seed {seed} ({time.process_time() - begun:.0f} s of CPU time): {found}")
