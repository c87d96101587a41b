"""Studies of `applies` and `fit` where the truth is known: machines of a table, recorded while a chirp moves them.

Every machine is simulated for ten seconds from rest, with the noise of its sensors, and its recording is cut, started
and estimated as a real one is. All of them are estimated side by side, and the machines that others are compared with
are drawn for all together; `spota applies` draws them for each recording.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Float

from spota.fit import coordinates as systems
from spota.fit.coordinates import Plain
from spota.fit.covering import LEVEL, learned, scores, speaking, surprise
from spota.fit.estimate import Estimate, Problem, best_machine, estimate
from spota.fit.noise import Noise, sensors
from spota.fit.prediction import simulate
from spota.fit.recording import Recording
from spota.fit.segments import Segments, cut
from spota.sim.domain import Domains
from spota.sim.env import Env

RATE = 250.0
"""Samples a second of a recording."""
LASTS = 10.0
"""Seconds."""
KNOWN = 0.5
"""A parameter is identifiable if its spread is at most this share of the prior's, on average."""


def chirp(env: Env, seconds: float = LASTS, volts: float = 3.5) -> Float[np.ndarray, "steps a"]:
    """A voltage that swings from 3 Hz down to almost nothing, as on the real machines."""
    t = np.arange(round(seconds / env.dt)) * env.dt
    phase = 2 * np.pi * (3.0 * t - 3.0 * t**2 / (2 * seconds))
    return np.repeat((volts * np.sin(phase))[:, None], len(env.actions), axis=1)


def recorded(key: jax.Array, env: Env, machines: Domains, hanging: tuple[float, ...]) -> list[Recording]:
    """One recording of each machine, from rest at that observation."""
    names = tuple(machines)
    every = round(1 / (RATE * env.dt))
    acting = np.repeat(chirp(env)[::every], every, axis=0)  # a command lasts from sample to sample
    longest = env.effects.delay.longest
    commands = jnp.asarray(np.concatenate([np.zeros((longest, acting.shape[1])), acting]), jnp.float32)
    start = jnp.asarray(hanging, jnp.float32)
    values = jnp.stack([jnp.asarray(machines[name], jnp.float32) for name in names])
    system = Plain(names, {})
    run = jax.jit(jax.vmap(lambda z: simulate(env, system.domain(z), start, commands, longest), -1, -1))
    positions = np.asarray(run(values), np.float64)[every - 1 :: every]
    noise = sensors(env).draw(np.random.default_rng(np.asarray(jax.random.key_data(key))), positions.shape)
    time = (np.arange(positions.shape[0]) + 1) / RATE
    told = acting[every::every][: time.size]
    told = np.concatenate([told, told[-1:]])[: time.size]
    seen = np.unwrap(positions, axis=0) + noise
    return [Recording(f"machine {i}", str(i), time - time[0], seen[..., i], told) for i in range(positions.shape[-1])]


def segments_of(recordings: list[Recording], env: Env) -> Segments:
    """Those of all machines, one machine after the other; each has as many."""
    return cut(recordings, env, env.effects.delay.longest)


@dataclass(frozen=True)
class Refusals:
    """How often `applies` would refuse machines of one kind."""

    kind: str
    machines: int
    refused: int

    @property
    def share(self) -> float:
        """Of the machines."""
        return self.refused / self.machines


def refusals(
    key: jax.Array, env: Env, hanging: tuple[float, ...], parameter: str, n: int, of: int = 199
) -> list[Refusals]:
    """Machines of the table, and machines whose parameter is three standard deviations off: how many are refused."""
    k_null, k_table, k_far, k_noise = jax.random.split(key, 4)
    system = systems.linear(env.domain, env)
    law: Any = env.domain[parameter].marginal
    far = env.domain.sample(k_far, n)
    groups: Mapping[str, Domains] = {
        "compared with": env.domain.sample(k_null, of),
        "of the table": env.domain.sample(k_table, n),
        f"{parameter} +3 std": {**far, parameter: jnp.full(n, law.center + 3 * law.std)},
        f"{parameter} −3 std": {**far, parameter: jnp.full(n, law.center - 3 * law.std)},
    }
    found: dict[str, Estimate] = {}
    noise: Noise | None = None
    for i, (name, machines) in enumerate(groups.items()):
        cutting = segments_of(recorded(jax.random.fold_in(k_noise, i), env, machines, hanging), env)
        m = next(iter(machines.values())).shape[0]
        problem = Problem(env, system, cutting, sensors(env), machines=m)
        wide, own = best_machine(problem)
        noise = noise or own
        believed = estimate(replace(problem, noise=noise), 8, np.clip(wide.z, -3, 3), wide.start)
        found[name] = believed
    share = learned(system, found["compared with"])
    counts = speaking(share)
    largest = {
        name: surprise(env, system, share, scores(system, one, share))[counts].max(axis=0)
        for name, one in found.items()
    }
    critical = np.quantile(largest.pop("compared with"), 1 - LEVEL, method="higher")
    return [Refusals(name, x.size, int((x > critical).sum())) for name, x in largest.items()]


@dataclass(frozen=True)
class Ranks:
    """Where the truth stands in the posterior of each parameter, over machines of the table."""

    names: tuple[str, ...]
    ranks: Float[np.ndarray, "p m"]
    """Between 0 and 1; uniform if the posterior tells the truth."""
    spread: Float[np.ndarray, "p"]
    """The posterior's standard deviation over the prior's, on average."""

    def to_dict(self) -> dict[str, Any]:
        """By identifiable parameter: coverage of 90 % intervals, and the p-value of uniform ranks."""
        rows = {}
        for j, name in enumerate(self.names):
            inside = float(((self.ranks[j] > 0.05) & (self.ranks[j] < 0.95)).mean())
            uniform = float(scipy.stats.kstest(self.ranks[j], "uniform").pvalue)
            rows[name] = {"spread": float(self.spread[j]), "coverage_90": inside, "uniform_p": uniform}
        return {name: row for name, row in rows.items() if row["spread"] <= KNOWN}


def ranks(key: jax.Array, env: Env, hanging: tuple[float, ...], n: int) -> Ranks:
    """Simulation-based calibration, with posteriors by Laplace around the best machine; delays are known."""
    k_machines, k_noise = jax.random.split(key)
    delay = env.effects.delay.parameter
    pinned = (delay,) if delay in env.domain else ()
    system = systems.scores(env.domain, pinned)
    machines = env.domain.sample(k_machines, n)
    values = np.stack([np.asarray(machines[name], np.float64) for name in system.names])
    truth = np.stack([system.z_of(values[:, i]) for i in range(n)], axis=1)
    cutting = segments_of(recorded(k_noise, env, machines, hanging), env)
    problem = Problem(env, system, cutting, sensors(env), machines=n, pinned=pinned)
    found: Estimate = estimate(problem, 10, truth)
    free = problem.free
    spread = np.sqrt(np.stack([np.diag(c[np.ix_(free, free)]) for c in found.covariance()], axis=1))
    names = tuple(name for name, f in zip(system.names, free, strict=True) if f)
    return Ranks(names, scipy.special.ndtr((truth - found.z)[free] / spread), spread.mean(axis=1))
