"""What memory earns where the answer is known, gradients through time, and who cannot train it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from one_device import on_one_device

from point_mass import PointMass, PointMassState
from spota.envs import make
from spota.policies import Architecture, new_network
from spota.polopt import exact
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.polopt.rows import all_rows
from spota.polopt.solve import solve


@dataclass(frozen=True, eq=False)
class Cue(PointMass):
    """Shows ±1 in its first step, and pays in its third one 1 − (action − cue)²/4; `v` is the clock.

    Who does not remember does best by doing nothing, and earns 3/4; who remembers earns 1.
    """

    max_steps = 3

    def start(self, key, xi):
        del xi
        return PointMassState(jnp.where(jax.random.bernoulli(key), 1.0, -1.0), jnp.zeros(()))

    def observe(self, state, xi):
        del xi
        return jnp.where(state.v < 0.5, state.x, 0.0), jnp.zeros(())

    def reward(self, state, action, xi):
        del xi
        return jnp.where(state.v > 1.5, 1.0 - (action[0] / 2 - state.x) ** 2 / 4, 0.0)

    def step(self, state, action, xi):
        del action, xi
        return PointMassState(state.x, state.v + 1.0)

    def danger(self, state, xi):
        del state, xi
        return ()


@dataclass(frozen=True, eq=False)
class Free(PointMass):
    """Nothing fails: a failure is a jump, which has no derivative."""

    max_steps = 10

    def danger(self, state, xi):
        del state, xi
        return ()


SOLVER = Analytic(iterations=80, learning_rate=5e-2, warm_up=2, rows=32, evaluation_rows=64, rollouts=64)


@pytest.mark.parametrize(
    ("architecture", "least", "most"),
    [
        (Architecture((4,)), 0.72, 0.78),
        (Architecture((4,), 3), 0.9, 1.0),
        (Architecture((4,), recurrent=3), 0.9, 1.0),
    ],
)
@pytest.mark.slow
def test_memory_earns_what_only_memory_can(architecture, least, most):
    env = Cue()
    init = new_network(jax.random.key(0), env, architecture)
    found = solve(SOLVER, jax.random.key(1), env, env.domain.nominal(), init)
    assert least < float(found.score.returns) <= most


@pytest.mark.parametrize("architecture", [Architecture((4,), 3, 2), Architecture((4,), recurrent=3)])
def test_gradients_through_time_equal_finite_differences(architecture):
    env, solver = Free(), Analytic()
    rows = all_rows(env.domain.nominal(), jax.random.key(2), 8)
    theta, unravel = ravel_pytree(new_network(jax.random.key(0), env, architecture))
    theta = theta + 0.3 * jax.random.normal(jax.random.key(4), theta.shape)
    loss = jax.jit(lambda t: solver.loss(unravel(t), env, rows))
    gradient = jax.jit(jax.grad(loss))(theta)
    size = float(jnp.linalg.norm(gradient))
    for direction in (gradient, *jax.random.normal(jax.random.key(3), (3, theta.size))):
        unit, h = direction / jnp.linalg.norm(direction), 0.02
        slope = (float(loss(theta + h * unit)) - float(loss(theta - h * unit))) / (2 * h)
        assert slope == pytest.approx(float(gradient @ unit), abs=0.03 * size)


def test_a_generous_bound_on_outliers_leaves_a_gradient_through_memory_as_it_is():
    env = PointMass()
    rows = all_rows(env.domain.sample(jax.random.key(1), 3), jax.random.key(2), 4)
    policy = new_network(jax.random.key(0), env, Architecture((4,), 3))
    policy = jax.tree.map(lambda x: x + 0.2, policy)
    solvers = [Analytic(outlier=outlier, horizon=8) for outlier in (None, 1e6)]
    plain, bounded = (on_one_device(lambda p, s=solver: s.slope(p, env, rows))(policy) for solver in solvers)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6), plain, bounded)


def test_who_cannot_train_memory_says_so():
    stacked = new_network(jax.random.key(0), PointMass(), Architecture((4,), 3))
    with pytest.raises(ValueError, match="PPO learns from single observations"):
        PPO().begin(jax.random.key(0), PointMass(), stacked)
    catapult = make("catapult")
    inits = jax.tree.map(lambda x: x[None], new_network(jax.random.key(0), catapult, Architecture((4,), 2)))
    domains = {name: column[None] for name, column in catapult.domain.nominal().items()}
    with pytest.raises(ValueError, match="nothing to remember"):
        exact.catapult(jax.random.split(jax.random.key(0), 1), catapult, domains, inits)
