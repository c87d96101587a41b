"""What a policy remembers, in its ONNX file: `memory` [batch, size] goes in, and `memory_next` comes out.

A runtime keeps nothing between two calls, so the caller does: zeros before the first step of an episode, and after each
step what came out. The numbers are the network's own, in no units: scaled observations, normalised actions, units.
"""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.policies.assembly import Stored
from spota.policies.recurrent import Recurrent
from spota.policies.stacked import Stacked
from spota.sim.acting import stepping

MEMORY, MEMORY_NEXT = "memory", "memory_next"
Arrays = dict[str, np.ndarray]
Nodes = list[tuple[str, list[str], str]]
"""(operator, inputs, output)."""


def memory_size(policy: Stored) -> int:
    """How many numbers a rollout remembers; 0 without memory."""
    return sum(leaf.shape[0] for leaf in jax.tree.leaves(stepping(policy).start(1)))


def told_about_memory(policy: Stored) -> dict[str, Any] | None:
    """What a contract says about the memory: its names and its size, and what every number of it is in the beginning.

    A stack also says how many observations it acts on, and how many steps lie between them.
    """
    size = memory_size(policy)
    if not size:
        return None
    pace = {"observations": policy.memory, "stride": policy.stride} if isinstance(policy, Stacked) else {}
    return {"input": MEMORY, "output": MEMORY_NEXT, "size": size, "start": 0.0, **pace}


def read_memory(policy: Stacked | Recurrent, now: str, into: str) -> tuple[Nodes, Arrays]:
    """From the scaled observation and the memory to what the first layer reads."""
    if isinstance(policy, Recurrent):
        return _read_units(policy, now, into)
    if policy.stride == 1:
        return [("Concat", [now, MEMORY], into)], {}
    rows = np.arange(memory_size(policy)).reshape(policy.steps, -1)[policy.stride - 1 :: policy.stride].ravel()
    nodes: Nodes = [("Gather", [MEMORY, "chosen_rows"], "chosen"), ("Concat", [now, "chosen"], into)]
    return nodes, {"chosen_rows": rows}


def write_memory(policy: Stacked | Recurrent, now: str, action: str) -> tuple[Nodes, Arrays]:
    """What is remembered after a step in which this scaled observation led to this action."""
    if isinstance(policy, Recurrent):
        return [("Concat", [action, "units_next"], MEMORY_NEXT)], {}
    if policy.steps == 1:
        return [("Concat", [now, action], MEMORY_NEXT)], {}
    size = memory_size(policy)
    nodes: Nodes = [("Gather", [MEMORY, "kept_rows"], "kept"), ("Concat", [now, action, "kept"], MEMORY_NEXT)]
    return nodes, {"kept_rows": np.arange(size - size // policy.steps)}


def step_from(policy: Stored, memory: np.ndarray, observation: np.ndarray) -> tuple[np.ndarray, Float[Array, "a n"]]:
    """Our own step from a memory as the file has it [n, size]: the next one, and the action in [−1, 1]."""
    start, step = stepping(policy)
    leaves, structure = jax.tree.flatten(start(memory.shape[0]))
    ends = np.cumsum([0, *(leaf.shape[0] for leaf in leaves)])
    parts = [jnp.asarray(memory.T[first:last]) for first, last in pairwise(ends)]
    remembered, action = step(jax.tree.unflatten(structure, parts), jnp.asarray(observation.T))
    return np.concatenate([memory.T[:0], *map(np.asarray, jax.tree.leaves(remembered))]).T, action


def _read_units(policy: Recurrent, now: str, into: str) -> tuple[Nodes, Arrays]:
    """The cell: each unit follows its goal with its own share."""
    nodes: Nodes = [
        ("Concat", [now, MEMORY], "heard"),
        ("Gemm", ["heard", "cell", "cell_bias"], "cell_layer"),
        ("Tanh", ["cell_layer"], "goal"),
        ("Gather", [MEMORY, "unit_rows"], "units"),
        ("Sub", ["goal", "units"], "way"),
        ("Sigmoid", ["cell_share"], "share"),
        ("Mul", ["way", "share"], "part_of_the_way"),
        ("Add", ["units", "part_of_the_way"], "units_next"),
        ("Concat", [now, "units_next"], into),
    ]
    arrays = {name: np.asarray(getattr(policy, name)) for name in ("cell", "cell_bias", "cell_share")}
    return nodes, {**arrays, "unit_rows": len(policy.contract.actions) + np.arange(policy.units)}
