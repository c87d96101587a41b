from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spota.envs import make
from spota.envs.ball_balancer import BOUNDS, NU, BallBalancerParams, BallBalancerState
from spota.policies.pd import pd
from spota.sim import rollout

ENV = make("ball-balancer")
EFFECTS = ("threshold_x_pos", "threshold_x_neg", "threshold_y_pos", "threshold_y_neg", "action_delay")
NOMINAL = {NU[name].symbol: NU[name].nominal_value for name in NU if name not in EFFECTS}
XI = BallBalancerParams(**NOMINAL)
DT = 0.002


def transcribed(s: np.ndarray, V: np.ndarray, d: dict[str, np.ndarray]) -> np.ndarray:
    """The accelerations of eq_EoM_QBB from the paper; s is [8, …], V is [2, …], α̇ and α̈ by finite differences."""
    theta, ball, theta_dot, ball_dot = s[0:2], s[2:4], s[4:6], s[6:8]
    eta_g, K_g, eta_m, k_m, R_m = (
        d[n] for n in ("gear_efficiency", "gear_ratio", "motor_efficiency", "torque_constant", "motor_resistance")
    )
    A_m = eta_g * K_g * eta_m * k_m / R_m
    B_v = eta_g * K_g**2 * eta_m * k_m**2 / R_m + d["motor_damping"]
    J_eq = eta_g * K_g**2 * d["motor_inertia"] + d["load_inertia"]
    theta_ddot = (A_m * V - B_v * theta_dot) / J_eq

    m_b, r_b, g = d["ball_mass"], d["ball_radius"], d["gravity"]
    c_kin = 2 * d["arm_radius"] / d["plate_length"]
    offset = np.stack([d["offset_x"], d["offset_y"]]) * np.pi / 180
    h = 1e-4
    before, now, after = (
        np.arcsin(c_kin * np.sin(theta + offset + t * theta_dot + t**2 / 2 * theta_ddot)) for t in (-h, 0, h)
    )
    alpha_dot, alpha_ddot = (after - before) / (2 * h), (after - 2 * now + before) / h**2
    J_b = 2 / 5 * m_b * r_b**2
    zeta = m_b * r_b**2 + J_b
    gravity = c_kin * m_b * g * r_b**2 * np.sin(theta + offset)
    friction, spin = -d["ball_friction"] * ball_dot * r_b**2, -J_b * r_b * alpha_ddot
    ball_ddot = (friction + spin + m_b * ball * alpha_dot**2 * r_b**2 + gravity) / zeta
    return np.concatenate([theta_ddot, ball_ddot])


def transcribed_step(s: np.ndarray, V: np.ndarray, d: dict[str, np.ndarray]) -> np.ndarray:
    """Gears with play, then velocity first and position with the new velocity."""
    low = np.stack([d["threshold_x_neg"], d["threshold_y_neg"]])
    high = np.stack([d["threshold_x_pos"], d["threshold_y_pos"]])
    V = np.where((low < V) & (high > V), 0, V)
    velocity = s[4:] + DT * transcribed(s, V, d)
    return np.concatenate([s[:4] + DT * velocity, velocity])


@pytest.fixture(scope="module")
def watched():
    """States [T, 8, n], commands [T, 2, n] and who is alive [T, n], on random domains."""
    domains = NU.sample(jax.random.key(3), 32)
    steps = rollout.watch(ENV, pd(ENV), domains, jax.random.split(jax.random.key(4), 32))
    states = np.stack(jax.tree.leaves(steps.state), axis=1).astype(np.float64)
    columns = {name: np.asarray(values, np.float64) for name, values in domains.items()}
    return states, np.asarray(steps.command, np.float64), np.asarray(steps.alive), columns


def test_every_step_is_that_of_the_transcribed_equation(watched):
    states, commands, alive, d = watched
    assert alive.mean() > 0.8
    want = np.stack([transcribed_step(s, V, d) for s, V in zip(states[:-1], commands[:-1], strict=True)])
    error = np.abs(states[1:] - want) / np.reshape(BOUNDS, (1, 8, 1))
    assert error[np.broadcast_to(alive[:-1, None], error.shape)].max() < 1e-5


def test_a_trajectory_is_that_of_the_transcribed_equation(watched):
    states, commands, alive, d = watched
    s, length = states[0], 500
    for V in commands[:length]:
        s = transcribed_step(s, V, d)
    error = np.abs(states[length] - s) / np.reshape(BOUNDS, (8, 1))
    assert alive[length].sum() > 25
    assert error[:, alive[length]].max() < 2e-3


