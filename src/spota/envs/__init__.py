"""The platforms, by name."""

from functools import cache
from pathlib import Path
from typing import Literal, overload

from spota.envs.ball_balancer import BallBalancer
from spota.envs.cart_pole import CartPole, CartPoleSwingUp
from spota.envs.catapult import Catapult
from spota.envs.qube import Qube, QubeSwingUp
from spota.sim import table_file
from spota.sim.checks import check_env
from spota.sim.effects import ActionDelay
from spota.sim.env import Env, Platform
from spota.sim.objects import is_reference, named
from spota.text import suggest

PLATFORMS: dict[str, type[Env]] = {
    env.name: env for env in (BallBalancer, CartPole, CartPoleSwingUp, Qube, QubeSwingUp, Catapult)
}

Ours = Literal["ball-balancer", "cart-pole", "cart-pole-swing-up", "qube", "qube-swing-up", "catapult"]
"""The names of `PLATFORMS`, all of which are written in jax."""


@overload
def make(
    name: Ours, *, noise: bool = True, longest_delay: int | None = None, domain: str | Path | None = None
) -> Env: ...


@overload
def make(
    name: str, *, noise: bool = True, longest_delay: int | None = None, domain: str | Path | None = None
) -> Platform: ...


def make(
    name: str, *, noise: bool = True, longest_delay: int | None = None, domain: str | Path | None = None
) -> Platform:
    """The platform of that name, `make("cart-pole", noise=False)`, or one of your own, `make("my_robot.py:Robot")`.

    `domain` names another table of distributions: a file (.toml, .json, or rows in an .npz), a fit, or a run that keeps
    one. The same object each time. A name with a colon executes that file or module.
    """
    env = _own(name) if is_reference(name) else _ours(name)
    if domain is not None:
        env = _with_table(env, str(domain), table_file.digest(domain))
    return _with_effects(env, noise, longest_delay)


@cache
def _with_table(env: Platform, source: str, digest: str) -> Platform:
    """The platform with the table of a file, as long as the file is the same."""
    del digest
    return env.with_domain(table_file.read(source, env))


def _own(reference: str) -> Platform:
    """A platform in someone's file, if its methods fit together."""
    wanted = "a platform: a class that extends spota.Env or spota.HostEnv, or an object of one"
    env = named(reference, lambda found: isinstance(found, Platform), wanted)
    check_env(env)
    return env


@cache
def _ours(name: str) -> Env:
    if name not in PLATFORMS:
        raise ValueError(f"There is no platform {name!r}; {suggest(name, PLATFORMS)}")
    return PLATFORMS[name]()  # type: ignore[call-arg]  # every platform has defaults


@cache
def _with_effects(env: Platform, noise: bool, longest_delay: int | None) -> Platform:
    if not noise:
        env = env.with_effects(noise=None)
    if longest_delay is not None:
        env = env.with_effects(delay=ActionDelay(env.effects.delay.parameter, longest_delay))
    return env
