"""Quanser Cart-Pole: a pole on a cart on a rail (eq_EoM_QCP, eq_rewfcn_QCP, tab_dom_param_QCP), balance and swing-up.

α = 0 hangs down, α = π is upright. One sign and one bracket of the printed equations are corrected, see
docs/paper_map.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from spota.envs.integrate import exponentiated_cost, symplectic_euler, wrap
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import ActionDelay, Effects, ObservationNoise
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Constant, Integers, TruncatedNormal, Uniform

NU = DomainDistribution(
    gravity=Parameter(TruncatedNormal(9.81, 1.962), "m/s²", "gravity constant", "g", sign="positive"),
    cart_mass=Parameter(TruncatedNormal(0.38, 0.076), "kg", "cart mass", "m_c", sign="positive"),
    pole_mass=Parameter(TruncatedNormal(0.127, 2.54e-2), "kg", "pole mass", "m_p", sign="positive"),
    pole_length=Parameter(TruncatedNormal(0.089, 1.78e-2), "m", "half pole length", "l_p", sign="positive"),
    rail_length=Parameter(TruncatedNormal(0.814, 0.163), "m", "rail length", "l_r", sign="positive"),
    pinion_radius=Parameter(TruncatedNormal(6.35e-3, 1.27e-3), "m", "motor pinion radius", "r_mp", sign="positive"),
    gear_ratio=Parameter(Constant(3.71), "-", "gear ratio", "K_g", sign="positive"),
    gear_efficiency=Parameter(Uniform(0.8, 1.0), "-", "gearbox efficiency", "eta_g", 0.9, "positive"),
    motor_efficiency=Parameter(Uniform(0.8, 1.0), "-", "motor efficiency", "eta_m", 0.9, "positive"),
    motor_inertia=Parameter(Constant(3.9e-7), "kg m²", "motor inertia", "J_m", sign="positive"),
    torque_constant=Parameter(TruncatedNormal(7.67e-3, 1.52e-3), "N m/A", "torque constant", "k_m", sign="positive"),
    motor_resistance=Parameter(TruncatedNormal(2.6, 0.52), "Ω", "armature resistance", "R_m", sign="positive"),
    cart_damping=Parameter(Uniform(0.0, 5.4), "N s/m", "motor damping, load side", "B_eq", 5.4, "nonnegative"),
    pole_damping=Parameter(Uniform(0.0, 2.4e-3), "N m s", "pole viscous friction", "B_p", 2.4e-3, "nonnegative"),
    action_delay=Parameter(Integers(0, 10), "steps", "time until a command acts", "Delta_t_a", 0.0, "nonnegative"),
)
FRICTION = {
    "cart_friction": Parameter(Uniform(0.0, 2.0), "N", "Coulomb friction of the cart", "F_c", 0.0, "nonnegative")
}
"""What recordings of a real machine ask for and the paper's table does not have; it joins only tables that name it."""
SLIDING = 0.01  # [m/s] above which friction is whole: smooth, so that gradients and integration survive it
VOLTS = 8.0
LONGEST_DELAY = 10
RAIL_MARGIN = 0.05  # [m] that the cart needs at each end of the rail
MAX_TILT = float(np.deg2rad(15))  # [rad] from upright, when balancing
Q = (10.0, 1e3, 5e-2, 5e-3)
R = (1e-4,)
SWING_UP_REWARD = (1.0, 0.1, 0.4, 10.0)  # c_1 … c_4
NOISE = ObservationNoise((5e-3, float(np.deg2rad(0.5)), 0.05, float(np.deg2rad(2.0))))
EFFECTS = Effects(noise=NOISE, delay=ActionDelay(longest=LONGEST_DELAY))