@pytest.mark.parametrize("seed", range(5))
def test_the_plate_follows_its_closed_form_far_from_level(seed):
    s = 0.9 * np.random.default_rng(seed).uniform(-1, 1, 8) * BOUNDS
    V = np.random.default_rng(seed + 100).uniform(-5, 5, 2)
    d = {name: row.nominal_value for name, row in NU.items()} | {"offset_x": 4.0, "offset_y": -3.0}
    with jax.enable_x64(True):
        moved = ENV.step(BallBalancerState(*map(float, s)), tuple(map(float, V)), ENV.params(d))
    d = {name: np.array(value) for name, value in d.items()}
    np.testing.assert_allclose(jax.tree.leaves(moved), transcribed_step(s, V, d), rtol=1e-6, atol=1e-9)


def test_derived_parameters_follow_the_drawn_ones():
    def changed(**change):
        return BallBalancerParams(**{**NOMINAL, **change})

    assert changed(m_b=0.01).J_b == pytest.approx(2 * XI.J_b)
    assert changed(m_b=0.01).zeta == pytest.approx(2 * XI.zeta)
    assert changed(l_p=0.55).c_kin == pytest.approx(XI.c_kin / 2)
    assert changed(R_m=5.2).A_m == pytest.approx(XI.A_m / 2)
    assert changed(k_m=2 * 7.7e-3).B_v - 0.015 == pytest.approx(4 * (XI.B_v - 0.015))
    assert changed(J_m=0.0).J_eq == pytest.approx(5.28e-5)


def test_the_ball_starts_on_a_ring_of_its_own_plate():
    domains, keys = NU.sample(jax.random.key(0), 2000), jax.random.split(jax.random.key(1), 2000)
    s = jax.vmap(lambda d, k: ENV.start(k, ENV.params(d)))(domains, keys)
    share = np.hypot(s.x, s.y) / (domains["plate_length"] / 2)
    assert 0.75 - 1e-6 <= share.min() < 0.7505
    assert 0.7995 < share.max() <= 0.8 + 1e-6
    angle = np.arctan2(s.y, s.x)
    assert np.histogram(angle, 8, (-np.pi, np.pi))[0].min() > 190
    for speed in (s.x_dot, s.y_dot):
        assert 0.0249 < np.abs(speed).max() <= 0.025
    for servo in (s.theta_x, s.theta_y, s.theta_x_dot, s.theta_y_dot):
        assert not np.any(servo)


@pytest.mark.parametrize("channel", range(8))
@pytest.mark.parametrize("sign", [-1, 1])
def test_leaving_a_bound_is_failure(channel, sign):
    inside, outside = (
        BallBalancerState(*(sign * share * bound * (i == channel) for i, bound in enumerate(BOUNDS)))
        for share in (0.999, 1.001)
    )
    assert not ENV.failed(inside, XI)
    assert ENV.failed(outside, XI)


def test_the_balls_bound_is_this_domains_plate():
    state = BallBalancerState(0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert ENV.failed(state, XI)
    assert not ENV.failed(state, BallBalancerParams(**{**NOMINAL, "l_p": 0.32}))


@pytest.mark.parametrize("channel", range(8))
def test_a_state_that_is_no_number_is_a_failure(channel):
    numbers = [0.0] * 8
    numbers[channel] = np.nan
    assert ENV.failed(BallBalancerState(*numbers), XI)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=10, max_size=10))
def test_rewards_stay_between_r_min_and_one(shares):
    state = BallBalancerState(*(float(s * b) for s, b in zip(shares, BOUNDS, strict=False)))
    assert 1e-4 * (1 - 1e-4) <= ENV.reward(state, (5 * shares[8], 5 * shares[9]), XI) <= 1


def test_the_reward_is_r_min_in_the_corner_and_one_in_the_centre():
    corner = BallBalancerState(*map(float, BOUNDS))
    assert ENV.reward(corner, (5.0, -5.0), XI) == pytest.approx(1e-4, rel=1e-4)
    still = ENV.equilibrium(XI)
    assert ENV.reward(still, (0.0, 0.0), XI) == 1
    assert ENV.reward(replace(still, x=0.05), (0.0, 0.0), XI) < ENV.reward(replace(still, x=0.04), (0.0, 0.0), XI)


def test_the_observation_is_the_state():
    assert ENV.observe(BallBalancerState(*map(float, range(8))), XI) == tuple(range(8))
    assert [signal.name for signal in ENV.observations] == [
        f.name for f in BallBalancerState.__dataclass_fields__.values()
    ]
    assert jnp.isclose(ENV.observations[2].high, 0.275 / 2)
