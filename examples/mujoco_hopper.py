"""Gymnasium's Hopper with random masses, friction, damping and motor gains: a model with contacts.

spota train examples/mujoco_hopper.py:env --algo ppo --out runs/hopper
spota assess runs/hopper --env examples/mujoco_hopper.py:env --preset quick --out runs/hopper-certificate
"""

from pathlib import Path

import gymnasium
import jax
import mujoco
import numpy as np

import spota
from spota import Parameter, Signal, Uniform

MODEL = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "hopper.xml"
HEALTHY_HEIGHT, HEALTHY_TILT = 0.7, 0.3  # [m, rad]
FASTEST = 1.5  # [m/s] that is paid for
JOINTS = ("thigh_joint", "leg_joint", "foot_joint")


def hopper():
    """The model, with an integrator that is four times as fast."""
    spec = mujoco.MjSpec.from_file(str(MODEL))  # type: ignore[attr-defined]
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # type: ignore[attr-defined]
    return spec


def observe(sim, xi):
    """Everything but how far it has come."""
    del xi
    return [*sim.qpos.T[1:], *np.clip(sim.qvel, -10, 10).T]


def reward(sim, command, xi):
    """One for standing, the forward speed, and little for small commands."""
    del xi
    return 1 + np.clip(sim.qvel[:, 0], -0.5, FASTEST) + 0.1 * (1 - (command**2).mean(axis=0))


def failed(sim, xi):
    """Too low, or tilted too far."""
    del xi
    return (sim.qpos[:, 1] < HEALTHY_HEIGHT) | (np.abs(sim.qpos[:, 2]) > HEALTHY_TILT)


def start(rng, qpos, qvel):
    """Upright, nearly still."""
    return qpos + rng.uniform(-5e-3, 5e-3, qpos.size), qvel + rng.uniform(-5e-3, 5e-3, qvel.size)


ANGLES = [Signal(name, "rad", -1.0, 1.0) for name in ("tilt", "thigh", "leg", "foot")]
SPEEDS = [Signal(f"{name}_speed", "1/s", -5.0, 5.0) for name in ("forward", "up", "tilt", "thigh", "leg", "foot")]
around_one = Uniform(0.8, 1.2)
env = spota.mujoco(
    hopper(),
    domain=spota.DomainDistribution(
        torso_mass=Parameter(around_one, "-", "torso mass, of the model's", sign="positive"),
        leg_mass=Parameter(around_one, "-", "mass of thigh and leg, of the model's", sign="positive"),
        foot_friction=Parameter(Uniform(1.2, 2.4), "-", "sliding friction of the foot", nominal=2.0, sign="positive"),
        damping=Parameter(Uniform(0.5, 1.5), "N m s", "damping of all joints", sign="positive"),
        gain=Parameter(around_one, "-", "gain of all motors, of the model's", sign="positive"),
    ),
    targets={
        "torso_mass": "body/torso.mass *",
        "leg_mass": ["body/thigh.mass *", "body/leg.mass *"],
        "foot_friction": "geom/foot_geom.friction[0]",
        "damping": [f"joint/{name}.damping" for name in JOINTS],
        "gain": [f"actuator/{i}.gear[0] *" for i in range(len(JOINTS))],
    },
    observations=[Signal("height", "m", 0.0, 1.5), *ANGLES, *SPEEDS],
    actions=[Signal(name.removesuffix("_joint"), "-", -1.0, 1.0) for name in JOINTS],
    observe=observe,
    reward=reward,
    failed=failed,
    start=start,
    dt=0.008,
    max_steps=500,
    max_reward=1.1 + FASTEST,
    name="hopper",
)


def main() -> None:
    """What a policy that does nothing earns before it falls."""
    domains, keys = env.domain.sample(jax.random.key(0), 20), jax.random.split(jax.random.key(1), (20, 1))
    found = spota.returns(env, lambda seen: 0 * seen[:3], domains, keys)
    print(f"{env.name}: {float(found.returns.mean()):.1f} of {env.max_return:g}, {found.survived.mean():.0%} survived")


if __name__ == "__main__":
    main()
