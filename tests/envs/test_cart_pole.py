from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lagrange import drifts, energy, errors, flow, reference, rod

from spota.envs import make
from spota.envs.cart_pole import NU, CartPoleParams, CartPoleState, accelerations, motor_force
from spota.envs.integrate import wrap

STEPS = (0.002, 0.001, 0.0005)
START = np.array([0.0, 2.0, 0.1, -1.0])
BALANCE, SWING_UP = make("cart-pole"), make("cart-pole-swing-up")
NOMINAL = {NU[name].symbol: NU[name].nominal_value for name in NU if name != "action_delay"}
XI = CartPoleParams(**NOMINAL)
FREE = CartPoleParams(**{**NOMINAL, "B_eq": 0.0, "B_p": 0.0})


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield


def lagrangian(q, v):
    """A cart with its motor's inertia, and a pole of length 2 l_p that hangs from it."""
    cart = 0.38 + 0.9 * 3.71**2 * 3.9e-7 / 6.35e-3**2
    pole = rod(
        lambda q, share: jnp.stack([q[0] + 0.178 * share * jnp.sin(q[1]), -0.178 * share * jnp.cos(q[1])]),
        0.127,
        9.81,
    )
    return cart * v[0] ** 2 / 2 + pole(q, v)


derived = jax.jit(flow(lagrangian))


def ours(q, v):
    return jnp.stack(accelerations(CartPoleState(*q, *v), 0.0, FREE))


def printed(q, v):
    """eq_EoM_QCP as the paper prints it, unforced and undamped."""
    m, l_p, sin, cos = 0.127, 0.089, jnp.sin(q[1]), jnp.cos(q[1])
    J_eq, J_p = 0.38 + 0.9 * 3.71**2 * 3.9e-7 / 6.35e-3**2, m * l_p**2 / 3
    M = jnp.array([[m + J_eq, m * l_p * cos], [m * l_p * cos, J_p + m * l_p**2]])
    return jnp.linalg.solve(M, jnp.stack([-m * l_p * sin * v[1] ** 2, -m * l_p * 9.81 * sin]))


@pytest.mark.parametrize("seed", range(5))
def test_accelerations_are_those_of_the_lagrangian(seed):
    q, v = jax.random.normal(jax.random.key(seed), (2, 2)) * 3
    np.testing.assert_allclose(ours(q, v), derived(q, v), rtol=1e-10)


def test_the_energy_error_shrinks_with_the_step_size():
    drift = drifts(ours, lagrangian, START, STEPS)
    assert drift[0] < 0.02
    np.testing.assert_allclose(drift[:-1] / drift[1:], 2, atol=0.2)


def test_trajectories_converge_at_first_order_to_an_adaptive_integrator():
    error = errors(ours, lagrangian, START, STEPS)
    np.testing.assert_allclose(error[:-1] / error[1:], 2, atol=0.2)


def test_the_corrected_equation_conserves_energy_and_the_printed_one_does_not():
    change = {f: np.ptp(energy(lagrangian, *reference(f, START, 5.0))) for f in (ours, printed)}
    assert change[ours] < 1e-8
    assert change[printed] > 0.05


def test_the_motor_force_has_the_stall_force_and_the_idle_speed_of_its_parts():
    stall = 0.9 * 3.71 * 7.67e-3 / (2.6 * 6.35e-3) * 0.9 * 8  # η_g K_g k_m/(R_m r_mp) · η_m V
    assert motor_force(0.0, 8.0, XI) == pytest.approx(stall)
    idle = 0.9 * 8 * 6.35e-3 / (3.71 * 7.67e-3)  # the back-EMF eats the whole voltage
    assert motor_force(idle, 8.0, XI) == pytest.approx(0, abs=1e-9)


def test_derived_parameters_follow_the_drawn_ones():
    heavy, short = (CartPoleParams(**{**NOMINAL, **change}) for change in ({"m_p": 2 * 0.127}, {"r_mp": 6.35e-3 / 2}))
    assert heavy.J_p == pytest.approx(2 * XI.J_p)
    assert short.J_eq - 0.38 == pytest.approx(4 * (XI.J_eq - 0.38))


