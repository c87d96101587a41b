from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lagrange import drifts, energy, errors, flow, reference, rod

from spota.envs import make
from spota.envs.qube import NU, QubeParams, QubeState, accelerations, motor_torque
from spota.policies.lqr import lqr
from spota.sim import rollout

STEPS = (
    0.001,
    0.0005,
    0.00025,
)  # a free arm and pendulum turn faster than a driven one: 2 ms are coarse here
START = np.array([0.0, 1.0, 0.5, -1.0])
FAST = np.array([0.0, 2.0, 1.0, -1.0])
BALANCE, SWING_UP = make("qube"), make("qube-swing-up")
NOMINAL = {NU[name].symbol: NU[name].nominal_value for name in NU if name != "action_delay"}
XI = QubeParams(**NOMINAL)
FREE = QubeParams(**{**NOMINAL, "d_r": 0.0, "d_p": 0.0})


@pytest.fixture
def double_precision():
    with jax.enable_x64(True):
        yield


def pendulum(q, share):
    """A point of the pendulum, which swings in the plane at right angles to the arm's end."""
    (theta, alpha), reach = q, 0.129 * share
    sideways = reach * jnp.sin(alpha)
    across, along = 0.085 * jnp.cos(theta), 0.085 * jnp.sin(theta)
    return jnp.stack([across - sideways * jnp.sin(theta), along + sideways * jnp.cos(theta), -reach * jnp.cos(alpha)])


def lagrangian(q, v):
    """The arm's inertia is the paper's m_r l_r²/12, although it turns about its end."""
    return 0.095 * 0.085**2 / 12 * v[0] ** 2 / 2 + rod(pendulum, 0.024, 9.81)(q, v)


derived = jax.jit(flow(lagrangian))


def ours(q, v):
    return jnp.stack(accelerations(QubeState(*q, *v), 0.0, FREE))


def printed(q, v):
    """eq_EoM_QQ as the paper prints it, unforced and undamped."""
    m, l_p, l_r, g, sin, cos = 0.024, 0.129, 0.085, 9.81, jnp.sin(q[1]), jnp.cos(q[1])
    J_r, J_p = 0.095 * l_r**2 / 12, m * l_p**2 / 12
    mix = m * l_p * l_r / 2
    M = jnp.array([[J_r + m * l_r**2 + m * l_p**2 / 4 * cos**2, mix * cos], [mix * cos, J_p + m * l_p**2 / 4]])
    b_1 = -m * l_p**2 / 2 * sin * cos * v[0] * v[1] - mix * sin * v[1] ** 2
    b_2 = -m * l_p**2 / 4 * sin * cos * v[0] ** 2 - m * l_p * g / 2 * sin
    return jnp.linalg.solve(M, jnp.stack([b_1, b_2]))


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("seed", range(5))
def test_accelerations_are_those_of_the_lagrangian(seed):
    q, v = jax.random.normal(jax.random.key(seed), (2, 2)) * 3
    np.testing.assert_allclose(ours(q, v), derived(q, v), rtol=1e-9)


@pytest.mark.usefixtures("double_precision")
def test_the_energy_error_shrinks_with_the_step_size():
    drift = drifts(ours, lagrangian, START, STEPS)
    assert drift[0] < 0.1 * 0.024 * 9.81 * 0.129
    np.testing.assert_allclose(drift[:-1] / drift[1:], 2, atol=0.2)


@pytest.mark.usefixtures("double_precision")
def test_trajectories_converge_at_first_order_to_an_adaptive_integrator():
    error = errors(ours, lagrangian, START, STEPS)
    np.testing.assert_allclose(error[:-1] / error[1:], 2, atol=0.2)


@pytest.mark.usefixtures("double_precision")
def test_the_corrected_equation_conserves_energy_and_the_printed_one_does_not():
    first = abs(energy(lagrangian, FAST[None, :2], FAST[None, 2:]).item())
    change = {f: np.ptp(energy(lagrangian, *reference(f, FAST, 5.0))) for f in (ours, printed)}
    assert change[ours] < 1e-7 * first
    assert change[printed] > first


