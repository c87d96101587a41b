"""Training on a host environment: what PPO and EPOpt learn there is what they learn on the same physics compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from host_point_mass import HostPointMass, PurePointMass
from spota.policies import fnn
from spota.polopt.analytic import Analytic
from spota.polopt.epopt import EPOpt
from spota.polopt.ppo import PPO
from spota.polopt.solve import solve, solve_many

SMALL = {"iterations": 3, "rollouts": 4, "minibatches": 5, "epochs": 2, "evaluation_rollouts": 4, "learning_rate": 5e-3}
DOMAINS = HostPointMass().domain.sample(jax.random.key(1), 4)
START = jax.tree.map(lambda x: 3 * x, fnn(jax.random.key(0), HostPointMass(), (4,)))


@pytest.mark.parametrize(
    "optimizer", [PPO(**SMALL), pytest.param(EPOpt(**SMALL, epsilon=0.5, warm_up=1), marks=pytest.mark.slow)]
)
def test_a_training_is_that_on_the_same_physics_compiled(optimizer):
    mine, same = (
        solve(optimizer, jax.random.key(2), env, DOMAINS, START) for env in (HostPointMass(), PurePointMass())
    )
    np.testing.assert_allclose(mine.curve, same.curve, rtol=1e-4)
    np.testing.assert_allclose(mine.policy.weights[0], same.policy.weights[0], atol=1e-4)
    assert len(set(mine.curve.tolist())) == mine.curve.size


@pytest.mark.slow
def test_problems_do_not_depend_on_each_other():
    problems = {name: jnp.stack([column, column[::-1]]) for name, column in DOMAINS.items()}
    starts = jax.tree.map(lambda x: jnp.stack([x, 0.5 * x]), START)
    keys = jax.random.split(jax.random.key(3), 2)
    both = solve_many(PPO(**SMALL), keys, HostPointMass(spread=0.3), problems, starts)
    one = solve(PPO(**SMALL), keys[0], HostPointMass(spread=0.3), DOMAINS, START)
    np.testing.assert_allclose(both.curve[0], one.curve, rtol=1e-4)
    assert (both.score.returns >= both.start.returns).all()


def test_ppo_learns_there():
    learner = PPO(iterations=15, rollouts=8, minibatches=4, learning_rate=5e-3, evaluation_rollouts=4)
    found = solve(learner, jax.random.key(2), HostPointMass(spread=0.3), DOMAINS, START)
    assert found.score.returns > found.start.returns + 0.8


def test_gradients_through_it_are_refused_with_what_to_write():
    with pytest.raises(ValueError, match="Analytic goes through the simulator.*host-point-mass.*--solver ppo"):
        solve(Analytic(iterations=1), jax.random.key(0), HostPointMass(), DOMAINS, START)
