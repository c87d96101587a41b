"""The linear-quadratic regulator of a platform's nominal model, around its equilibrium."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from spota.policies.contract import Contract
from spota.policies.network import Linear
from spota.sim.env import Env, Platform
from spota.sim.rollout import pure


def linearise(env: Env) -> tuple[np.ndarray, np.ndarray]:
    """A and B of o' = A o + B u at rest in the nominal equilibrium, with observation o and command u."""
    xi = env.params({name: values[0] for name, values in env.domain.nominal().items()})
    rest, unravel = ravel_pytree(env.equilibrium(xi))

    def step(state, action):
        return ravel_pytree(env.step(unravel(state), tuple(action), xi))[0]

    def observe(state):
        return jnp.stack(env.observe(unravel(state), xi))

    still = jnp.zeros(len(env.actions))
    A, B = (np.asarray(j, np.float64) for j in jax.jacobian(step, (0, 1))(rest, still))
    C = np.asarray(jax.jacobian(observe)(rest), np.float64)
    return C @ A @ np.linalg.inv(C), C @ B


def lqr(env: Platform) -> Linear:
    """The gains that minimise Σ oᵀQo + uᵀRu with the platform's `lqr_weights`."""
    if env.lqr_weights is None:
        raise ValueError(f"{env.name} has no equilibrium to balance at, so it has no LQR.")
    import scipy.linalg  # slow to import

    A, B = linearise(pure(env, "give the gains of a controller yourself, as a policy"))
    Q, R = (np.diag(weights) for weights in env.lqr_weights)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    gains = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    return Linear(jnp.asarray(-gains, jnp.float32), Contract.of(env))
