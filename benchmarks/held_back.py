"""Are references held back by what they all have in common? Other settings and other starts on the same few domains.

Three times the effort does not show it (`benchmarks effort`): a longer training has the same barrier, the same cuts and
the same start. So ten references of five domains each are trained in other ways, too. Everything stands on fresh
rollouts; at the end the best way for each reference, chosen by other rollouts than those it is judged by.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.effort import candidate_of, mean_and_error
from benchmarks.truth import WIDE
from spota.certify.comparison import compare
from spota.certify.references import find_references, references_from, repeated
from spota.envs import make
from spota.policies import Architecture, first_policy, new_network
from spota.polopt import default_gains, default_hidden, default_solver, default_start, reference_solver
from spota.polopt.analytic import Analytic
from spota.polopt.solver import as_solver
from spota.sim.env import Env, Platform

N_G, N_R, N_J, SEED = 10, 5, 100, 43
"""References, their domains, and rollouts per domain to choose the best way by, and again to judge it."""


@dataclass(frozen=True)
class Way:
    """One way to train references, as a change of today's."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    longer: float = 1
    new: bool = False
    """Whether they start where candidates start instead of from the candidate, with the settings of candidates."""


WAYS = {
    "as references are trained": Way(),
    "as candidates are, from new networks or an imitation": Way(new=True),
    "twice the step size": Way({"learning_rate": 4e-2}),
    "half the step size, twice as long": Way({"learning_rate": 1e-2}, longer=2),
    "twice the rows": Way({"rows": 128}),
    "no cut": Way({"cut": None, "outlier": None}),
    "cut at 100 times the usual": Way({"cut": 100.0, "outlier": None}),
    "whole rollouts shortened": Way({"cut": None, "outlier": 5.0}),
    "no barrier": Way({"barrier": 0.0, "barrier_end": None}),
    "barrier of 1000, from 0.9": Way({"barrier": 1000.0, "barrier_start": 0.9, "barrier_end": None}),
    "barrier of 100, from 0.7": Way({"barrier": 100.0, "barrier_start": 0.7, "barrier_end": None}),
}
COLUMNS = ("trained", "mean gain", "± SE", "least", "more than usual", "± SE", "CPU seconds")


def main(platforms: Sequence[str] = ()) -> None:
    """Both platforms of the paper, or those named."""
    for name in platforms or ("cart-pole", "ball-balancer"):
        env = make(name)
        assert isinstance(env, Env)
        candidate = candidate_of(env)
        table = Table(title=f"{name}: gain of {N_G} references of {N_R} domains each, on fresh rollouts")
        for column in COLUMNS:
            table.add_column(column, justify="left" if column == "trained" else "right")
        found: list[np.ndarray] = []
        for words, way in WAYS.items():
            gains, seconds = _gains(env, candidate, way)
            found.append(gains)
            _tell(table, words, gains[1], found[0][1], f"{seconds:.0f}")
        chosen = np.stack([gains[0] for gains in found]).argmax(axis=0)
        best = np.stack([gains[1] for gains in found])[chosen, np.arange(N_G)]
        _tell(table, "the best way for each", best, found[0][1], "")
        Console(width=WIDE).print(table)


def _gains(env: Env, candidate: Any, way: Way) -> tuple[np.ndarray, float]:
    """What each reference gains, on rollouts to choose by and on others to judge by; and CPU seconds."""
    key, solver = jax.random.key(SEED), _solver(env, way)
    began = time.process_time()
    if way.new:
        references = references_from(key, env, as_solver(solver), _beginnings(env, solver), N_R, N_G)
    else:
        references = find_references(key, env, as_solver(solver), candidate, N_R, N_G)
    jax.block_until_ready(references.policy)
    seconds = time.process_time() - began
    keys = jax.random.split(jax.random.fold_in(key, 2))
    raw = [np.asarray(compare(k, env, candidate, references, N_J).gaps.raw).mean(axis=1) for k in keys]
    return np.stack(raw), seconds


def _beginnings(env: Env, solver: Analytic) -> Any:
    """What candidates start from, once for each reference: a new network, or an imitation of the controller."""
    key, architecture, start = jax.random.key(SEED + 1), Architecture(default_hidden(solver)), default_start(env)
    if start != "new":
        return repeated(first_policy(key, env, start, architecture), N_G)
    networks = [new_network(k, env, architecture, default_gains(solver)) for k in jax.random.split(key, N_G)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)


def _solver(env: Platform, way: Way) -> Analytic:
    usual = default_solver(env) if way.new else reference_solver(env)
    assert isinstance(usual, Analytic)
    changed = replace(usual, smoothing=0.0, **way.changes)
    return replace(changed, iterations=round(way.longer * changed.iterations))


def _tell(table: Table, words: str, gains: np.ndarray, usual: np.ndarray, seconds: str) -> None:
    row = (words, *mean_and_error(gains), f"{gains.min():.1f}", *mean_and_error(gains - usual), seconds)
    table.add_row(*row)
    Console().print(*row)
