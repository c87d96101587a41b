"""Environments of Gymnasium that draw themselves: made once more, with render_mode="rgb_array"."""

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt32

from spota.envs.gymnasium_recipe import construct
from spota.envs.off_screen import off_screen
from spota.sim.host import Draw, HostDomains, Machines, NoPictureError

if TYPE_CHECKING:
    from spota.envs.gymnasium import GymnasiumEnv

MODE = "rgb_array"
Apply = Callable[[Any, Any], Any]


@contextlib.contextmanager
def pictured(
    env: "GymnasiumEnv", domains: HostDomains, seeds: UInt32[np.ndarray, "n"]
) -> Iterator[tuple[Machines, Draw]]:
    """The machines, in this process and with environments of their own, and what draws the first."""
    with off_screen(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about modes that it does not know; what it draws will tell
        machines, draw = _opened(env, env.recipe.apply, domains, seeds)
        if env.vector and env.recipe.apply is not None and not _works(draw):
            machines.close()
            machines, draw = _opened(env, _WithNumbers(env.recipe.apply), domains, seeds)
        try:
            yield machines, draw
        finally:
            machines.close()


def _opened(
    env: "GymnasiumEnv", apply: Apply | None, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]
) -> tuple[Machines, Draw]:
    made: list[Any] = []

    def make(**arguments: Any) -> Any:
        mode = {"render_mode": MODE} if _takes_mode(env.recipe.source) else {}
        made.append(construct(env.recipe.source, {**arguments, **mode}))
        return made[-1]

    recipe = replace(env.recipe, source=make, apply=apply, reuse=False)
    machines = replace(env, recipe=recipe, processes=1).open(domains, seeds)
    return machines, lambda: _picture(made[0], env.vector)


@dataclass(frozen=True)
class _WithNumbers:
    """Gives numbers to the one machine of a vector environment: some, as CartPole, cannot draw what is an array."""

    apply: Apply

    def __call__(self, env: Any, xi: Mapping[str, Any]) -> None:
        self.apply(env, {name: float(column[0]) for name, column in xi.items()})


def _works(draw: Draw) -> bool:
    try:
        draw()
    except Exception:  # whatever it is, the second attempt says it again
        return False
    return True


def _takes_mode(source: str | Callable[..., Any]) -> bool:
    """Whether one can ask for pictures; ids take any argument."""
    if isinstance(source, str):
        return True
    try:
        found = inspect.signature(source).parameters
    except (TypeError, ValueError):
        return False
    return "render_mode" in found or any(p.kind is p.VAR_KEYWORD for p in found.values())


def _picture(env: Any, vector: bool) -> np.ndarray:
    mode = getattr(env, "render_mode", None)
    if mode != MODE:
        raise NoPictureError(
            f"its environment has render_mode={mode!r} and not {MODE!r}; let the function that makes it take "
            "render_mode=None and pass it on"
        )
    found = env.render()
    return np.asarray(found[0] if vector else found)
