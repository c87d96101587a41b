"""A model that is learned from rollouts: it moves as the simulator does, and gradients through it teach a policy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from host_point_mass import HostPointMass, PurePointMass
from spota.policies import Gains, fnn
from spota.polopt.analytic import Analytic
from spota.polopt.learned_model import Model, Scale, Seen, imagined, laws
from spota.polopt.polished import Polished
from spota.polopt.reward_net import fit, new_net
from spota.polopt.rows import Rows
from spota.polopt.solve import solve
from spota.polopt.surrogate import Surrogate, record
from spota.sim import rollout

ENV = HostPointMass(spread=0.3)
DOMAINS = ENV.domain.sample(jax.random.key(1), 4)
START = jax.tree.map(lambda x: 3 * x, fnn(jax.random.key(0), ENV, (4,)))
SOLVER = Surrogate(iterations=3, rollouts=4, updates=20, rows=8, evaluation_rollouts=4)


def test_a_reward_is_fitted():
    x = jax.random.normal(jax.random.key(0), (2, 2000))
    y, counts = jnp.exp(-(x**2).sum(axis=0)), jnp.ones(2000).at[:500].set(0.0)
    net = fit(jax.random.key(1), new_net(jax.random.key(2), 2), x, y.at[:500].set(9.0), counts, 600)
    assert jnp.abs(net(x)[500:] - y[500:]).mean() < 0.03


def test_learned_dynamics_are_those_of_the_simulator():
    """A mass moves linearly, so that its model is exact: without noise on the actions, returns are those there."""
    problem = {name: column[None] for name, column in DOMAINS.items()}
    rows = jax.vmap(Rows)(problem, jax.random.split(jax.random.key(3), (1, 4)))
    recorded = jax.tree.map(lambda x: x[0], record(ENV, rows, jax.tree.map(lambda x: x[None], START), 0.3))
    scale, of = Scale(jnp.zeros(3), jnp.ones(3)), ((), (0,), (1,), (2,))
    found, known = laws(of, scale, recorded)
    assert known.all()
    for i, mass in enumerate(np.asarray(DOMAINS["mass"])):
        dv = ENV.dt / mass
        np.testing.assert_allclose(found[:, :, i], [[0, 0], [0, 0], [ENV.dt, 0], [ENV.dt * dv, dv]], atol=1e-4)

    def reward(x):
        return jnp.exp(-(x[0] ** 2) - 0.1 * x[1] ** 2)

    model = Model(
        jnp.asarray(found), jnp.asarray(known), recorded.ideals[0], recorded.rows, scale,
        Seen(-9 * jnp.ones(2), 9 * jnp.ones(2)), reward,  # type: ignore[arg-type]
    )  # fmt: skip
    mine = imagined(ENV, START, model, of, recorded.rows.keys, 1.0, ENV.max_steps)
    theirs = rollout.returns(ENV, START, DOMAINS, recorded.rows.keys[:, None])
    assert theirs.survived.all()
    np.testing.assert_allclose(mine, theirs.returns[:, 0], rtol=1e-4)


def test_what_no_survivor_saw_costs_and_no_more_than_the_largest_reward():
    seen = Seen(jnp.array([-1.0, 0.0]), jnp.array([1.0, 4.0]))
    x = jnp.array([[0.0, 2.0, 0.0], [1.0, 1.0, 6.0]])
    np.testing.assert_allclose(seen.beyond(x), [0, 1, 1])
    np.testing.assert_allclose(seen.inside(jnp.array([[9.0], [9.0]]))[:, 0], [1.5, 5.0])


@pytest.mark.slow  # two more programs to compile
def test_it_gains_what_gradients_through_the_simulator_gain():
    start = fnn(jax.random.key(0), ENV, (4,), Gains(last=1.0))  # a small one stays within the dead band
    found = solve(SOLVER, jax.random.key(2), ENV, DOMAINS, start)
    through = Analytic(iterations=60, rows=8, warm_up=20)
    ours = replace(PurePointMass(), domain=ENV.domain)
    best = solve(through, jax.random.key(2), ours, DOMAINS, start).policy
    keys = jax.random.split(jax.random.key(4), (4, 50))
    before, mine, theirs = (
        rollout.returns(ENV, one, DOMAINS, keys).returns.mean() for one in (start, found.policy, best)
    )
    assert mine - before > 0.8 * (theirs - before) > 0.5


def test_ppo_comes_first_then_the_model_and_the_settings_say_how_much():
    solver = Polished(iterations=4, rollouts=2, minibatches=5, evaluation_rollouts=2, polish=0.5)
    assert (solver.rounds, solver.ppo.iterations, solver.model.iterations) == (2, 2, 2)
    told = []
    found = solve(solver, jax.random.key(2), ENV, DOMAINS, START, told.append)
    assert ["imagined" in one.metrics for one in told] == [False, False, True, True]
    assert found.score.returns > found.start.returns + 0.3
    with pytest.raises(ValueError, match="polish = 1"):
        Polished(polish=1.0)


@pytest.mark.slow
def test_references_polish_their_start_and_candidates_what_ppo_made_of_it():
    tiny = {"iterations": 2, "rollouts": 2, "minibatches": 5, "evaluation_rollouts": 2, "polish": 0.5, "clip": 1e-9}
    from_start, from_ppo = (
        solve(Polished(**tiny, restart=again, learning_rate=1.0), jax.random.key(2), ENV, DOMAINS, START)
        for again in (True, False)
    )
    assert from_start.curve[1] == from_ppo.curve[1] and from_start.curve[2] != from_ppo.curve[2]


def test_a_platform_with_gradients_is_refused():
    with pytest.raises(ValueError, match="write --solver analytic"):
        solve(SOLVER, jax.random.key(2), PurePointMass(), DOMAINS, START)
