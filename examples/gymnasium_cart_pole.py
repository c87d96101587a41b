"""Gymnasium's CartPole with masses and a length that nobody knows exactly: checked, trained, certified and swept.

It needs Gymnasium: pip install 'spota[gym]'. From the command line the platform is `gymnasium_cart_pole.py:carts`.
"""

import jax
import numpy as np

import spota

# 1. What is known only roughly, with units.
NU = spota.DomainDistribution(
    pole_mass=spota.Parameter(spota.Uniform(0.05, 0.5), "kg", "mass of the pole", sign="positive"),
    pole_length=spota.Parameter(spota.Uniform(0.3, 1.0), "m", "half the pole's length", sign="positive"),
    cart_mass=spota.Parameter(spota.Uniform(0.5, 2.0), "kg", "mass of the cart", sign="positive"),
)
OBSERVATIONS = (
    spota.Signal("x", "m", -2.4, 2.4),
    spota.Signal("x_dot", "m/s", -3.0, 3.0),
    spota.Signal("angle", "rad", -0.21, 0.21),
    spota.Signal("angle_dot", "rad/s", -3.0, 3.0),
)


# 2. How it reaches the environment: CartPole keeps two more numbers that follow from these.
def apply(env, xi) -> None:
    """Set ξ, and what CartPole computes from it when it is made."""
    cart = env.unwrapped
    cart.masspole, cart.length, cart.masscart = xi["pole_mass"], xi["pole_length"], xi["cart_mass"]
    cart.total_mass = xi["pole_mass"] + xi["cart_mass"]
    cart.polemass_length = xi["pole_mass"] * xi["pole_length"]


def start(env, seeds) -> np.ndarray:
    """Every cart's start from its own seed; the observations, one row a cart."""
    env.state = np.stack([np.random.default_rng(int(s)).uniform(-0.05, 0.05, 4) for s in seeds], axis=1)
    return env.state.T


def place(env, signals) -> None:
    """Where a recording was: for `spota applies` and `spota fit`."""
    env.state = np.stack([signals[name] for name in ("x", "x_dot", "angle", "angle_dot")])


# 3. The platform: CartPole is registered as a vector environment of arrays, which is some fifty times faster.
carts = spota.gymnasium(
    "CartPole-v1",
    domain=NU,
    apply=apply,
    start=start,
    place=place,
    reward=(0.0, 1.0),
    observations=OBSERVATIONS,
    dt=0.02,
    vector=True,
)

SMALL = {"n_c": 10, "n_r": 2, "n_G": 10, "n_J": 5, "performance_domains": 500, "max_iterations": 1, "looks": 1}
SMALL |= {"effort_references": 0, "hidden": (8,)}
SHORT = {"iterations": 12, "rollouts": 5, "minibatches": 10, "evaluate_every": 4}


def main() -> None:
    """Check, train, and look at what the return depends on."""
    print(spota.check(carts))
    result = spota.train(carts, beta=100.0, settings=SMALL, candidate=SHORT, reference=SHORT | {"iterations": 4})
    print(result.certificate)
    domains = NU.grid("pole_mass", [0.05, 0.2, 0.5])
    keys = jax.random.split(jax.random.key(1), (3, 20))
    for mass, returns in zip([0.05, 0.2, 0.5], spota.returns(carts, result.policy, domains, keys).returns, strict=True):
        print(f"a pole of {mass:g} kg: {float(returns.mean()):.0f} of 500")


if __name__ == "__main__":
    main()