def test_the_motor_torque_vanishes_at_idle_speed():
    assert motor_torque(0.0, 4.5, XI) == pytest.approx(0.042 * 4.5 / 8.4)
    assert motor_torque(4.5 / 0.042, 4.5, XI) == pytest.approx(0, abs=1e-9)


def test_derived_parameters_follow_the_drawn_ones():
    heavy, long = (QubeParams(**{**NOMINAL, **change}) for change in ({"m_p": 0.048}, {"l_p": 0.258}))
    assert heavy.J_p == pytest.approx(2 * XI.J_p)
    assert heavy.I_p == pytest.approx(2 * XI.I_p)
    assert long.I_p == pytest.approx(4 * XI.I_p)
    assert XI.I_p == pytest.approx(0.024 * 0.129**2 / 3)


def test_balancing_starts_near_upright():
    keys = jax.random.split(jax.random.key(0), 2000)
    observation = jax.vmap(lambda k: jnp.stack(BALANCE.observe(BALANCE.start(k, XI), XI)))(keys)
    bounds = np.deg2rad([2, 8, 5, 5])
    largest = np.abs(observation).max(0)
    assert (largest <= bounds + 1e-6).all()
    assert (largest > 0.98 * bounds).all()


def test_the_swing_up_starts_hanging_at_rest():
    state = SWING_UP.start(jax.random.key(0), XI)
    assert jax.tree.leaves(state) == [0, 0, 0, 0]
    assert abs(SWING_UP.observe(state, XI)[1]) == pytest.approx(np.pi)


def test_balancing_fails_beyond_15_degrees_and_2_radians_of_the_arm():
    def failed(theta, degrees):
        return bool(BALANCE.failed(QubeState(theta, np.pi + np.deg2rad(degrees), 0.0, 0.0), XI))

    assert not failed(1.99, 14.9) and not failed(-1.99, -14.9)
    assert failed(2.01, 0.0) and failed(-2.01, 0.0) and failed(0.0, 15.1) and failed(0.0, -15.1)


def test_the_swing_up_fails_where_the_cable_ends_only():
    assert not SWING_UP.failed(QubeState(2.29, 1.0, 30.0, 30.0), XI)
    assert SWING_UP.failed(QubeState(-2.31, np.pi, 0.0, 0.0), XI)


def test_a_state_that_is_no_number_is_a_failure():
    good = QubeState(0.0, np.pi, 0.0, 0.0)
    for env in (BALANCE, SWING_UP):
        assert env.failed(replace(good, theta=np.nan), XI)
        assert env.failed(replace(good, alpha=np.nan), XI)
        assert env.failed(env.step(replace(good, theta_dot=np.nan), (0.0,), XI), XI)


@settings(deadline=None)
@given(
    st.tuples(st.floats(-3, 3), st.floats(-7, 7), st.floats(-30, 30), st.floats(-30, 30)),
    st.floats(-4.5, 4.5),
)
def test_rewards_stay_between_zero_and_one(numbers, volts):
    assert 0 <= BALANCE.reward(QubeState(*numbers), (volts,), XI) <= 1


def test_the_reward_is_that_of_the_paper():
    state = QubeState(0.5, np.pi - 0.2, 1.0, -2.0)
    cost = 0.1 * 0.5**2 + 0.2**2 + 2e-2 * 1.0**2 + 5e-3 * 2.0**2 + 3e-3 * 3.0**2
    assert BALANCE.reward(state, (3.0,), XI) == pytest.approx(np.exp(-cost), rel=1e-5)
    assert SWING_UP.reward(SWING_UP.equilibrium(XI), (0.0,), XI) == pytest.approx(1)


def test_a_regulator_balances_random_domains_with_noise_and_delay():
    domains, keys = NU.sample(jax.random.key(0), 500), jax.random.split(jax.random.key(1), (500, 1))
    outcome = rollout.returns(BALANCE, lqr(BALANCE), domains, keys)
    assert outcome.survived.mean() >= 0.97
    assert outcome.returns.mean() >= 2350
