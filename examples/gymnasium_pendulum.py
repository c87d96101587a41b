"""Gymnasium's InvertedPendulum, a model of MuJoCo, with random masses, friction and motor: to a certificate.

spota check examples/gymnasium_pendulum.py:pendulum
spota train examples/gymnasium_pendulum.py:pendulum --preset quick --out runs/pendulum
"""

import functools

import gymnasium
import jax
import mujoco
import numpy as np

import spota
from spota import Parameter, Signal, Uniform

CART, POLE = 1, 2
NU = spota.DomainDistribution(
    cart_mass=Parameter(Uniform(0.7, 1.3), "-", "times the cart's mass", sign="positive"),
    pole_mass=Parameter(Uniform(0.5, 2.0), "-", "times the pole's mass", sign="positive"),
    damping=Parameter(Uniform(0.5, 3.0), "-", "times the joints' damping", sign="positive"),
    gear=Parameter(Uniform(0.7, 1.3), "-", "times the motor's gear", sign="positive"),
)


@functools.cache
def nominal() -> dict[str, np.ndarray]:
    """What the model has when nobody has changed it; every domain begins from it, so that nothing compounds."""
    model = gymnasium.make("InvertedPendulum-v5").unwrapped.model  # type: ignore[attr-defined]
    names = ("body_mass", "body_inertia", "dof_damping", "actuator_gear")
    return {name: np.array(getattr(model, name)) for name in names}


def apply(env, xi) -> None:
    """Write ξ into the model: inertia follows mass, and what MuJoCo derives is set anew."""
    model, data, was = env.unwrapped.model, env.unwrapped.data, nominal()
    for body, scale in ((CART, xi["cart_mass"]), (POLE, xi["pole_mass"])):
        model.body_mass[body] = scale * was["body_mass"][body]
        model.body_inertia[body] = scale * was["body_inertia"][body]
    model.dof_damping[:] = xi["damping"] * was["dof_damping"]
    model.actuator_gear[:] = xi["gear"] * was["actuator_gear"]
    mujoco.mj_setConst(model, data)  # type: ignore[attr-defined]


pendulum = spota.gymnasium(
    "InvertedPendulum-v5",
    domain=NU,
    apply=apply,
    reward=(0.0, 1.0),
    observations=(
        Signal("x", "m", -1.0, 1.0),
        Signal("angle", "rad", -0.2, 0.2),
        Signal("x_dot", "m/s", -3.0, 3.0),
        Signal("angle_dot", "rad/s", -3.0, 3.0),
    ),
    max_steps=200,
    name="inverted-pendulum",
)


def main() -> None:
    """Whether it can be relied on, and how long a policy that does nothing lasts."""
    print(spota.check(pendulum))
    domains, keys = NU.sample(jax.random.key(0), 10), jax.random.split(jax.random.key(1), (10, 1))
    found = spota.returns(pendulum, lambda seen: 0 * seen[:1], domains, keys)
    print(f"without a command: {float(found.returns.mean()):.0f} of {pendulum.max_return:g} steps")


if __name__ == "__main__":
    main()
