"""Environments of Gymnasium as platforms: `spota.gymnasium("Pendulum-v1", domain=…, apply=…, reward=(-16.3, 0))`.

Gymnasium has no word for ξ: an environment ignores what it does not know, silently. So the way that ξ takes is chosen
once, said (`env.way`), and `spota check` verifies that every parameter arrives.
"""

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, UInt32

from spota.envs import gymnasium_pictures
from spota.envs.gymnasium_machines import Loop, Place, Vector, open_vector
from spota.envs.gymnasium_processes import Crew, processes_that_pay
from spota.envs.gymnasium_recipe import WORDS, Ending, Recipe, construct, package, way_of
from spota.envs.gymnasium_spaces import action_signals, decoder_of, observation_signals
from spota.envs.gymnasium_stale import stale_after
from spota.sim.checks import users_line
from spota.sim.domain import DomainDistribution
from spota.sim.effects import Effects
from spota.sim.env import Signal
from spota.sim.host import Draw, HostDomains, HostEnv, Machines
from spota.sim.watchdog import turn_of
from spota.text import suggest

GLANCE = 200
"""Steps of random actions from which ranges of unbounded observations are proposed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GymnasiumEnv(HostEnv):
    """A platform whose physics are an environment of Gymnasium; `spota.gymnasium` makes one."""

    name: str
    dt: float
    max_steps: int
    max_reward: float
    min_reward: float
    observations: tuple[Signal, ...]
    actions: tuple[Signal, ...]
    recipe: Recipe
    vector: bool
    start: Callable[[Any, Any], Any] | None
    processes: int | None
    time_limit: float  # type: ignore[misc]
    place: Place | None = None

    goes_on = False  # an environment that has terminated may begin anew by itself

    @functools.cached_property
    def workers(self) -> int:
        """How many processes run machines side by side: as was said, or as pays."""
        if self.processes is not None:
            return self.processes
        return processes_that_pay(self.recipe, self.domain, self.time_limit)

    @property
    def patience(self) -> float | None:
        """Processes are asked for each machine; here, the watchdog looks."""
        return None if not self.vector and self.workers > 1 else self.time_limit

    @property
    def way(self) -> str:
        """How ξ reaches the environment, in words."""
        return WORDS[self.recipe.way]

    def open(self, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]) -> Machines:
        """One environment per domain; those that are idle are used again unless `reuse=False`."""
        columns = {name: np.asarray(column, float) for name, column in domains.items()}
        if not self.vector and self.workers > 1 and seeds.size > 1:
            return self.crew.open(_each(columns, seeds.size), seeds.tolist())
        return self._here(columns, seeds)

    @property
    def lacks(self) -> str | None:
        """A function that places an environment, unless there is one."""
        words = "spota.gymnasium(…, place=lambda env, signals: …), which sets the environment's state"
        return words if self.place is None else None

    def open_at(self, domains: HostDomains, observation: Float[np.ndarray, "d n"]) -> Machines:
        """One environment per domain, where these signals were observed; all of them in this process."""
        assert self.place is not None
        seeds, names = np.zeros(observation.shape[1], np.uint32), [s.name for s in self.observations]
        machines = self._here({name: np.asarray(column, float) for name, column in domains.items()}, seeds)
        machines.place(self.place, names, observation)
        return machines

    def _here(self, columns: dict[str, np.ndarray], seeds: UInt32[np.ndarray, "n"]) -> Vector | Loop:
        if self.vector:
            return open_vector(self.recipe, self.start, columns, seeds)
        return Loop(self.recipe, _each(columns, seeds.size), seeds.tolist(), self.idle, turn_of)

    def pictured(
        self, domains: HostDomains, seeds: UInt32[np.ndarray, "n"]
    ) -> contextlib.AbstractContextManager[tuple[Machines, Draw]]:
        """The same machines with `render_mode="rgb_array"`, and what draws the first of them."""
        return gymnasium_pictures.pictured(self, domains, seeds)

    def stale(self, domain: Mapping[str, float]) -> list[str]:
        """What an environment still has from before, after ξ was applied to it: one sentence each."""
        return [] if self.vector else stale_after(self.recipe, dict(domain))

    @functools.cached_property
    def idle(self) -> list[Any]:
        """Environments that nobody uses now."""
        return []

    @functools.cached_property
    def crew(self) -> Crew:
        """The processes, started when they are needed first."""
        return Crew(self.recipe, self.workers, self.time_limit)


def _each(columns: Mapping[str, np.ndarray], n: int) -> list[dict[str, float]]:
    """Domain by domain."""
    return [{name: float(column[i]) for name, column in columns.items()} for i in range(n)]


def gymnasium(
    env: str | Callable[..., Any],
    *,
    domain: DomainDistribution,
    reward: tuple[float, float],
    apply: Callable[[Any, Any], Any] | None = None,
    observations: Sequence[Signal] | None = None,
    actions: Sequence[Signal] | None = None,
    dt: float | None = None,
    max_steps: int | None = None,
    ending: Ending = "failure",
    effects: Effects | None = None,
    name: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    vector: bool = False,
    start: Callable[[Any, Any], Any] | None = None,
    place: Place | None = None,
    reuse: bool = True,
    processes: int | None = None,
    time_limit: float = 60.0,
) -> GymnasiumEnv:
    """An environment of Gymnasium as a platform, to train, assess, sweep and explain on.

        pendulum = spota.gymnasium(
            "Pendulum-v1",
            domain=spota.DomainDistribution(m=spota.Parameter(spota.Uniform(0.7, 1.3), "kg")),
            apply=set_attributes("m"),
            reward=(-16.3, 0.0),
        )

    ξ reaches it by `apply`; or, if the environment has `domain_parameters` with the names, by `reset(options={"domain":
    {…}})`; or as arguments of its constructor. What the effects use (a delay, an offset) is not given to it.

    Args:
        env: An id, or a class or function that returns an environment; with `vector`, one that takes `num_envs`.
        domain: The table of distributions.
        reward: The lowest and the highest reward of a step; the bounds of a certificate rest on them.
        apply: apply(env, xi) before every reset; `xi` has a number per name, of a vector environment an array.
        observations: A `Signal` for each; needed where the space has no finite bounds.
        actions: A `Signal` for each; Discrete(2) is one channel, above zero the second action, Discrete(k) has k.
        dt: Seconds of a step; by default the environment's attribute `dt`.
        max_steps: Steps of an episode; by default the registered time limit.
        ending: What `terminated` means: a failure, charged the lowest reward if that is negative, or a success.
        effects: Noise, offset, delay and dead band between policy and environment.
        name: What the platform is called; by default the id.
        arguments: Further arguments of the constructor.
        vector: Run one vector environment of arrays instead of a loop: the id's own, or what `env` makes.
        start: start(env, seeds) → observations: sets the start states of a vector environment after its reset.
        place: place(env, signals): sets the state to where signals, by name, were observed: numbers, of a vector
            environment arrays; only `applies` and `fit` need it, which begin where recordings were.
        reuse: Use an environment again for other domains; False makes a new one for every episode.
        processes: How many run machines side by side; by default one per core if a step takes over a millisecond.
        time_limit: Seconds after which a step counts as hanging.
    """
    called = name or (env if isinstance(env, str) else getattr(env, "__name__", type(env).__name__))
    _check_numbers(called, reward, dt, max_steps, processes, time_limit)
    effects, low, high = effects or Effects(), float(reward[0]), float(reward[1])
    told = {"source": _vector_source(env, called, max_steps) if vector else env, "arguments": dict(arguments or {})}
    told |= {"parameters": tuple(p for p in domain if p not in effects.parameters), "apply": apply, "ending": ending}
    told |= {"name": called, "max_steps": max_steps, "floor": min(low, 0.0), "reuse": reuse}
    recipe, facts = _examined(env, told, vector, observations, actions, dt)
    kind = {"vector": vector, "start": start, "processes": processes, "time_limit": time_limit, "place": place}
    return GymnasiumEnv(domain, effects, **facts, min_reward=low, max_reward=high, recipe=recipe, **kind)


def _examined(
    env: str | Callable[..., Any],
    told: Mapping[str, Any],
    vector: bool,
    observations: Sequence[Signal] | None,
    actions: Sequence[Signal] | None,
    dt: float | None,
) -> tuple[Recipe, dict[str, Any]]:
    """The recipe from what was told and what one environment shows, and the facts of the platform."""
    called, source = told["name"], told["source"]
    with _looked_at(source, told["arguments"], vector, called) as (probe, seen_space, action_space):
        sensors = observation_signals(seen_space, observations, called, None if vector else _glance(probe, seen_space))
        steps = told["max_steps"] or _max_steps(env, probe, called)
        way = way_of(source, told["parameters"], told["apply"], probe, called)
        recipe = Recipe(
            **{**told, "max_steps": steps}, way=way, decode=decoder_of(action_space, called), channels=len(sensors)
        )
        facts = {"name": called, "dt": dt or _dt(probe, called), "max_steps": steps, "observations": sensors}
        return recipe, facts | {"actions": action_signals(action_space, actions, called)}


@dataclass(frozen=True)
class set_attributes:  # noqa: N801, it is called like a function
    """An `apply` that sets attributes of the innermost environment: `set_attributes("m", pole_mass="masspole")`.

    A name that the environment lacks is refused, where Python would make a new attribute that nobody reads. Quantities
    that were computed from an attribute before do not follow it; `spota check` finds those of environments in Python.
    """

    names: Mapping[str, str]

    def __init__(self, *same: str, **others: str):
        """Parameters that are called like the attribute, and others as parameter="attribute"."""
        object.__setattr__(self, "names", {**dict(zip(same, same, strict=True)), **others})

    def __call__(self, env: Any, xi: Mapping[str, Any]) -> None:
        """Set them."""
        inner = env.unwrapped
        for parameter, attribute in self.names.items():
            if not hasattr(inner, attribute):
                numbers = [n for n, v in vars(inner).items() if isinstance(v, int | float) and not n.startswith("_")]
                raise ValueError(
                    f"{type(inner).__name__} has no attribute {attribute!r}; {suggest(attribute, numbers)}"
                )
            setattr(inner, attribute, xi[parameter])


def _vector_source(env: str | Callable[..., Any], called: str, max_steps: int | None) -> Callable[..., Any]:
    """What makes the vector environment; its own time limit never comes, so that nothing resets by itself."""
    if callable(env):
        return env
    spec = package().spec(env)
    if spec.vector_entry_point is None:
        raise ValueError(f"{called} has no vector environment of arrays; leave out vector=True.")
    limit = max_steps or spec.max_episode_steps
    own = {} if limit is None else {"max_episode_steps": limit + 1}
    return functools.partial(package().make_vec, env, vectorization_mode="vector_entry_point", **own)


@contextlib.contextmanager
def _looked_at(
    source: str | Callable[..., Any], arguments: Mapping[str, Any], vector: bool, called: str
) -> Iterator[tuple[Any, Any, Any]]:
    """One environment to look at, and the spaces of one machine."""
    package()
    try:
        probe = construct(source, {**arguments, "num_envs": 2} if vector else arguments)
    except ImportError as error:
        raise ValueError(
            f"{called} needs the package {error.name}, which is not installed; type: pip install {error.name}"
        ) from error
    except Exception as error:
        raise ValueError(f"{called} cannot be made: {type(error).__name__}: {error}{users_line(error)}.") from error
    spaces = [f"{'single_' if vector else ''}{kind}_space" for kind in ("observation", "action")]
    if not all(hasattr(probe, space) for space in spaces):
        raise ValueError(
            f"{called} makes {type(probe).__name__}, which has no {' and '.join(spaces)}; give an id, or a function "
            f"that returns {'a gymnasium.vector.VectorEnv' if vector else 'a gymnasium.Env'}."
        )
    try:
        yield probe, *(getattr(probe, space) for space in spaces)
    finally:
        probe.close()


def _glance(probe: Any, space: Any) -> np.ndarray | None:
    """What is observed in a moment of random actions; only an error needs it, where the space has no bounds."""
    if type(space).__name__ != "Box" or np.isfinite([space.low, space.high]).all():
        return None
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = [probe.reset(seed=0)[0]]
        probe.action_space.seed(0)
        for _ in range(GLANCE):
            observation, _, terminated, *_ = probe.step(probe.action_space.sample())
            seen.append(probe.reset()[0] if terminated else observation)
        return np.asarray(seen, float)


def _dt(probe: Any, called: str) -> float:
    """The environment's own time step."""
    dt = getattr(probe.unwrapped, "dt", None)
    if isinstance(dt, int | float) and dt > 0:
        return float(dt)
    frames = getattr(probe, "metadata", {}).get("render_fps")
    guess = f"{1 / frames:g}, if its {frames:g} pictures a second are its steps" if frames else "0.02"
    raise ValueError(f"{called} does not say how long a step is; write dt={guess}.")


def _max_steps(env: str | Callable[..., Any], probe: Any, called: str) -> int:
    """The registered time limit, or that of a wrapper."""
    spec = package().spec(env) if isinstance(env, str) else getattr(probe, "spec", None)
    limit = getattr(spec, "max_episode_steps", None)
    if not isinstance(limit, int) or limit < 1:
        raise ValueError(f"{called} has no time limit; say how many steps an episode has: max_steps=500.")
    return limit


def _check_numbers(
    called: str,
    reward: tuple[float, float],
    dt: float | None,
    max_steps: int | None,
    processes: int | None,
    time_limit: float,
) -> None:
    low, high = reward
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"{called}: reward={reward}: give the lowest and the highest reward of a step as finite numbers, the lower "
            "one first; the bounds of a certificate rest on them."
        )
    for name, value in {"dt": dt, "max_steps": max_steps, "processes": processes, "time_limit": time_limit}.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{called}: {name}={value}: must be positive and finite.")
