"""Candidates: policies that are trained on n_c random domains, once or several times, each time from another network.

One training may end on a plateau that another one passes. So a candidate is the best of several, and the others are its
*rivals*: references may start from them, too, because from the candidate alone they would stay where it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota.certify.comparison import Solved
from spota.certify.procedure import Procedure
from spota.certify.references import repeated
from spota.files.blocks import Arrays, from_arrays, to_arrays
from spota.policies import USUAL_GAINS, Gains, Network, first_policy
from spota.policies.architecture import USUAL, Architecture, new_network
from spota.polopt.imitating import imitation_progress
from spota.polopt.solve import Solution, Watch
from spota.polopt.solver import Solver
from spota.sim.env import Platform


@dataclass(frozen=True)
class Candidate:
    """The best of several trainings on the same domains, and the policies of the others by name."""

    solved: Solved
    rivals: Mapping[str, Any]

    @property
    def policy(self) -> Any:
        """The best policy."""
        return self.solved.policy


def find_candidate(
    key: Key[Array, ""],
    env: Platform,
    solver: Solver,
    n_c: int,
    init: Any = None,
    watch: Watch | None = None,
    architecture: Architecture = USUAL,
    trainings: int = 1,
    gains: Gains = USUAL_GAINS,
    better: Any = None,
) -> Candidate:
    """Solve the approximated program on n_c random domains so many times, from new policies unless given one.

    The last training starts from the policy that is known to be `better` than the candidate before, if there is one.
    """
    k_domains, k_init, k_solve = jax.random.split(key, 3)
    k_inits, k_solves = (k[None] if trainings == 1 else jax.random.split(k, trainings) for k in (k_init, k_solve))
    new = [new_network(k, env, architecture, gains) for k in k_inits] if init is None else [init] * trainings
    if better is not None:
        new[-1] = better
    domains = env.domain.sample(k_domains, n_c)  # SPOTA_cand_DR
    problems = {name: jnp.broadcast_to(column, (trainings, n_c)) for name, column in domains.items()}
    inits = jax.tree.map(lambda *leaves: jnp.stack(leaves), *new)
    found = solver(k_solves, env, problems, inits, watch)  # SPOTA_optpol_cand
    order = np.argsort(-np.asarray(found.score.returns), kind="stable")
    rivals = {rival_name(i): _one(found.policy, k) for i, k in enumerate(order[1:].tolist(), 1)}
    return Candidate(Solved(domains, _solution(found, int(order[0]))), rivals)


def rival_name(number: int) -> str:
    """What a certificate calls the policy of another training, the best of them first."""
    return f"rival {number}"


def trained_candidate(
    run: Procedure,
    iteration: int,
    n_c: int,
    init: Any = None,
    architecture: Architecture | None = None,
    imitation: str = "imitation",
    better: Any = None,
) -> Candidate:
    """The candidate of an iteration as a block of the run.

    `imitation` is the block of what it may start from, `better` a policy that one of its trainings starts from.
    """
    s, key = run.settings, run.keys(iteration).candidate
    architecture = architecture or s.architecture
    if init is None and s.start == "controller":
        init = _imitation(run, iteration, key, architecture, imitation)

    def make(watch: Watch) -> Arrays:
        solver, how = run.solver(run.candidate_solver, iteration, "candidate"), (architecture, s.trainings, s.gains)
        found = find_candidate(key, run.env, solver, n_c, init, watch, *how, better)
        return {**found.solved.to_arrays(), **to_arrays(dict(found.rivals))}

    like = new_network(key, run.env, architecture) if init is None else init
    arrays = run.block(iteration, "candidate", n_c, make, s.trainings)
    rivals = from_arrays(arrays, {rival_name(i): like for i in range(1, s.trainings)})
    return Candidate(Solved.from_arrays(arrays, like), rivals)


def _imitation(run: Procedure, iteration: int, key: Key[Array, ""], architecture: Architecture, block: str) -> Network:
    """An imitation of the platform's controller, with the key that a new network would have."""
    _, k_init, _ = jax.random.split(key, 3)
    start = run.settings.start

    def make(watch: Watch) -> Arrays:
        found = first_policy(k_init, run.env, start, architecture, lambda one: watch(imitation_progress(one)))
        return to_arrays(found)

    return from_arrays(run.block(iteration, block, 0, make), new_network(key, run.env, architecture))


def _one(many: Any, k: int) -> Any:
    return jax.tree.map(lambda x: x[k], many)


def _solution(many: Solution, k: int) -> Solution:
    """Problem k's solution; `evaluated_at` has no axis over problems."""
    every = eqx.tree_at(lambda s: s.evaluated_at, many, repeated(many.evaluated_at, many.diverged.shape[0]))
    return _one(every, k)
