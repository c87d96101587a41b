"""A policy of your own that remembers: state feedback for the Cart-Pole behind a low-pass filter. It is run beside the
same feedback without one: what is smoother is also later, and here that costs more than the noise.

`start(n)` is what n rollouts remember before their first step, and `step` gets it back in each of them. Rollouts are
the last axis of everything.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import spota

VOLTS = 8.0  # the end of the actuator's range, which an action of 1 stands for


class Filtered(eqx.Module):
    """Feedback of a low-pass of what the sensors show."""

    gains: tuple[float, ...] = (2.0, -40.0, 15.0, -3.0)
    share: float = 0.2  # of the newest observation in the filter: it remembers about five steps

    def start(self, n: int) -> Float[Array, "4 n"]:
        """Zeros."""
        return jnp.zeros((4, n))

    def step(
        self, smooth: Float[Array, "4 n"], observation: Float[Array, "4 n"]
    ) -> tuple[Float[Array, "4 n"], Float[Array, "1 n"]]:
        """The filter a step later, and the action."""
        smooth = smooth + self.share * (observation - smooth)
        volts = jnp.asarray(self.gains) @ smooth
        return smooth, jnp.clip(volts / VOLTS, -1.0, 1.0)[None]


def main() -> None:
    """Print what both earn on the same 50 random machines."""
    env = spota.make("cart-pole")
    domains = env.domain.sample(jax.random.key(0), 50)
    keys = jax.random.split(jax.random.key(1), (50, 1))
    for name, policy in {"filtered": Filtered(), "not filtered": Filtered(share=1.0)}.items():
        outcome = spota.returns(env, policy, domains, keys)
        print(f"{name}: {outcome.returns.mean():.0f} of {env.max_return:.0f}, {outcome.survived.mean():.0%} survived")


if __name__ == "__main__":
    main()
