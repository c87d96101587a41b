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
SLEEPING = {"references": 20, "seconds": 10.0, "workers": 2}
NO_OPS = 200
CHECKED = (256, 128, 64, 32)


def nap(common: Any, own: float, say: Any) -> None:
    """A reference that costs time and nothing else."""
    del common, say
    time.sleep(own)


def main() -> None:
    console, begun = Console(), time.monotonic()
    with connected(Address(workers=SLEEPING["workers"])) as engine:
        start = time.monotonic() - begun
        first = _took(engine, 2, 0.0)
        no_ops = _took(engine, NO_OPS, 0.0)
        ratio = _ratio(engine)
        compiling = _first_reference(engine)
        sizes = _sizes(engine)
    per_task = max(no_ops * SLEEPING["workers"] / NO_OPS, 1e-3)
    costs = Costs(start, compiling, per_task, no_ops / NO_OPS)
    _table(console, "What Ray costs on this machine", {
        "to begin": f"{start:.1f} s", "two workers begin": f"{first:.1f} s",
        "a task beside its work": f"{1e3 * costs.task:.0f} ms",
        "the driver, per result": f"{1e3 * costs.driver:.0f} ms",
        "jax, and compiling a reference of the Cart-Pole": f"{compiling:.1f} s", **sizes,
        "20 references of 10 s on two workers": f"{ratio:.3f} × ideal, {'fine' if ratio <= LIMIT else 'TOO MUCH'}",
    })  # fmt: skip
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


def _ratio(engine: RayEngine) -> float:
    n, seconds = int(SLEEPING["references"]), SLEEPING["seconds"]
    return _took(engine, n, seconds) / (n * seconds / SLEEPING["workers"])


def _problem() -> tuple[tuple[Any, Any], dict[str, Any]]:
    """A reference of the Cart-Pole with the tuned sizes, as a task has it."""
    env, key = make("cart-pole"), jax.random.key(0)
    policy = fnn(key, env, (32, 32))
    domains = {name: column[None] for name, column in env.domain.sample(key, 50).items()}
    inits = jax.tree.map(lambda x: jnp.asarray(x)[None], policy)
    own = {"keys": jax.random.key_data(key)[None], "domains": domains, "inits": inits}
    return (reference_solver(env), env), jax.tree.map(lambda x: jax.device_get(x), own)


def _first_reference(engine: RayEngine) -> float:
    """How much longer a worker takes for its first reference than for its second."""
    common, own = _problem()
    shared = engine.share(solve_piece, common)
    times = []
    for name in ("first", "second"):
        ((_, done),) = results(engine, shared, {name: own}, 1, lambda _: None)
        times.append(done.seconds)
    return times[0] - times[1]


def _sizes(engine: RayEngine) -> dict[str, str]:
    """Bytes that travel for a reference of the Cart-Pole."""
    common, own = _problem()
    shared: Shared = engine._ray.get(engine.share(solve_piece, common))
    back = to_arrays(own["inits"])
    return {
        "sent once: platform and solver": f"{len(shared.content) / 1e3:.1f} kB",
        "sent with a task: key, domains, start": f"{len(pickle.dumps(own)) / 1e3:.1f} kB",
        "comes back: the policy": f"{len(pickle.dumps(back)) / 1e3:.1f} kB",
    }


def _table(console: Console, title: str, rows: dict[str, str]) -> None:
    table = Table("", "", title=title, show_header=False)
    for row in rows.items():
        table.add_row(*row)
    console.print(table)


def _scaling(console: Console, costs: Costs, checked: dict[int, float]) -> None:
    table = Table(
        "workers", *DURATIONS, "virtual workers, 10 s", title=f"Seconds until {REFERENCES} references are there"
    )
    for workers in WORKERS:
        model = (f"{predicted(REFERENCES, workers, duration, costs):,.0f}" for duration in DURATIONS.values())
        table.add_row(str(workers), *model, f"{checked[workers]:.0f}" if workers in checked else "")
    console.print(table)
