"""Quanser Qube: a pendulum on the end of a rotary arm (eq_EoM_QQ, eq_rewfcn_QQ), balance and swing-up.

θ = 0 is the arm's centre, α = 0 hangs down, α = π is upright. The signs and one cosine of the printed equations are
corrected, see docs/paper_map.md.
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
from spota.sim.marginals import Integers, TruncatedNormal, Uniform


def _fifth(mean: float, unit: str, meaning: str, symbol: str) -> Parameter:
    """A row whose standard deviation is one fifth of its mean."""
    return Parameter(TruncatedNormal(mean, mean / 5), unit, meaning, symbol, sign="positive")


NU = DomainDistribution(
    gravity=_fifth(9.81, "m/s²", "gravity constant", "g"),
    motor_resistance=_fifth(8.4, "Ω", "armature resistance", "R_m"),
    torque_constant=_fifth(0.042, "N m/A", "torque constant", "k_m"),
    arm_mass=_fifth(0.095, "kg", "rotary arm mass", "m_r"),
    arm_length=_fifth(0.085, "m", "rotary arm length", "l_r"),
    pole_mass=_fifth(0.024, "kg", "pendulum mass", "m_p"),
    pole_length=_fifth(0.129, "m", "pendulum length", "l_p"),
    arm_damping=_fifth(5e-6, "N m s", "rotary arm viscous friction", "d_r"),
    pole_damping=_fifth(1e-6, "N m s", "pendulum viscous friction", "d_p"),
    # The paper has no table of effects for the Qube: the delay is the Cart-Pole's, the noise that of its angles.
    action_delay=Parameter(Integers(0, 10), "steps", "time until a command acts", "Delta_t_a", 0.0, "nonnegative"),
)
FRICTION = {
    "arm_friction": Parameter(Uniform(0.0, 4e-3), "N m", "Coulomb friction of the arm", "tau_c", 0.0, "nonnegative")
}
"""What recordings of a real machine ask for and the paper's equations do not have; it joins tables that name it."""
TURNING = 0.1  # [rad/s] above which friction is whole: smooth, so that gradients and integration survive it
VOLTS = 4.5
LONGEST_DELAY = 10
MAX_ARM = 2.0  # [rad] from the centre, when balancing
MAX_ARM_SWING_UP = 2.3  # [rad] where the cable ends
MAX_TILT = float(np.deg2rad(15))  # [rad] from upright, when balancing
Q = (0.1, 1.0, 2e-2, 5e-3)
R = (3e-3,)
NOISE = ObservationNoise(tuple(np.deg2rad([0.5, 0.5, 2.0, 2.0]).tolist()))
EFFECTS = Effects(noise=NOISE, delay=ActionDelay(longest=LONGEST_DELAY))


class QubeParams(eqx.Module):
    """ξ of the Qube in the paper's symbols; derived parameters are properties and cannot go stale."""

    g: Scalar
    R_m: Scalar
    k_m: Scalar
    m_r: Scalar
    l_r: Scalar
    m_p: Scalar
    l_p: Scalar  # the whole length, unlike the Cart-Pole's
    d_r: Scalar
    d_p: Scalar
    tau_c: Scalar | None = None  # no Coulomb friction in the paper's equations

    @property
    def J_r(self) -> Scalar:
        """Arm inertia [kg m²]."""
        return self.m_r * self.l_r**2 / 12

    @property
    def J_p(self) -> Scalar:
        """Pendulum inertia about its centre of mass [kg m²]."""
        return self.m_p * self.l_p**2 / 12

    @property
    def l_c(self) -> Scalar:
        """From the joint to the pendulum's centre of mass [m]."""
        return self.l_p / 2

    @property
    def I_p(self) -> Scalar:
        """Pendulum inertia about its joint [kg m²]."""
        return self.J_p + self.m_p * self.l_c**2


class QubeState(eqx.Module):
    """Arm angle [rad], pendulum angle [rad, 0 hangs down], and their velocities."""

    theta: Scalar
    alpha: Scalar
    theta_dot: Scalar
    alpha_dot: Scalar


def motor_torque(theta_dot: Scalar, V: Scalar, xi: QubeParams) -> Scalar:
    """τ of eq_EoM_QQ, less Coulomb friction if a table has it."""
    torque = xi.k_m * (V - xi.k_m * theta_dot) / xi.R_m
    return torque if xi.tau_c is None else torque - xi.tau_c * jnp.tanh(theta_dot / TURNING)


def accelerations(s: QubeState, tau: Scalar, xi: QubeParams) -> tuple[Scalar, Scalar]:
    """Solve eq_EoM_QQ, M(s) [θ̈, α̈] = b(s, τ); sin² in M_11 and the signs of the α̇² and θ̇² terms are corrected."""
    sin, cos = jnp.sin(s.alpha), jnp.cos(s.alpha)
    mll = xi.m_p * xi.l_r * xi.l_c
    M_11, M_12, M_22 = xi.J_r + xi.m_p * xi.l_r**2 + xi.I_p * sin**2, mll * cos, xi.I_p
    b_1 = tau - 2 * xi.I_p * sin * cos * s.theta_dot * s.alpha_dot + mll * sin * s.alpha_dot**2 - xi.d_r * s.theta_dot
    b_2 = xi.I_p * sin * cos * s.theta_dot**2 - xi.m_p * xi.g * xi.l_c * sin - xi.d_p * s.alpha_dot
    det = M_11 * M_22 - M_12**2
    return (M_22 * b_1 - M_12 * b_2) / det, (M_11 * b_2 - M_12 * b_1) / det