@settings(deadline=None)
@given(st.floats(-50, 50), st.integers(-5, 5))
def test_wrap_keeps_the_angle_and_forgets_the_turns(angle, turns):
    wrapped = wrap(angle)
    assert -np.pi - 1e-9 <= wrapped <= np.pi + 1e-9
    assert np.exp(1j * float(wrapped)) == pytest.approx(np.exp(1j * angle), abs=1e-9)
    assert np.cos(wrap(angle + 2 * np.pi * turns) - wrapped) == pytest.approx(1, abs=1e-9)


def test_wrap_takes_half_a_turn_as_positive():
    assert wrap(jnp.pi) == wrap(-jnp.pi) == wrap(3 * jnp.pi) == pytest.approx(np.pi)
    assert wrap(0.0) == 0


def test_balancing_starts_near_upright():
    keys = jax.random.split(jax.random.key(0), 2000)
    observation = jax.vmap(lambda k: jnp.stack(BALANCE.observe(BALANCE.start(k, XI), XI)))(keys)
    bounds = np.array([0.02, np.deg2rad(8), 0.02, np.deg2rad(5)])
    largest = np.abs(observation).max(0)
    assert (largest <= bounds + 1e-9).all()
    assert (largest > 0.98 * bounds).all()
    np.testing.assert_allclose(observation.std(0), bounds / np.sqrt(3), rtol=0.05)


def test_the_swing_up_starts_hanging_at_rest():
    state = SWING_UP.start(jax.random.key(0), XI)
    assert jax.tree.leaves(state) == [0, 0, 0, 0]
    assert abs(SWING_UP.observe(state, XI)[1]) == pytest.approx(np.pi)


@pytest.mark.parametrize("turns", [-1, 0, 3])
def test_balancing_fails_beyond_15_degrees_and_at_the_ends_of_this_rail(turns):
    def failed(x, degrees, xi=XI):
        return bool(BALANCE.failed(CartPoleState(x, np.pi + np.deg2rad(degrees) + 2 * np.pi * turns, 0.0, 0.0), xi))

    assert not failed(0.356, 14.9) and not failed(-0.356, -14.9)  # 0.814 / 2 − 0.05 = 0.357
    assert failed(0.358, 0.0) and failed(-0.358, 0.0) and failed(0.0, 15.1) and failed(0.0, -15.1)
    assert not failed(0.45, 0.0, CartPoleParams(**{**NOMINAL, "l_r": 1.1}))


def test_the_swing_up_fails_at_the_ends_of_the_rail_only():
    assert not SWING_UP.failed(CartPoleState(0.356, 1.0, 5.0, 30.0), XI)
    assert SWING_UP.failed(CartPoleState(-0.358, np.pi, 0.0, 0.0), XI)


def test_a_state_that_is_no_number_is_a_failure():
    good = CartPoleState(0.0, np.pi, 0.0, 0.0)
    assert BALANCE.failed(replace(good, x=np.nan), XI)
    assert BALANCE.failed(replace(good, alpha=np.nan), XI)
    assert SWING_UP.failed(replace(good, x=np.nan), XI)
    for name in ("alpha", "x_dot", "alpha_dot"):  # seen at the next step, when it has reached the cart
        assert SWING_UP.failed(SWING_UP.step(replace(good, **{name: np.nan}), (0.0,), XI), XI)


@settings(deadline=None)
@given(st.tuples(st.floats(-0.4, 0.4), st.floats(-7, 7), st.floats(-3, 3), st.floats(-30, 30)), st.floats(-8, 8))
def test_rewards_stay_within_their_range(numbers, volts):
    state = CartPoleState(*numbers)
    assert 0 <= BALANCE.reward(state, (volts,), XI) <= 1
    assert SWING_UP.reward(state, (volts,), XI) <= SWING_UP.max_reward


def test_rewards_are_those_of_the_paper():
    state, still = CartPoleState(0.1, np.pi - 0.05, 0.3, -0.4), BALANCE.equilibrium(XI)
    cost = 10 * 0.1**2 + 1e3 * 0.05**2 + 5e-2 * 0.3**2 + 5e-3 * 0.4**2 + 1e-4 * 2**2
    assert BALANCE.reward(state, (2.0,), XI) == pytest.approx(np.exp(-cost))
    assert BALANCE.reward(still, (0.0,), XI) == pytest.approx(1)
    assert SWING_UP.reward(state, (2.0,), XI) == pytest.approx(-(0.05**2 + np.log(0.05**2 + 0.1)) - 0.4 * 0.1 + 10)
    assert SWING_UP.reward(still, (0.0,), XI) == pytest.approx(SWING_UP.max_reward)
