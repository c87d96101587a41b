"""spota's own Cart-Pole as a MuJoCo model: the same physics, so that both can be compared.

spota rollout examples/mujoco_cart_pole.py:env --policy examples/mujoco_cart_pole.py:regulator
spota train examples/mujoco_cart_pole.py:env --preset quick --out runs/mujoco
"""

from pathlib import Path

import jax
import numpy as np

import spota
from spota.envs.cart_pole import EFFECTS, MAX_TILT, NU, RAIL_MARGIN, CartPole, Q, R
from spota.policies import lqr

START = np.array([0.02, np.deg2rad(8), 0.02, np.deg2rad(5)])


def state(sim):
    """Error state: position, tilt from upright within ±π, and their velocities."""
    x, alpha = sim.qpos.T
    return np.stack([x, np.mod(alpha, 2 * np.pi) - np.pi, *sim.qvel.T])


def reward(sim, command, xi):
    """One, less what the state and the voltage cost."""
    del xi
    return np.exp(-(np.array(Q) @ state(sim) ** 2) - R[0] * command[0] ** 2)


def failed(sim, xi):
    """The cart is at the end of its rail, or the pole has fallen."""
    x, tilt, _, _ = state(sim)
    return (np.abs(x) > xi["rail_length"] / 2 - RAIL_MARGIN) | (np.abs(tilt) > MAX_TILT)


def start(rng, qpos, qvel):
    """Near upright, near the centre, slow."""
    x, tilt, x_dot, tilt_dot = START * rng.uniform(-1, 1, 4)
    return qpos + [x, np.pi + tilt], qvel + [x_dot, tilt_dot]


def place(sim, signals, xi):
    """Where a recording was: for `spota applies` and `spota fit`."""
    del xi
    sim.qpos[:] = np.stack([signals["x"], signals["alpha_error"] + np.pi], axis=1)
    sim.qvel[:] = np.stack([signals["x_dot"], signals["alpha_dot"]], axis=1)


def drive(xi):
    """Force per volt, without the motor's efficiency."""
    return (
        xi["gear_efficiency"] * xi["gear_ratio"] * xi["torque_constant"] / xi["motor_resistance"] / xi["pinion_radius"]
    )


def back_emf(xi):
    """What the motor's speed takes from the voltage."""
    return xi["gear_ratio"] * xi["torque_constant"] / xi["pinion_radius"]


env = spota.mujoco(
    Path(__file__).with_name("cart_pole.xml"),
    name="mujoco-cart-pole",
    domain=NU,
    effects=EFFECTS,
    targets={
        "cart_mass": "body/cart.mass",
        "pole_mass": "body/pole.mass",
        "cart_damping": "joint/slide.damping",
        "pole_damping": "joint/hinge.damping",
    },
    derived={
        "opt.gravity[2]": lambda xi: -xi["gravity"],
        "body/pole.ipos[2]": lambda xi: -xi["pole_length"],
        "body/pole.inertia[1]": lambda xi: xi["pole_mass"] * xi["pole_length"] ** 2 / 3,
        "joint/slide.armature": lambda xi: (
            xi["gear_efficiency"] * xi["gear_ratio"] ** 2 * xi["motor_inertia"] / xi["pinion_radius"] ** 2
        ),
        "actuator/motor.gainprm[0]": lambda xi: drive(xi) * xi["motor_efficiency"],
        "actuator/motor.biasprm[2]": lambda xi: -drive(xi) * back_emf(xi),
    },
    observations=CartPole.observations,
    actions=CartPole.actions,
    observe=lambda sim, _: state(sim),
    reward=reward,
    failed=failed,
    start=start,
    place=place,
    dt=CartPole.dt,
    max_steps=CartPole.max_steps,
    max_reward=1.0,
)
regulator = lqr(spota.make("cart-pole"))


def main() -> None:
    """LQR on both, on the same domains."""
    domains, keys = NU.sample(jax.random.key(0), 100), jax.random.split(jax.random.key(1), (100, 1))
    for platform in (env, spota.make("cart-pole")):
        found = spota.returns(platform, regulator, domains, keys)
        print(f"{platform.name}: {float(found.returns.mean()):.1f} of {platform.max_return:g}")


if __name__ == "__main__":
    main()
