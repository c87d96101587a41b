"""What Ray costs: to begin, per task, per result; 20 references of 10 s on two workers; and how that scales.

`python -m benchmarks cluster` prints the tables of docs/cluster.md and writes its figure.
"""

import pickle
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from benchmarks import cluster_model
from benchmarks.cluster_model import DURATIONS, REFERENCES, WORKERS, Costs, predicted, simulated
from spota.cluster.address import Address
from spota.cluster.jobs import results
from spota.cluster.on_ray import RayEngine, connected
from spota.cluster.solving import solve_piece
from spota.cluster.worker import Shared
from spota.envs import make
from spota.files.blocks import to_arrays
from spota.policies import fnn
from spota.polopt import reference_solver

FIGURE = Path("docs/images/cluster-scaling.png")
LIMIT = 1.15
"""Times the ideal time that 20 references of 10 s may take on two workers."""
NAPS, NAP, WORKING = 20, 10.0, 2
"""References, their seconds, and workers."""
NO_OPS = 200
CHECKED = (256, 128, 64, 32)


def nap(common: Any, own: float, say: Any) -> None:
    """A reference that costs time and nothing else."""
    del common, say
    time.sleep(own)


def timed(common: Any, own: Any, say: Any) -> float:
    """A reference in a worker: seconds of its processor, which other users of the machine do not lengthen."""
    begun = time.process_time()
    solve_piece(common, own, say)
    return time.process_time() - begun


def main() -> None:
    console, begun = Console(), time.monotonic()
    with connected(Address(workers=WORKING)) as engine:
        start = time.monotonic() - begun
        console.print(
            f"Ray begins: {start:.1f} s; then its first {WORKING} workers: {_took(engine, WORKING, 0.0):.1f} s."
        )
        no_ops = _took(engine, NO_OPS, 0.0) / NO_OPS
        console.print(f"A task that does nothing: {1e3 * no_ops:.0f} ms of the driver's time.")
        ratio = _took(engine, NAPS, NAP) / (NAPS * NAP / WORKING)
        verdict = "fine" if ratio <= LIMIT else "TOO MUCH"
        console.print(f"{NAPS} references of {NAP:g} s on {WORKING} workers: {ratio:.3f} × ideal, {verdict}.")
        console.print(_sizes(engine))
        first = _first_reference(engine)
        console.print(f"jax, and compiling a reference of the Cart-Pole: {first:.1f} s, once for each worker.")
    costs = Costs(start, first, WORKING * no_ops, no_ops)
    checked = {workers: simulated(REFERENCES, workers, DURATIONS["10 s"], costs) for workers in CHECKED}
    _scaling(console, costs, checked)
    cluster_model.figure(costs, checked).savefig(FIGURE, dpi=150)
    console.print(f"Wrote {FIGURE}.")


def _took(engine: RayEngine, n: int, seconds: float) -> float:
    """Seconds of n naps."""
    shared, begun = engine.share(nap, None), time.monotonic()
    jobs = {f"nap-{i:03d}": seconds for i in range(n)}
    with closing(results(engine, shared, jobs, 1, lambda _: None)) as arriving:
        for _ in arriving:
            pass
    return time.monotonic() - begun


def _problem() -> tuple[tuple[Any, Any], dict[str, Any]]:
    """A reference of the Cart-Pole with the tuned sizes, as a task has it."""
    env, key = make("cart-pole"), jax.random.key(0)
    policy = fnn(key, env, (32, 32))
    domains = {name: column[None] for name, column in env.domain.sample(key, 50).items()}
    inits = jax.tree.map(lambda x: jnp.asarray(x)[None], policy)
    own = {"keys": jax.random.key_data(key)[None], "domains": domains, "inits": inits}
    return (reference_solver(env), env), jax.tree.map(lambda x: jax.device_get(x), own)


def _first_reference(engine: RayEngine) -> float:
    """How much longer a worker takes for its first reference than for its second, in seconds of its processor."""
    common, own = _problem()
    shared = engine.share(timed, common)
    times = []
    for name in ("first", "second"):
        ((_, done),) = results(engine, shared, {name: own}, 1, lambda _: None)
        times.append(done.value)
    return times[0] - times[1]


def _sizes(engine: RayEngine) -> str:
    """What travels for a reference of the Cart-Pole."""
    common, own = _problem()
    shared: Shared = engine._ray.get(engine.share(solve_piece, common))
    sizes = len(shared.content), len(pickle.dumps(own)), len(pickle.dumps(to_arrays(own["inits"])))
    once, sent, back = (f"{size / 1e3:.1f} kB" for size in sizes)
    return f"Platform and solver are {once}, sent once; a task is {sent}; a policy that comes back is {back}."


def _scaling(console: Console, costs: Costs, checked: dict[int, float]) -> None:
    table = Table(
        "workers", *DURATIONS, "virtual workers, 10 s", title=f"Seconds until {REFERENCES} references are there"
    )
    for workers in WORKERS:
        model = (f"{predicted(REFERENCES, workers, duration, costs):,.0f}" for duration in DURATIONS.values())
        table.add_row(str(workers), *model, f"{checked[workers]:.0f}" if workers in checked else "")
    console.print(table)
