"""What rollouts with an imported network cost beside those with ours of the same size: in processor time, by turns."""

import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from rich.table import Table

from spota.commands.output import console
from spota.envs import make
from spota.policies import fnn
from spota.policies.onnx_export import exported
from spota.policies.onnx_policy import imported
from spota.sim import rollout

ROLLOUTS = 2048
TURNS = 5


def main() -> None:
    table = Table(title=f"{ROLLOUTS} rollouts of the Cart-Pole with noise, seconds of processor time, best of {TURNS}")
    for column in ("network", "ours", "imported", "ratio"):
        table.add_column(column, justify="right")
    for hidden in ((16, 16), (64, 64)):
        ours, theirs = cost(hidden)
        table.add_row("-".join(map(str, hidden)), f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.2f}")
    console.print(table)


def cost(hidden: tuple[int, ...]) -> tuple[float, float]:
    """The same network, as it is and through a file that nobody can tell from a stranger's."""
    env = make("cart-pole")
    ours = fnn(jax.random.key(0), env, hidden)
    with tempfile.TemporaryDirectory() as here:
        path = Path(here) / "policy.onnx"
        path.write_bytes(exported(ours, {}).SerializeToString())
        theirs = imported(f"{path},units=physical", env)
    domains, keys = env.domain.sample(jax.random.key(1), ROLLOUTS), jax.random.split(jax.random.key(2), (ROLLOUTS, 1))
    returns = [rollout.returns(env, policy, domains, keys).returns for policy in (ours, theirs)]  # compiles
    np.testing.assert_allclose(*returns, rtol=1e-2)
    best = [np.inf, np.inf]
    for _ in range(TURNS):
        for i, policy in enumerate((ours, theirs)):
            began = time.process_time()
            jax.block_until_ready(rollout.returns(env, policy, domains, keys).returns)
            best[i] = min(best[i], time.process_time() - began)
    return best[0], best[1]