class CartPoleParams(eqx.Module):
    """ξ of the Cart-Pole in the paper's symbols; derived parameters are properties and cannot go stale."""

    g: Scalar
    m_c: Scalar
    m_p: Scalar
    l_p: Scalar  # half the pole's length
    l_r: Scalar
    r_mp: Scalar
    K_g: Scalar
    eta_g: Scalar
    eta_m: Scalar
    J_m: Scalar
    k_m: Scalar
    R_m: Scalar
    B_eq: Scalar
    B_p: Scalar
    F_c: Scalar | None = None  # no Coulomb friction in the paper's table

    @property
    def J_p(self) -> Scalar:
        """Pole inertia about its centre of mass [kg m²]; the paper's table calls it "about the pivot point"."""
        return self.m_p * self.l_p**2 / 3

    @property
    def J_eq(self) -> Scalar:
        """Combined linear inertia [kg]."""
        return self.m_c + self.eta_g * self.K_g**2 * self.J_m / self.r_mp**2


class CartPoleState(eqx.Module):
    """Cart position [m], pole angle [rad, 0 hangs down], and their velocities."""

    x: Scalar
    alpha: Scalar
    x_dot: Scalar
    alpha_dot: Scalar


def motor_force(x_dot: Scalar, V: Scalar, xi: CartPoleParams) -> Scalar:
    """F of eq_EoM_QCP, less Coulomb friction if a table has it.

    Only the back-EMF is divided by r_mp (the paper's bracket is misplaced).
    """
    drive = xi.eta_g * xi.K_g * xi.k_m / (xi.R_m * xi.r_mp)
    force = drive * (xi.eta_m * V - xi.K_g * xi.k_m * x_dot / xi.r_mp)
    return force if xi.F_c is None else force - xi.F_c * jnp.tanh(x_dot / SLIDING)


def accelerations(s: CartPoleState, F: Scalar, xi: CartPoleParams) -> tuple[Scalar, Scalar]:
    """Solve eq_EoM_QCP, M(s) [ẍ, α̈] = b(s, F); the sign of the α̇² term is corrected."""
    ml, sin, cos = xi.m_p * xi.l_p, jnp.sin(s.alpha), jnp.cos(s.alpha)
    M_11, M_12, M_22 = xi.m_p + xi.J_eq, ml * cos, xi.J_p + ml * xi.l_p
    b_1 = F + ml * sin * s.alpha_dot**2 - xi.B_eq * s.x_dot
    b_2 = -ml * xi.g * sin - xi.B_p * s.alpha_dot
    det = M_11 * M_22 - M_12**2
    return (M_22 * b_1 - M_12 * b_2) / det, (M_11 * b_2 - M_12 * b_1) / det


@dataclass(frozen=True, eq=False)
class _CartPole(Env):
    """What both tasks share; the observation is the error state (x, α − π wrapped, ẋ, α̇)."""

    domain: DomainDistribution = NU
    effects: Effects = EFFECTS

    dt = 0.002
    optional = FRICTION
    limits = {"gear_efficiency": (0.0, 1.0), "motor_efficiency": (0.0, 1.0)}  # noqa: RUF012, nobody writes to it
    actions = (Signal("V", "V", -VOLTS, VOLTS),)
    lqr_weights = (Q, (1.0,))  # the reward's own R would ask for more voltage than the delay forgives

    def params(self, domain: Mapping[str, Any]) -> CartPoleParams:
        """ξ by the paper's symbols; the delay belongs to the effects."""
        rows = {**NU, **FRICTION}
        return CartPoleParams(**{rows[name].symbol: v for name, v in domain.items() if name != "action_delay"})

    def equilibrium(self, xi: CartPoleParams) -> CartPoleState:
        """Upright, centred and still."""
        del xi
        zero = jnp.zeros(())
        return CartPoleState(zero, zero + jnp.pi, zero, zero)

    def observe(self, state: CartPoleState, xi: CartPoleParams) -> tuple[Scalar, ...]:
        """The error state; only the angle is wrapped."""
        del xi
        return state.x, wrap(state.alpha - jnp.pi), state.x_dot, state.alpha_dot

    def at(self, observation: tuple[Scalar, ...], xi: CartPoleParams) -> CartPoleState:
        """The state of an error state."""
        del xi
        x, error, x_dot, alpha_dot = observation
        return CartPoleState(x, error + jnp.pi, x_dot, alpha_dot)

    def step(self, state: CartPoleState, action: tuple[Scalar, ...], xi: CartPoleParams) -> CartPoleState:
        """One symplectic Euler step of eq_EoM_QCP."""
        s = state
        a = accelerations(s, motor_force(s.x_dot, action[0], xi), xi)
        q, v = symplectic_euler((s.x, s.alpha), (s.x_dot, s.alpha_dot), a, self.dt)
        return CartPoleState(*q, *v)

    def danger(self, state: CartPoleState, xi: CartPoleParams) -> tuple[Scalar, ...]:
        """The cart comes to an end of this domain's rail."""
        return (jnp.abs(state.x) / (xi.l_r / 2 - RAIL_MARGIN),)


