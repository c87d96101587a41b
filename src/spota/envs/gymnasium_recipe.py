"""How an environment of Gymnasium is made, and how ξ reaches it: all that another process needs to know of it."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from spota.envs.gymnasium_spaces import Decoder
from spota.sim.checks import users_line
from spota.text import suggest

Way = Literal["apply", "options", "constructor", "nothing"]
"""How ξ reaches an environment: the user's function before every reset, `reset(options={"domain": ξ})`, arguments of
the constructor with a new environment per domain, or not at all, because all of ξ is in the effects."""
Ending = Literal["failure", "goal"]
WORDS: dict[Way, str] = {
    "apply": "apply(env, xi) sets them before every reset",
    "options": 'reset(options={"domain": xi}) takes them, as the environment declares',
    "constructor": "they are arguments of the constructor, and every domain has an environment of its own",
    "nothing": "all of them belong to the effects",
}
Xi = dict[str, float]
"""One domain by name, as plain numbers."""


def package() -> Any:
    """Gymnasium, if it is installed."""
    try:
        return importlib.import_module("gymnasium")
    except ImportError as error:
        raise ValueError(
            "spota.gymnasium needs the package gymnasium, which is not installed; type: pip install 'spota[gym]'"
        ) from error


@dataclass(frozen=True)
class Recipe:
    """How to make, start and read one environment, or one vector environment."""

    name: str
    source: str | Callable[..., Any]
    arguments: Mapping[str, Any]
    parameters: tuple[str, ...]
    """The names of ξ that belong to the environment, and not to the effects."""
    way: Way
    apply: Callable[[Any, Any], Any] | None
    decode: Decoder
    channels: int
    """How many signals are observed."""
    ending: Ending
    max_steps: int
    floor: float
    """What every step after a failure is charged: the lowest reward, if it is below zero."""
    reuse: bool

    def make(self, xi: Xi) -> Any:
        """An environment; with ξ in its constructor if that is the way."""
        own = {name: xi[name] for name in self.parameters} if self.way == "constructor" else {}
        return construct(self.source, {**self.arguments, **own})

    def begin(self, env: Any, xi: Xi, seed: int) -> np.ndarray:
        """Let ξ reach the environment, then reset it: the first observation."""
        own = {name: xi[name] for name in self.parameters}
        if self.way == "apply" and self.apply is not None:
            self.apply(env, MappingProxyType(own))
        observation, _ = env.reset(seed=seed, options={"domain": own} if self.way == "options" else None)
        return np.asarray(observation, float)

    @property
    def keeps(self) -> bool:
        """Whether environments are used again for other domains."""
        return self.reuse and self.way != "constructor"


def construct(source: str | Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """An environment without a time limit of its own: spota's rollouts end it."""
    if callable(source):
        return source(**arguments)
    return package().make(source, max_episode_steps=-1, disable_env_checker=True, **arguments)


def way_of(
    source: str | Callable[..., Any], names: tuple[str, ...], apply: Callable[..., Any] | None, probe: Any, called: str
) -> Way:
    """How ξ will reach the environment; the first way that is possible, or an error that says what to type."""
    if not names:
        return "nothing"
    if apply is not None:
        return "apply"
    declared = getattr(probe.unwrapped, "domain_parameters", None)
    if declared is not None:
        for name in names:
            if name not in declared:
                raise ValueError(f"{called} declares no domain parameter {name!r}; {suggest(name, declared)}")
        return "options"
    taken = constructor_arguments(source)
    if set(names) <= set(taken):
        return "constructor"
    missing = [name for name in names if name not in taken]
    raise ValueError(
        f"{', '.join(missing)} cannot reach {called}: its constructor takes {', '.join(taken) or 'nothing'}, and it "
        "declares no domain_parameters. Write apply=lambda env, xi: …, which is called before every reset, e.g. "
        f'apply=spota.envs.gymnasium.set_attributes("{missing[0]}").'
    )


def constructor_arguments(source: str | Callable[..., Any]) -> tuple[str, ...]:
    """The names that the environment's own constructor takes."""
    if isinstance(source, str):
        entry = package().spec(source).entry_point
        source = package().envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    try:
        found = inspect.signature(source).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ()
    return tuple(p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


def raised(doing: str, error: BaseException) -> str:
    """What an environment raised, where, and in which line of its author's."""
    return f"{doing} it raised {type(error).__name__}: {error}".rstrip(": .") + users_line(error)
