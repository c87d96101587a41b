"""Studies of `applies` and `fit` where the truth is known: machines of a table, recorded while a chirp moves them.

Every machine is simulated for ten seconds from rest, with the noise of its sensors, and its recording is given to
`applies` and to the fit as a real one is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jaxtyping import Float, Int

from spota.fit.coordinates import Plain
from spota.fit.covering import MACHINES, applies
from spota.fit.fitting import Allowed, Settings, allowed, divided
from spota.fit.noise import sensors
from spota.fit.prediction import simulate
from spota.fit.prior import prior
from spota.fit.recording import Recording
from spota.runs.directory import Run
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


@dataclass(frozen=True)
class Refusals:
    """How often `applies` refuses machines of one kind."""

    kind: str
    machines: int
    refused: int

    def __str__(self) -> str:
        """In figures."""
        return f"{self.refused} of {self.machines}"


def refusals(
    key: jax.Array, env: Env, hanging: tuple[float, ...], parameter: str, n: int, of: int = MACHINES
) -> Iterator[Refusals]:
    """Machines of the table, and machines whose parameter is three standard deviations off: how many are refused."""
    k_table, k_far, k_noise, k_applies = jax.random.split(key, 4)
    law: Any = env.domain[parameter].marginal
    far = env.domain.sample(k_far, n)
    groups: Mapping[str, Domains] = {
        "of the table": env.domain.sample(k_table, n),
        f"{parameter} +3 std": {**far, parameter: jnp.full(n, law.center + 3 * law.std)},
        f"{parameter} −3 std": {**far, parameter: jnp.full(n, law.center - 3 * law.std)},
    }
    for i, (kind, machines) in enumerate(groups.items()):
        recordings = recorded(jax.random.fold_in(k_noise, i), env, machines, hanging)
        keys = jax.random.split(jax.random.fold_in(k_applies, i), n)
        answers = [applies(k, env, [r], of).answer for k, r in zip(keys, recordings, strict=True)]
        yield Refusals(kind, n, answers.count("not covered"))


@dataclass(frozen=True)
class Ranks:
    """Where the truth stands in the posterior of each parameter, over machines of the table."""

    names: tuple[str, ...]
    ranks: Float[np.ndarray, "p m"]
    """Between 0 and 1; uniform if the posterior tells the truth."""
    spread: Float[np.ndarray, "p"]
    """The posterior's standard deviation over the prior's, on average."""
    r_hat: Float[np.ndarray, "m"]
    divergences: Int[np.ndarray, "m"]

    def to_dict(self) -> dict[str, Any]:
        """By identifiable parameter: coverage of 90 % intervals, and the p-value of uniform ranks; and the sampling."""
        rows = {}
        for j, name in enumerate(self.names):
            inside = float(((self.ranks[j] > 0.05) & (self.ranks[j] < 0.95)).mean())
            uniform = float(scipy.stats.kstest(self.ranks[j], "uniform").pvalue)
            rows[name] = {"spread": float(self.spread[j]), "coverage_90": inside, "uniform_p": uniform}
        known = {name: row for name, row in rows.items() if row["spread"] <= KNOWN}
        good = (self.r_hat <= 1.01) & (self.divergences == 0)
        return {"machines": self.r_hat.size, "well_sampled": int(good.sum()), "parameters": known}


def ranks(key: jax.Array, env: Env, hanging: tuple[float, ...], n: int, settings: Settings | None = None) -> Ranks:
    """Simulation-based calibration of what `spota fit` draws, friction and delays included; one machine at a time."""
    k_machines, k_noise, k_ties = jax.random.split(key, 3)
    settings = settings or Settings()
    env = env.with_domain(prior(env))
    machines = env.domain.sample(k_machines, n)
    spread = {name: float(np.std(np.asarray(column))) for name, column in env.domain.sample(k_ties, 4000).items()}
    found = [
        _fitted(env, r, replace(settings, seed=i)) for i, r in enumerate(recorded(k_noise, env, machines, hanging))
    ]
    names = found[0].problem.coordinates.names
    truth = np.stack([np.asarray(machines[name], np.float64) for name in names])
    ties = np.random.default_rng(np.asarray(jax.random.key_data(k_ties))).uniform(size=truth.shape)
    ranked = [_rank(truth[:, i], one.values, ties[:, i]) for i, one in enumerate(found)]
    deviations = np.mean([one.values.std(axis=1) for one in found], axis=0)
    left = deviations / np.array([spread[name] for name in names])
    sampling = [(one.sampled.r_hat, one.sampled.divergences) for one in found]
    r_hat, divergences = (np.array(column) for column in zip(*sampling, strict=True))
    return Ranks(names, np.stack(ranked, axis=1), left, r_hat, divergences)


def _fitted(env: Env, recording: Recording, settings: Settings) -> Allowed:
    """As `spota fit` does it; for a platform that stays the same, so that it is compiled once."""
    segments, left, _ = divided([recording], env, settings.held_out)
    with TemporaryDirectory() as place, Run(Path(place) / "fit", {}) as run:
        return allowed(env, segments, left, settings, run)


def _rank(
    truth: Float[np.ndarray, "p"], rows: Float[np.ndarray, "p draws"], ties: Float[np.ndarray, "p"]
) -> Float[np.ndarray, "p"]:
    """The share of rows below the truth; among equal ones, such as whole delays, anywhere."""
    equal = np.isclose(rows, truth[:, None], rtol=0, atol=1e-6 * np.abs(truth)[:, None])
    below = (rows < truth[:, None]) & ~equal
    return below.mean(axis=1) + ties * equal.mean(axis=1)