def _signals(tilt: float, cart_speed: float, pole_speed: float) -> tuple[Signal, ...]:
    return (
        Signal("x", "m", -0.357, 0.357),
        Signal("alpha_error", "rad", -tilt, tilt),
        Signal("x_dot", "m/s", -cart_speed, cart_speed),
        Signal("alpha_dot", "rad/s", -pole_speed, pole_speed),
    )


@dataclass(frozen=True, eq=False)
class CartPole(_CartPole):
    """Keep the pole upright and the cart centred, with one motor voltage."""

    name = "cart-pole"
    controller = "lqr"
    max_steps = 2500
    max_reward = 1.0
    observations = _signals(MAX_TILT, 1.0, 2 * np.pi)

    def start(self, key: Key[Array, ""], xi: CartPoleParams) -> CartPoleState:
        """Near upright, near the centre, slow."""
        del xi
        unit = jax.random.uniform(key, (4,), minval=-1.0, maxval=1.0)
        spread = (0.02, np.deg2rad(8), 0.02, np.deg2rad(5))
        x, tilt, x_dot, alpha_dot = (float(s) * unit[i] for i, s in enumerate(spread))
        return CartPoleState(x, jnp.pi + tilt, x_dot, alpha_dot)

    def reward(self, state: CartPoleState, action: tuple[Scalar, ...], xi: CartPoleParams) -> Scalar:
        """eq_rewfcn_QCP: 1 upright, centred and still."""
        return exponentiated_cost(self.observe(state, xi), action, Q, R, -1.0)

    def danger(self, state: CartPoleState, xi: CartPoleParams) -> tuple[Scalar, ...]:
        """The cart comes to the rail's end, or the pole tilts by up to 15°."""
        return (*super().danger(state, xi), jnp.abs(wrap(state.alpha - jnp.pi)) / MAX_TILT)


@dataclass(frozen=True, eq=False)
class CartPoleSwingUp(_CartPole):
    """Swing the hanging pole up and keep it there (the task that is commented out in the paper's source)."""

    name = "cart-pole-swing-up"
    controller = "energy"
    observations = _signals(np.pi, 2.0, 8 * np.pi)
    max_steps = 4000
    max_reward = SWING_UP_REWARD[3] - SWING_UP_REWARD[0] * float(np.log(SWING_UP_REWARD[1]))
    min_reward = -3.0  # hanging down, −2.17, and 1 m off the centre, farther than any rail is long

    def start(self, key: Key[Array, ""], xi: CartPoleParams) -> CartPoleState:
        """Hanging down at rest."""
        del key, xi
        zero = jnp.zeros(())
        return CartPoleState(zero, zero, zero, zero)

    def reward(self, state: CartPoleState, action: tuple[Scalar, ...], xi: CartPoleParams) -> Scalar:
        """eq_rewfcn_QCP, swing-up: a logarithmic peak at upright, and a cost on leaving the centre."""
        del action
        c_1, c_2, c_3, c_4 = SWING_UP_REWARD
        x, e, _, _ = self.observe(state, xi)
        return -c_1 * (e**2 + jnp.log(e**2 + c_2)) - c_3 * jnp.abs(x) + c_4
