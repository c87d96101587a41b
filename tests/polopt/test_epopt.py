"""EPOpt: learns from the worst rollouts after its warm-up, and keeps the iterate whose worst rollouts are best."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from one_device import on_one_device

from point_mass import PointMass, regulator
from spota.envs import make
from spota.policies import fnn
from spota.polopt.epopt import EPOpt
from spota.polopt.experience import exploring
from spota.polopt.ppo import PPO
from spota.polopt.rows import Rows, all_rows, row_returns
from spota.polopt.solve import solve
from spota.runs import plan

ENV = PointMass()
DOMAINS = ENV.domain.sample(jax.random.key(1), 5)
SMALL: dict[str, Any] = {"iterations": 3, "rollouts": 4, "minibatches": 5, "epochs": 2, "evaluation_rollouts": 4}
KEY = jax.random.key(2)


class Showing(EPOpt):
    """EPOpt that shows the rows that it would learn from."""

    def learn(self, env, rows, key, state):
        del env, key
        return state, {"rows": rows}


def chosen(warm_up: int) -> Rows:
    learner = Showing(**SMALL, epsilon=0.25, warm_up=warm_up)
    state = learner.begin(jax.random.key(0), ENV, fnn(jax.random.key(3), ENV, (8,)))
    return on_one_device(lambda key: learner.update(ENV, DOMAINS, key, state)[1]["rows"])(KEY)


def test_it_learns_from_the_worst_quarter_of_four_times_as_many_rollouts():
    learner = EPOpt(**SMALL)
    actor = learner.begin(jax.random.key(0), ENV, fnn(jax.random.key(3), ENV, (8,))).nets.actor
    drawn = all_rows(DOMAINS, jax.random.split(KEY, 3)[0], 16)
    everything, _ = row_returns(ENV, exploring(actor), drawn)
    taken, _ = row_returns(ENV, exploring(actor), chosen(warm_up=0))
    assert taken.shape == (20,)
    np.testing.assert_allclose(np.sort(taken), np.sort(everything)[:20], rtol=1e-5)


def test_it_learns_from_all_domains_alike_during_its_warm_up():
    np.testing.assert_array_equal(chosen(warm_up=1).domains["mass"], np.repeat(DOMAINS["mass"], 4))


@pytest.mark.parametrize(("iterations", "warm_up"), [(36, 24), (40, 27), (41, 40), (60, 40), (3, 2)])
def test_a_short_training_has_a_short_warm_up(iterations, warm_up):
    assert EPOpt(iterations=iterations).warm_up_iterations == warm_up


def test_the_quick_preset_leaves_the_warm_up():
    env = make("cart-pole")
    quick = plan.complete(plan.Plan("cart-pole", preset="quick", solver="epopt"), env, [])
    assert quick.candidate.warm_up_iterations < quick.candidate.iterations


@dataclass(frozen=True)
class Visitor(PPO):
    """Learns nothing; from a cautious policy it comes to a bold one, with the better mean and the worse worst case."""

    iterations: int = 1
    minibatches: int = 1
    evaluation_rollouts: int = 1
    worst: float = 1.0

    @property
    def worst_share(self) -> float:
        return self.worst

    def update(self, env, domains, key, state):
        del env, domains, key
        return state, {"finite": jnp.array(True)}

    def policy(self, state):
        return jax.tree.map(jnp.ones_like, state.nets.actor.policy)


@dataclass(frozen=True, eq=False)
class Bet(PointMass):
    """A bold policy gains 1 a step with a light mass, and loses as much with a heavy one."""

    def start(self, key, xi):
        del key
        return self.equilibrium(xi)

    def reward(self, state, action, xi):
        del state
        return 0.5 + 0.5 * jnp.sign(action[0]) * jnp.where(xi > 1, -1.0, 1.0)

    def danger(self, state, xi):
        del xi
        return (0 * state.x,)


@pytest.mark.parametrize(("worst", "bold"), [(1.0, True), (0.2, False)])
def test_the_best_iterate_is_the_best_by_the_share_that_counts(worst, bold):
    domains = {"mass": jnp.array([0.6, 0.7, 0.8, 0.9, 1.4])}
    found = solve(Visitor(worst=worst), KEY, Bet(), domains, jax.tree.map(jnp.zeros_like, regulator(Bet())))
    assert bool(found.policy.biases[-1][0] > 0) == bold
    assert float(found.score.returns) == pytest.approx(16.0 if bold else 10.0)  # of 20 steps


def test_a_share_that_counts_is_epsilon():
    assert EPOpt(epsilon=0.3).worst_share == 0.3
    assert PPO().worst_share == 1.0
