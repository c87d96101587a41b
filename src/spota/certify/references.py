"""References: policies that are trained for the very domains on which the candidate is compared with them."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from spota.certify.comparison import Solved
from spota.polopt.solve import Watch
from spota.polopt.solver import Solver
from spota.sim.env import Platform


def find_references(
    key: Key[Array, ""], env: Platform, solver: Solver, start: Any, n_r: int, n_G: int, watch: Watch | None = None
) -> Solved:
    """Solve n_G programs of n_r random domains each, all from the same policy, all as one call of the solver."""
    return references_from(key, env, solver, repeated(start, n_G), n_r, n_G, watch)  # SPOTA_ref_init


def references_from(
    key: Key[Array, ""], env: Platform, solver: Solver, starts: Any, n_r: int, n_G: int, watch: Watch | None = None
) -> Solved:
    """The same, each from a policy of its own: `starts` has a leading axis over the references."""
    domains, k_solve = reference_domains(key, env, n_r, n_G)
    return Solved(domains, solver(jax.random.split(k_solve, n_G), env, domains, starts, watch))  # SPOTA_optpol_ref


def reference_domains(
    key: Key[Array, ""], env: Platform, n_r: int, n_G: int
) -> tuple[dict[str, Float[Array, "n_G n_r"]], Key[Array, ""]]:
    """The domains of the references, and the key that is left to solve for them."""
    k_domains, k_solve = jax.random.split(key)
    drawn = env.domain.sample(k_domains, n_G * n_r)  # SPOTA_ref_DR
    return {name: column.reshape(n_G, n_r) for name, column in drawn.items()}, k_solve


def repeated(policy: Any, times: int) -> Any:
    """One policy several times, with a leading axis."""
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (times, *jnp.shape(x))), policy)
