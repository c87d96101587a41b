"""Gymnasium environments as machines side by side: a loop over single ones, or one vector environment of arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from spota.envs.gymnasium_recipe import Recipe, Xi, raised
from spota.sim.host import MachineError

Reward = Float[np.ndarray, "n"]
Flags = Bool[np.ndarray, "n"]
Place = Callable[[Any, Mapping[str, Any]], None]
"""(environment, observed signals by name) → nothing: sets the environment's state."""


class Episodes:
    """What n episodes have come to: who is over, who diverged, what a failure costs."""

    def __init__(self, recipe: Recipe, first: Float[np.ndarray, "n d"]):
        """All at their first observation."""
        self.recipe, self.steps = recipe, 0
        self.observation = np.array(first.T, float)
        self.over = np.zeros(first.shape[0], bool)
        """Reached their goal: they stand still and earn nothing more."""
        self.diverged: Flags = np.logical_not(np.isfinite(self.observation).all(axis=0))
        """Observed or earned what is no number; such a machine has failed."""

    def take(
        self, at: Flags, observation: Float[np.ndarray, "n d"], reward: Reward, terminated: Flags
    ) -> tuple[Reward, Flags]:
        """Enter one step of the machines `at`; the others earn nothing. What every machine earned, and who failed.

        With rewards below zero the end would be a relief, since nothing is earned after it. So a failure is charged the
        lowest reward for every step that is left: no failed episode earns more than one that lives.
        """
        self.steps += 1
        if at.all() and not terminated.any() and np.isfinite(observation).all() and np.isfinite(reward).all():
            self.observation = observation.T  # nothing happened, as in most steps
            return reward, terminated
        self.observation = self.observation.copy()
        broken = at & ~(np.isfinite(observation).all(axis=1) & np.isfinite(reward))
        seen = at & ~broken
        self.observation[:, seen] = observation.T[:, seen]
        self.diverged |= broken
        ended = at & terminated
        failed = broken | (ended if self.recipe.ending == "failure" else np.zeros_like(ended))
        self.over |= ended & ~failed
        earned = np.where(seen, np.where(seen, reward, 0.0), np.where(broken, self.recipe.floor, 0.0))
        left = self.recipe.max_steps - self.steps
        return earned + np.where(failed, left * self.recipe.floor, 0.0), failed


class _Observed:
    """Machines whose episodes say what is observed."""

    _episodes: Episodes

    def observe(self) -> Float[np.ndarray, "d n"]:
        """The observations; of a machine that is over, its last one."""
        return self._episodes.observation

    @property
    def diverged(self) -> Flags:
        """Which machines have come to what is no number."""
        return self._episodes.diverged


class Loop(_Observed):
    """Single environments, stepped one after the other."""

    def __init__(
        self,
        recipe: Recipe,
        domains: Sequence[Xi],
        seeds: Sequence[int],
        idle: list[Any],
        notice: Callable[[int], None] = lambda _: None,
    ):
        """Take idle environments and make those that are missing; `notice` hears whose turn it is."""
        self._recipe, self._domains, self._idle, self._notice = recipe, domains, idle, notice
        self._envs: list[Any] = []
        try:
            first = [self._begin(i, seed) for i, seed in enumerate(seeds)]
        except BaseException:
            self.close()
            raise
        self._episodes = Episodes(recipe, np.stack(first))

    def step(self, command: Float[np.ndarray, "a n"], active: Flags) -> tuple[Reward, Flags]:
        """One step of every machine that is active and not over."""
        at = active & ~self._episodes.over
        actions = self._recipe.decode(command)
        observation = self._episodes.observation.T.copy()
        reward, terminated = np.zeros(at.size), np.zeros(at.size, bool)
        for i in np.flatnonzero(at).tolist():
            observation[i], reward[i], terminated[i] = self._step_one(i, actions[i])
        return self._episodes.take(at, observation, reward, terminated)

    def place(self, how: Place, names: Sequence[str], observation: Float[np.ndarray, "d n"]) -> None:
        """Put every environment where these signals were observed."""
        for i, env in enumerate(self._envs):
            self._notice(i)
            try:
                how(env, dict(zip(names, observation[:, i].tolist(), strict=True)))
            except Exception as error:
                raise MachineError(i, raised("when it was placed", error)) from error

    def close(self) -> None:
        """Give the environments back, or close those that are not used again."""
        for env in self._envs:
            if self._recipe.keeps:
                self._idle.append(env)
            else:
                env.close()
        self._envs = []

    def _begin(self, i: int, seed: int) -> np.ndarray:
        self._notice(i)
        xi = self._domains[i]
        try:
            self._envs.append(self._idle.pop() if self._idle and self._recipe.keeps else self._recipe.make(xi))
            first = self._recipe.begin(self._envs[-1], xi, int(seed))
        except MachineError:  # it hangs
            raise
        except Exception as error:
            raise MachineError(i, raised("at its reset", error)) from error
        if first.shape != (self._recipe.channels,):
            raise ValueError(
                f"reset of {self._recipe.name} returned an observation of shape {first.shape}, but its space says "
                f"({self._recipe.channels},); let both say the same."
            )
        return first

    def _step_one(self, i: int, action: Any) -> tuple[np.ndarray, float, bool]:
        self._notice(i)
        recipe, t = self._recipe, self._episodes.steps + 1
        try:
            observation, reward, terminated, truncated, _ = self._envs[i].step(action)
            observation = np.asarray(observation, float)
        except MachineError:
            raise
        except Exception as error:
            raise MachineError(i, raised(f"in step {t}", error)) from error
        if truncated and t < recipe.max_steps:
            raise early_end(recipe, t)
        return observation, float(reward), bool(terminated)