@dataclass(frozen=True, eq=False)
class _Qube(Env):
    """What both tasks share; the observation is the error state (θ, α − π wrapped, θ̇, α̇)."""

    domain: DomainDistribution = NU
    effects: Effects = EFFECTS

    dt = 0.002
    optional = FRICTION
    max_reward = 1.0
    actions = (Signal("V", "V", -VOLTS, VOLTS),)
    lqr_weights = ((0.1, 10.0, 0.1, 0.03), (1.0,))  # slower than the reward asks: the delay forgives no haste

    def params(self, domain: Mapping[str, Any]) -> QubeParams:
        """ξ by the paper's symbols; the delay belongs to the effects."""
        rows = {**NU, **FRICTION}
        return QubeParams(**{rows[name].symbol: v for name, v in domain.items() if name != "action_delay"})

    def equilibrium(self, xi: QubeParams) -> QubeState:
        """Upright, centred, at rest."""
        del xi
        zero = jnp.zeros(())
        return QubeState(zero, jnp.full((), jnp.pi), zero, zero)

    def observe(self, state: QubeState, xi: QubeParams) -> tuple[Scalar, ...]:
        """The error state; only the pendulum's angle is wrapped."""
        del xi
        return state.theta, wrap(state.alpha - jnp.pi), state.theta_dot, state.alpha_dot

    def at(self, observation: tuple[Scalar, ...], xi: QubeParams) -> QubeState:
        """The state of an error state."""
        del xi
        theta, error, theta_dot, alpha_dot = observation
        return QubeState(theta, error + jnp.pi, theta_dot, alpha_dot)

    def reward(self, state: QubeState, action: tuple[Scalar, ...], xi: QubeParams) -> Scalar:
        """eq_rewfcn_QQ: 1 upright, centred and still."""
        return exponentiated_cost(self.observe(state, xi), action, Q, R, -1.0)

    def step(self, state: QubeState, action: tuple[Scalar, ...], xi: QubeParams) -> QubeState:
        """One symplectic Euler step of eq_EoM_QQ."""
        s = state
        a = accelerations(s, motor_torque(s.theta_dot, action[0], xi), xi)
        q, v = symplectic_euler((s.theta, s.alpha), (s.theta_dot, s.alpha_dot), a, self.dt)
        return QubeState(*q, *v)


def _signals(arm: float, tilt: float, speed: float) -> tuple[Signal, ...]:
    return (
        Signal("theta", "rad", -arm, arm),
        Signal("alpha_error", "rad", -tilt, tilt),
        Signal("theta_dot", "rad/s", -speed, speed),
        Signal("alpha_dot", "rad/s", -speed, speed),
    )


@dataclass(frozen=True, eq=False)
class Qube(_Qube):
    """Keep the pendulum upright and the arm centred, with one motor voltage."""

    name = "qube"
    controller = "lqr"
    max_steps = 2500
    observations = _signals(MAX_ARM, MAX_TILT, 2 * np.pi)

    def start(self, key: Key[Array, ""], xi: QubeParams) -> QubeState:
        """Near upright, near the centre, slow: the Cart-Pole's angles, and ±2° of the arm."""
        del xi
        unit = jax.random.uniform(key, (4,), minval=-1.0, maxval=1.0)
        theta, tilt, theta_dot, alpha_dot = (float(s) * unit[i] for i, s in enumerate(np.deg2rad([2, 8, 5, 5])))
        return QubeState(theta, jnp.pi + tilt, theta_dot, alpha_dot)

    def danger(self, state: QubeState, xi: QubeParams) -> tuple[Scalar, ...]:
        """The arm turns by up to 2 rad, or the pendulum tilts by up to 15°."""
        del xi
        return jnp.abs(state.theta) / MAX_ARM, jnp.abs(wrap(state.alpha - jnp.pi)) / MAX_TILT


@dataclass(frozen=True, eq=False)
class QubeSwingUp(_Qube):
    """Swing the hanging pendulum up and keep it there.

    The reward is that of balancing. Hanging still it is exp(−π²) ≈ 5e-5 and so nearly flat for a learner, but it is
    positive, has its only maximum upright, and exceeds a half from about 45° on.
    """

    name = "qube-swing-up"
    controller = "energy"
    max_steps = 4000
    observations = _signals(MAX_ARM_SWING_UP, np.pi, 8 * np.pi)

    def start(self, key: Key[Array, ""], xi: QubeParams) -> QubeState:
        """Hanging down at rest."""
        del key, xi
        zero = jnp.zeros(())
        return QubeState(zero, zero, zero, zero)

    def danger(self, state: QubeState, xi: QubeParams) -> tuple[Scalar, ...]:
        """Only where the arm's cable ends."""
        del xi
        return (jnp.abs(state.theta) / MAX_ARM_SWING_UP,)
