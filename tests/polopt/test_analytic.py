"""Gradients through the simulator against finite differences, and the barrier that stands in for failure."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jaxtyping import Array
from one_device import on_one_device

from point_mass import PointMass, PointMassState
from spota.envs.cart_pole import CartPole
from spota.policies import fnn
from spota.polopt.analytic import Analytic
from spota.polopt.barrier import Barrier
from spota.polopt.rows import Rows, all_rows
from spota.polopt.solve import solve
from spota.sim.env import Env
from spota.sim.rollout import returns


@dataclass(frozen=True, eq=False)
class Short(CartPole):
    """A tenth of a second."""

    max_steps = 50


@dataclass(frozen=True, eq=False)
class Moment(CartPole):
    """So short that nothing fails: a failure is a jump, which has no derivative."""

    max_steps = 20


@dataclass(frozen=True, eq=False)
class Cusp(PointMass):
    """Its reward is finite and its gradient is not: both branches of a `where` are differentiated."""

    def reward(self, state, action, xi):
        return super().reward(state, action, xi) + jnp.where(state.x > 100, jnp.sqrt(state.x - 100), 0.0)


@dataclass(frozen=True, eq=False)
class Coasting(PointMass):
    """Linear: starts at rest, never fails, and earns its position."""

    def start(self, key, xi):
        del key, xi
        return PointMassState(jnp.zeros(()), jnp.zeros(()))

    def reward(self, state, action, xi):
        del action, xi
        return state.x

    def danger(self, state, xi):
        del state, xi
        return ()


class Push(eqx.Module):
    """The same action at all times."""

    action: Array

    def __call__(self, observation):
        return jnp.broadcast_to(self.action, (1, *observation.shape[1:]))


ENV = Short()
SOLVER = Analytic()


def policy(env: Env = ENV, gain: float = 30.0):
    """A network that moves the cart: the last layer of a new one is small."""
    new = fnn(jax.random.key(0), env, (8,))
    return eqx.tree_at(lambda p: p.weights[-1], new, gain * new.weights[-1])


@pytest.fixture(scope="module")
def rows() -> Rows:
    return all_rows(ENV.domain.sample(jax.random.key(1), 3), jax.random.key(2), 4)


@pytest.mark.parametrize("barrier_start", [0.3, 0.9])
def test_gradient_equals_finite_differences(barrier_start):
    env, solver = Moment(), Analytic(barrier_start=barrier_start)
    rows = all_rows(env.domain.nominal(), jax.random.key(2), 8)
    theta, unravel = ravel_pytree(policy(env))
    loss = jax.jit(lambda t: solver.loss(unravel(t), env, rows))
    gradient = jax.jit(jax.grad(loss))(theta)
    size = float(jnp.linalg.norm(gradient))
    directions = [gradient, *jax.random.normal(jax.random.key(3), (3, theta.size))]
    for direction in directions:
        unit = direction / jnp.linalg.norm(direction)
        h = 0.02  # float32: smaller steps drown in rounding, larger ones in curvature
        slope = (float(loss(theta + h * unit)) - float(loss(theta - h * unit))) / (2 * h)
        assert slope == pytest.approx(float(gradient @ unit), abs=0.02 * size)


@pytest.mark.parametrize("horizon", [None, 1, 5, 40])
def test_a_gradient_fades_with_the_steps_between_an_action_and_its_reward(horizon):
    env = Coasting()
    rows = Rows(env.domain.nominal(), jax.random.split(jax.random.key(0), 1))
    slope = eqx.filter_jit(jax.grad(Analytic(horizon=horizon).loss))(Push(jnp.array(0.1)), env, rows).action
    share = 1.0 if horizon is None else np.exp(-1 / horizon)
    later = np.concatenate([np.arange(1, env.max_steps - s) for s in range(env.max_steps)])
    moved = later * env.dt**2 * env.actions[0].high  # by a unit of action on 1 kg, so many steps later
    assert float(slope) == pytest.approx(-(share**later * moved).sum() / env.max_steps, rel=1e-5)


def test_a_horizon_changes_the_gradient_and_not_the_loss(rows):
    (plain, steep), (faded, flat) = (
        eqx.filter_jit(jax.value_and_grad(replace(SOLVER, horizon=horizon).loss))(policy(), ENV, rows)
        for horizon in (None, 10)
    )
    assert float(faded) == float(plain)
    assert float(jnp.linalg.norm(ravel_pytree(flat)[0])) < 0.9 * float(jnp.linalg.norm(ravel_pytree(steep)[0]))


def test_cuts_change_the_gradient_and_not_the_loss(rows):
    (plain, steep), (same, far), (less, flat) = (
        eqx.filter_jit(jax.value_and_grad(replace(SOLVER, cut=cut).loss))(policy(), ENV, rows)
        for cut in (None, 1e6, 0.5)
    )
    assert [float(same), float(less)] == pytest.approx([float(plain)] * 2, rel=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-5), steep, far)
    assert float(jnp.linalg.norm(ravel_pytree(flat)[0])) < 0.9 * float(jnp.linalg.norm(ravel_pytree(steep)[0]))


def slope(solver: Analytic, push, env: Env, rows: Rows):
    """As inside an update."""
    return on_one_device(lambda p: solver.slope(p, env, rows))(push)


def test_a_generous_bound_on_outliers_leaves_the_gradient_as_it_is(rows):
    plain, bounded = (slope(replace(SOLVER, outlier=outlier), policy(), ENV, rows) for outlier in (None, 1e6))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6), plain, bounded)


def test_a_rollout_counts_for_at_most_some_times_the_median():
    def found(*mass: float) -> float:
        rows = Rows({"mass": jnp.asarray(mass)}, jax.random.split(jax.random.key(0), len(mass)))
        return float(slope(Analytic(outlier=1.5), Push(jnp.array(0.1)), Coasting(), rows)[1].action)

    unit = found(1.0)  # the gradient of a rollout is inversely proportional to its mass
    want = np.mean([1.5 / 0.8, 1.5 / 0.8, 1 / 0.8, 1 / 1.0, 1 / 1.25])
    assert found(0.01, 0.5, 0.8, 1.0, 1.25) == pytest.approx(want * unit, rel=1e-4)


def test_without_barrier_the_loss_is_minus_the_mean_return_a_step(rows):
    plain = replace(SOLVER, barrier=0.0).loss(policy(), ENV, rows)
    outcome = returns(ENV, policy(), rows.domains, rows.keys[:, None])
    assert float(plain) == pytest.approx(-float(outcome.returns.mean()) / ENV.max_steps, rel=1e-4)


def test_an_update_has_rows_for_the_cores_and_no_domain_is_left_out():
    solver = Analytic(rows=100, rollouts=20, evaluation_rows=400)
    found = {n: solver.rollouts_on(n) for n in (1, 5, 10, 50, 500)}
    assert found == {1: (20, 20), 5: (100, 100), 10: (100, 200), 50: (100, 400), 500: (100, 500)}


def test_the_barrier_is_zero_far_from_failure_and_not_near_it(rows):
    far, near, none = (
        float(replace(SOLVER, barrier=weight, barrier_start=start).loss(policy(gain=1.0), ENV, rows))
        for weight, start in ((1e6, 0.999), (1e6, 0.5), (0.0, 0.5))
    )
    assert far == none
    assert near > none + 1


def test_a_barrier_that_moves_costs_the_same_at_the_bound_and_less_before_it():
    begun = Barrier(300.0, 0.8)
    parts = [begun.moved(0.95, share) for share in (0.0, 0.5, 1.0)]
    assert [float(b.begins) for b in parts] == pytest.approx([0.8, 0.875, 0.95])
    danger = [jnp.array([0.7, 0.9, 1.0])]
    costs = [b.cost(danger, b.free([jnp.zeros(3)])) for b in parts]
    want = [[0.0, 3.0, 12.0], [0.0, 12 * (0.025 / 0.125) ** 2, 12.0], [0.0, 0.0, 12.0]]  # 300 (1 − 0.8)² = 12
    np.testing.assert_allclose(costs, want, rtol=1e-4)


def test_several_dangers_add_up_and_a_start_behind_the_barrier_is_free():
    barrier = Barrier(100.0, 0.7)
    free = barrier.free([jnp.array([0.9]), jnp.array([0.1])])
    assert float(barrier.cost([jnp.array([0.9]), jnp.array([0.7])], free)[0]) == 0.0
    want = 100 * (0.1**2 + 0.3**2)
    assert float(barrier.cost([jnp.array([1.0]), jnp.array([1.0])], free)[0]) == pytest.approx(want, rel=1e-4)


def test_updates_move_the_barrier(rows):
    solver = Analytic(iterations=10, rows=4, barrier=1e4, barrier_start=0.3, barrier_end=0.999)
    state = solver.begin(jax.random.key(0), ENV, policy(gain=1.0))

    def objective(updates: int) -> float:
        now = eqx.tree_at(lambda s: s.updates, state, jnp.int32(updates))
        moved, figures = on_one_device(lambda s: solver.update(ENV, rows.domains, jax.random.key(1), s))(now)
        assert int(moved.updates) == updates + 1
        return float(figures["objective"])

    assert objective(0) < objective(2) < objective(10)


@pytest.mark.parametrize("end", [0.5, 1.0, float("nan")])
def test_a_barrier_ends_between_its_beginning_and_failure(end):
    with pytest.raises(ValueError, match=r"barrier_end = .*: the barrier moves from barrier_start = 0.7"):
        Analytic(barrier_end=end)


def test_a_gradient_that_is_not_finite_is_left_out():
    env = Cusp()
    init = policy(env)
    solver = Analytic(iterations=2, rollouts=2, evaluate_every=1)
    solution = solve(solver, jax.random.key(0), env, env.domain.nominal(), init)
    assert bool(solution.diverged)
    np.testing.assert_array_equal(ravel_pytree(solution.policy)[0], ravel_pytree(init)[0])
    assert float(solution.score.returns) == float(solution.start.returns)