class Vector(_Observed):
    """One vector environment of arrays; ξ and starts are arrays, too."""

    def __init__(self, recipe: Recipe, env: Any, first: Float[np.ndarray, "n d"]):
        """At the first observation."""
        self._recipe, self._env = recipe, env
        self._episodes = Episodes(recipe, first)

    def step(self, command: Float[np.ndarray, "a n"], active: Flags) -> tuple[Reward, Flags]:
        """One step of all; machines that are inactive move along, and nobody looks at them."""
        t, at = self._episodes.steps + 1, active & ~self._episodes.over
        try:
            observation, reward, terminated, truncated, _ = self._env.step(self._recipe.decode(command))
        except MachineError:
            raise
        except Exception as error:
            raise ValueError(raised(f"in step {t}", error)) from error
        if (np.asarray(truncated) & at).any() and t < self._recipe.max_steps:
            raise early_end(self._recipe, t)
        return self._episodes.take(at, *_arrays(observation, reward, terminated))

    def place(self, how: Place, names: Sequence[str], observation: Float[np.ndarray, "d n"]) -> None:
        """Put all machines where these signals were observed."""
        how(self._env, dict(zip(names, observation, strict=True)))

    def close(self) -> None:
        """Close the environment; its size belongs to this batch."""
        self._env.close()


def _arrays(observation: Any, reward: Any, terminated: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(observation), np.array(reward), np.array(terminated, bool)  # of our own: the environment may write


def open_vector(
    recipe: Recipe, start: Callable[[Any, Any], Any] | None, domains: dict[str, np.ndarray], seeds: np.ndarray
) -> Vector:
    """A vector environment with a machine per domain, each started from its own seed."""
    env = recipe.source(num_envs=seeds.size, **recipe.arguments)  # type: ignore[operator]
    try:
        first = _begin_vector(recipe, env, start, {name: domains[name] for name in recipe.parameters}, seeds)
    except BaseException:
        env.close()
        raise
    return Vector(recipe, env, first)


def _begin_vector(
    recipe: Recipe, env: Any, start: Callable[[Any, Any], Any] | None, xi: dict[str, np.ndarray], seeds: np.ndarray
) -> Float[np.ndarray, "n d"]:
    if recipe.apply is not None:
        recipe.apply(env, xi)
    try:
        first, _ = env.reset(seed=int(seeds[0]) if start is not None else [int(seed) for seed in seeds])
    except Exception as error:
        raise ValueError(
            f"{recipe.name} does not take a list of seeds, one for each machine ({error}); an episode must depend on "
            "its own seed, not on its neighbours'. Write start=lambda env, seeds: …, which sets the start states after "
            "a reset, each from its own seed, and returns the observations, one row a machine."
        ) from error
    first = np.asarray(first if start is None else start(env, seeds), float)
    if first.shape != (seeds.size, recipe.channels):
        raise ValueError(
            f"{recipe.name} starts with observations of shape {first.shape}; {(seeds.size, recipe.channels)} was "
            "expected, one row a machine."
        )
    return first


def early_end(recipe: Recipe, step: int) -> ValueError:
    """An environment with a time limit of its own, shorter than ours."""
    return ValueError(
        f"{recipe.name} was truncated at step {step}, but its episodes have max_steps={recipe.max_steps}; take the "
        f"time limit out of the environment, or write max_steps={step}."
    )
