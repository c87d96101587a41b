"""A policy of your own: state feedback for the Cart-Pole, as any function may be. It is run beside spota's own LQR.

The first axis of what a policy sees and does is the signal; any number of rollouts stand side by side behind it.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import spota

VOLTS = 8.0  # the end of the actuator's range, which an action of 1 stands for


def feedback(observation: Float[Array, "4 *n"]) -> Float[Array, "1 *n"]:
    """Push the cart towards where the pole falls, and slowly back to the middle."""
    x, alpha, x_dot, alpha_dot = observation
    volts = 2.0 * x - 40.0 * alpha + 15.0 * x_dot - 3.0 * alpha_dot
    return jnp.clip(volts / VOLTS, -1.0, 1.0)[None]  # one row for each actuator


def main() -> None:
    """Print what both earn on the same 50 random machines."""
    env = spota.make("cart-pole")
    domains = env.domain.sample(jax.random.key(0), 50)
    keys = jax.random.split(jax.random.key(1), (50, 1))
    for name, policy in {"feedback": feedback, "lqr": spota.find("lqr", env)}.items():
        outcome = spota.returns(env, policy, domains, keys)
        print(f"{name}: {outcome.returns.mean():.0f} of {env.max_return:.0f}, {outcome.survived.mean():.0%} survived")


if __name__ == "__main__":
    main()
