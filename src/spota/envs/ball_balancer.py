"""Quanser Ball-Balancer: a ball on a plate that two servos tilt (eq_EoM_QBB, eq_rewfcn_QBB, tab_dom_param_QBB)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota.envs.integrate import exponentiated_cost, symplectic_euler
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import ActionDelay, DeadBand, Effects, ObservationNoise
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Integers, TruncatedNormal, Uniform

NU = DomainDistribution(
    gravity=Parameter(TruncatedNormal(9.81, 1.962), "m/s²", "gravity constant", "g", sign="positive"),
    ball_mass=Parameter(TruncatedNormal(5e-3, 6e-4), "kg", "ball mass", "m_b", sign="positive"),
    ball_radius=Parameter(TruncatedNormal(1.96e-2, 3.93e-3), "m", "ball radius", "r_b", sign="positive"),
    plate_length=Parameter(TruncatedNormal(0.275, 5.5e-2), "m", "plate length", "l_p", sign="positive"),
    arm_radius=Parameter(TruncatedNormal(2.54e-2, 3.08e-3), "m", "kinematic leverage arm", "r_kin", sign="positive"),
    gear_ratio=Parameter(TruncatedNormal(70.0, 14.0), "-", "gear ratio", "K_g", sign="positive"),
    gear_efficiency=Parameter(Uniform(0.6, 1.0), "-", "gearbox efficiency", "eta_g", 0.9, "positive"),
    motor_efficiency=Parameter(Uniform(0.49, 0.89), "-", "motor efficiency", "eta_m", 0.69, "positive"),
    load_inertia=Parameter(TruncatedNormal(5.28e-5, 1.06e-5), "kg m²", "load inertia", "J_l", sign="positive"),
    motor_inertia=Parameter(TruncatedNormal(4.61e-7, 9.22e-8), "kg m²", "motor inertia", "J_m", sign="positive"),
    torque_constant=Parameter(TruncatedNormal(7.7e-3, 1.52e-3), "N m/A", "torque constant", "k_m", sign="positive"),
    motor_resistance=Parameter(TruncatedNormal(2.6, 0.52), "Ω", "armature resistance", "R_m", sign="positive"),
    motor_damping=Parameter(Uniform(3.75e-3, 0.15), "N m s", "motor damping, load side", "B_eq", 0.015, "nonnegative"),
    ball_friction=Parameter(Uniform(1.25e-3, 5e-2), "-", "ball/plate viscous friction", "c_v", 0.05, "nonnegative"),
    threshold_x_pos=Parameter(Uniform(8.84e-2, 0.353), "V", "x servo, positive dead band", "V_thold_x_pos", 0.28),
    threshold_x_neg=Parameter(Uniform(-8.9e-2, -2.22e-3), "V", "x servo, negative dead band", "V_thold_x_neg", -0.10),
    threshold_y_pos=Parameter(Uniform(7.25e-2, 0.290), "V", "y servo, positive dead band", "V_thold_y_pos", 0.28),
    threshold_y_neg=Parameter(Uniform(-7.3e-2, -1.83e-2), "V", "y servo, negative dead band", "V_thold_y_neg", -0.074),
    offset_x=Parameter(Uniform(-5.0, 5.0), "°", "x servo offset", "Delta_theta_x", 0.0),
    offset_y=Parameter(Uniform(-5.0, 5.0), "°", "y servo offset", "Delta_theta_y", 0.0),
    action_delay=Parameter(Integers(0, 30), "steps", "time until a command acts", "Delta_t_a", 0.0, "nonnegative"),
)
VOLTS = 5.0
LONGEST_DELAY = 30
BOUNDS = (np.pi / 4, np.pi / 4, 0.275 / 2, 0.275 / 2, 5 * np.pi, 5 * np.pi, 0.5, 0.5)
Q = (1.0, 1.0, 5e3, 5e3, 1e-2, 1e-2, 5e-2, 5e-2)
R = (1e-3, 1e-3)
R_MIN = 1e-4
NOISE = ObservationNoise((*np.deg2rad([0.5, 0.5]).tolist(), 5e-3, 5e-3, *np.deg2rad([2.0, 2.0]).tolist(), 0.05, 0.05))
# c of eq_rewfcn_QBB, from the nominal bounds of states and actions
SHARPNESS = float(np.log(R_MIN) / (np.dot(Q, np.square(BOUNDS)) + np.dot(R, np.square([VOLTS, VOLTS]))))


class BallBalancerParams(eqx.Module):
    """ξ of the Ball-Balancer in the paper's symbols; derived parameters are properties and cannot go stale."""

    g: Scalar
    m_b: Scalar
    r_b: Scalar
    l_p: Scalar
    r_kin: Scalar
    K_g: Scalar
    eta_g: Scalar
    eta_m: Scalar
    J_l: Scalar
    J_m: Scalar
    k_m: Scalar
    R_m: Scalar
    B_eq: Scalar
    c_v: Scalar
    Delta_theta_x: Scalar  # [°]
    Delta_theta_y: Scalar  # [°]

    @property
    def c_kin(self) -> Scalar:
        """Kinematic constant [-]."""
        return 2 * self.r_kin / self.l_p

    @property
    def A_m(self) -> Scalar:
        """Combined motor constant [N m/V]."""
        return self.eta_g * self.K_g * self.eta_m * self.k_m / self.R_m

    @property
    def B_v(self) -> Scalar:
        """Combined rotary damping [N m s]."""
        return self.eta_g * self.K_g**2 * self.eta_m * self.k_m**2 / self.R_m + self.B_eq

    @property
    def J_eq(self) -> Scalar:
        """Combined rotor inertia [kg m²]."""
        return self.eta_g * self.K_g**2 * self.J_m + self.J_l

    @property
    def J_b(self) -> Scalar:
        """Ball inertia about its centre of mass [kg m²]."""
        return 2 / 5 * self.m_b * self.r_b**2

    @property
    def zeta(self) -> Scalar:
        """Combined ball inertia [kg m²]."""
        return self.m_b * self.r_b**2 + self.J_b


