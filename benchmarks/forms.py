"""One policy in three forms, our own file, an ONNX file and a NumPy function, each assessed with the same seed.

The first two start references from the network itself; nothing is known of a function, so that a network imitates it
first. All three should lose the same, within the interval. A file of `spota export` comes back as the very network that
left, which is checked here, and so has the first row's numbers; the ONNX file of the second row is a stranger's, whose
network rounds differently, and trainings make more of that.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.steady import POLICY_SEED, assessed
from benchmarks.truth import WIDE, run_of
from spota.envs import make
from spota.policies import FNN, find, fingerprint
from spota.policies.onnx_export import exported
from spota.policies.onnx_policy import imported
from spota.runs.exporting import export
from spota.sim.env import Platform
from spota.sim.host_policy import policy

PRESET, SEED = "quick", 300


def main() -> None:
    env = make("cart-pole")
    ours = run_of(env.name, PRESET, POLICY_SEED).policy
    assert fingerprint(exported_and_found(ours, env)) == fingerprint(ours)
    table = Table(title=f"The policy of quick {POLICY_SEED}, assessed with --preset {PRESET} --seed {SEED}")
    for column in ("form", "verdict", "mean gap", "UCBOG", "earns", "references started from", "minutes"):
        table.add_column(column)
    for name, form in {"npz": ours, "ONNX": from_a_stranger(ours, env), "NumPy": in_numpy(ours)}.items():
        found = assessed(env, form, ours, f"quick {POLICY_SEED} as {name}", PRESET, SEED)
        c, seconds = found.certificate, found.seconds
        assert c.performance is not None
        earned = (f"{figure:.3f}" for figure in (c.mean_gap, c.ucbog, c.performance.mean))
        starts = ", ".join(f"{n} {start}" for start, n in c.starts.items() if n)
        table.add_row(name, c.verdict, *earned, starts, f"{seconds / 60:.1f}")
    Console(width=WIDE).print(table)


def exported_and_found(network: FNN, env: Platform) -> Any:
    """The network as it comes back from a file of `spota export`."""
    with tempfile.TemporaryDirectory() as here:
        return find(export(network, Path(here) / "policy.onnx", env), env)


def from_a_stranger(network: FNN, env: Platform) -> Any:
    """The network as it comes back from a file that does not say where it is from."""
    with tempfile.TemporaryDirectory() as here:
        path = Path(here) / "policy.onnx"
        path.write_bytes(exported(network, {}).SerializeToString())
        return imported(f"{path},units=physical", env)


def in_numpy(network: FNN) -> Any:
    """The network as someone writes it down who has only its numbers."""
    layers = [(np.asarray(w), np.asarray(b)[:, None]) for w, b in zip(network.weights, network.biases, strict=True)]
    seen, acted = (
        np.array(scale, np.float32)[:, None]
        for scale in (network.contract.observation_scale, network.contract.action_scale)
    )

    @policy(units="physical")
    def controller(observation: np.ndarray) -> np.ndarray:
        x = np.clip(seen * np.array(observation, np.float32), -1.0, 1.0)
        for weight, bias in layers:
            x = np.tanh(weight @ x + bias)
        return x / acted

    return controller
