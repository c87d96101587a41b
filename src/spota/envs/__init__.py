"""The platforms, by name."""

import dataclasses
from functools import cache

from spota.envs.ball_balancer import BallBalancer
from spota.envs.cart_pole import CartPole, CartPoleSwingUp
from spota.envs.catapult import Catapult
from spota.envs.qube import Qube, QubeSwingUp
from spota.sim.effects import ActionDelay
from spota.sim.env import Env
from spota.text import suggest

PLATFORMS: dict[str, type[Env]] = {
    env.name: env for env in (BallBalancer, CartPole, CartPoleSwingUp, Qube, QubeSwingUp, Catapult)
}


@cache
def make(name: str, *, noise: bool = True, longest_delay: int | None = None) -> Env:
    """The platform of that name: `make("cart-pole")`, `make("cart-pole", noise=False)`."""
    if name not in PLATFORMS:
        raise ValueError(f"There is no platform {name!r}; {suggest(name, PLATFORMS)}")
    env = PLATFORMS[name]()  # type: ignore[call-arg]  # every platform has defaults
    if not noise:
        env = env.wearing(noise=None)
    if longest_delay is not None:
        env = env.wearing(delay=ActionDelay(env.effects.delay.parameter, longest_delay))
    return dataclasses.replace(env)