class BallBalancerState(eqx.Module):
    """Servo angles at the load [rad], ball position [m], and their velocities."""

    theta_x: Scalar
    theta_y: Scalar
    x: Scalar
    y: Scalar
    theta_x_dot: Scalar
    theta_y_dot: Scalar
    x_dot: Scalar
    y_dot: Scalar


def accelerations(
    s: BallBalancerState, volts: tuple[Scalar, ...], xi: BallBalancerParams
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """eq_EoM_QBB, the servos and the ball; x and y obey the same equation."""
    theta_x_ddot, x_ddot = _axis(s.theta_x, s.theta_x_dot, s.x, s.x_dot, volts[0], xi.Delta_theta_x, xi)
    theta_y_ddot, y_ddot = _axis(s.theta_y, s.theta_y_dot, s.y, s.y_dot, volts[1], xi.Delta_theta_y, xi)
    return theta_x_ddot, theta_y_ddot, x_ddot, y_ddot


def _axis(
    theta: Scalar,
    theta_dot: Scalar,
    x: Scalar,
    x_dot: Scalar,
    V: Scalar,
    offset: Scalar,
    xi: BallBalancerParams,
) -> tuple[Scalar, Scalar]:
    """One axis of eq_EoM_QBB; sin α = c_kin sin θ in closed form, α̇ and α̈ by differentiation."""
    theta_ddot = (xi.A_m * V - xi.B_v * theta_dot) / xi.J_eq
    plate_theta = theta + jnp.deg2rad(offset)  # the plate follows the servo with an offset that nobody measures
    sin, cos = jnp.sin(plate_theta), jnp.cos(plate_theta)
    sin_alpha = xi.c_kin * sin
    cos_alpha = jnp.sqrt(1 - sin_alpha**2)
    alpha_dot = xi.c_kin * cos * theta_dot / cos_alpha
    alpha_ddot = (xi.c_kin * (cos * theta_ddot - sin * theta_dot**2) + sin_alpha * alpha_dot**2) / cos_alpha
    pull = -xi.c_v * x_dot + xi.m_b * x * alpha_dot**2 + xi.m_b * xi.g * sin_alpha
    x_ddot = (pull * xi.r_b**2 - xi.J_b * xi.r_b * alpha_ddot) / xi.zeta
    return theta_ddot, x_ddot


@dataclass(frozen=True, eq=False)
class BallBalancer(Env):
    """Bring the ball to the plate's centre and keep it there, with two servo voltages."""

    domain: DomainDistribution = NU
    effects: Effects = Effects(  # noqa: RUF009, frozen
        noise=NOISE,
        delay=ActionDelay(longest=LONGEST_DELAY),
        dead_band=DeadBand(("threshold_x_neg", "threshold_y_neg"), ("threshold_x_pos", "threshold_y_pos")),
    )

    name = "ball-balancer"
    controller = "pd"
    dt = 0.002
    max_steps = 2000
    max_reward = 1.0
    observations = tuple(
        Signal(name, unit, -bound, bound)
        for name, unit, bound in zip(
            ("theta_x", "theta_y", "x", "y", "theta_x_dot", "theta_y_dot", "x_dot", "y_dot"),
            ("rad", "rad", "m", "m", "rad/s", "rad/s", "m/s", "m/s"),
            BOUNDS,
            strict=True,
        )
    )
    actions = (Signal("V_x", "V", -VOLTS, VOLTS), Signal("V_y", "V", -VOLTS, VOLTS))
    lqr_weights = (Q, (20.0, 20.0))  # the reward's own R would ask for more voltage than the delay forgives

    def params(self, domain: Mapping[str, Any]) -> BallBalancerParams:
        """ξ by the paper's symbols; the dead bands and the delay belong to the effects."""
        effects = ("threshold_x_pos", "threshold_x_neg", "threshold_y_pos", "threshold_y_neg", "action_delay")
        return BallBalancerParams(**{NU[name].symbol: value for name, value in domain.items() if name not in effects})

    def start(self, key: Key[Array, ""], xi: BallBalancerParams) -> BallBalancerState:
        """The ball on a ring near the edge of this domain's plate, slow, servos at rest."""
        k_radius, k_angle, k_x, k_y = jax.random.split(key, 4)
        radius = jax.random.uniform(k_radius, minval=0.75, maxval=0.8) * xi.l_p / 2
        angle = jax.random.uniform(k_angle, minval=-jnp.pi, maxval=jnp.pi)
        x_dot, y_dot = (jax.random.uniform(k, minval=-0.025, maxval=0.025) for k in (k_x, k_y))
        rest = jnp.zeros(())
        return BallBalancerState(rest, rest, radius * jnp.cos(angle), radius * jnp.sin(angle), rest, rest, x_dot, y_dot)

    def equilibrium(self, xi: BallBalancerParams) -> BallBalancerState:
        """The ball at rest in the centre."""
        del xi
        return BallBalancerState(*jnp.zeros(8))

    def observe(self, state: BallBalancerState, xi: BallBalancerParams) -> tuple[Scalar, ...]:
        """The state."""
        del xi
        return tuple(jax.tree.leaves(state))

    def at(self, observation: tuple[Scalar, ...], xi: BallBalancerParams) -> BallBalancerState:
        """The state itself is observed."""
        del xi
        return BallBalancerState(*observation)

    def reward(self, state: BallBalancerState, action: tuple[Scalar, ...], xi: BallBalancerParams) -> Scalar:
        """eq_rewfcn_QBB: 1 at the centre, r_min in the corner of the nominal state and action space."""
        return exponentiated_cost(self.observe(state, xi), action, Q, R, SHARPNESS)

    def step(self, state: BallBalancerState, action: tuple[Scalar, ...], xi: BallBalancerParams) -> BallBalancerState:
        """One symplectic Euler step of eq_EoM_QBB."""
        s = state
        q, v = symplectic_euler(
            (s.theta_x, s.theta_y, s.x, s.y),
            (s.theta_x_dot, s.theta_y_dot, s.x_dot, s.y_dot),
            accelerations(s, action, xi),
            self.dt,
        )
        return BallBalancerState(*q, *v)

    def danger(self, state: BallBalancerState, xi: BallBalancerParams) -> tuple[Scalar, ...]:
        """The ball leaves this domain's plate, or a servo or a velocity leaves its bound."""
        edge = xi.l_p / 2
        bounds = (*BOUNDS[:2], edge, edge, *BOUNDS[4:])
        return tuple(jnp.abs(value) / bound for value, bound in zip(self.observe(state, xi), bounds, strict=True))
