"""Studies of `applies` and `fit` where the truth is known: machines of a table, recorded while a chirp moves them.

Every machine is simulated for ten seconds from rest, with the noise of its sensors, and its recording is given to
`applies` and to the fit as a real one is.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jaxtyping import Float

from spota.fit.coordinates import Plain
from spota.fit.covering import MACHINES, applies
from spota.fit.fitting import Allowed, Settings, allowed, divided
from spota.fit.noise import sensors
from spota.fit.prediction import simulate
from spota.fit.prior import prior
from spota.fit.recording import Recording
from spota.runs.directory import Run
from spota.sim.domain import DomainDistribution, Domains
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
class Asked:
    """What `applies` says about one machine."""

    kind: str
    machine: int
    answer: str
    p_value: float
    cpu_seconds: float


def asked(
    key: jax.Array, env: Env, hanging: tuple[float, ...], parameter: str, n: int, run: Run, of: int = MACHINES
) -> Iterator[Asked]:
    """Machines of the table, and machines whose parameter is three standard deviations off; each is a block."""
    k_table, k_far, k_noise, k_applies = jax.random.split(key, 4)
    law: Any = env.domain[parameter].marginal
    far = env.domain.sample(k_far, n)
    groups: Mapping[str, Domains] = {
        "of the table": env.domain.sample(k_table, n),
        f"{parameter} +3 std": {**far, parameter: jnp.full(n, law.center + 3 * law.std)},
        f"{parameter} −3 std": {**far, parameter: jnp.full(n, law.center - 3 * law.std)},
    }
    for group, (kind, machines) in enumerate(groups.items()):
        recordings = recorded(jax.random.fold_in(k_noise, group), env, machines, hanging)
        keys = jax.random.split(jax.random.fold_in(k_applies, group), n)
        for i, (k, recording) in enumerate(zip(keys, recordings, strict=True)):
            compute = lambda k=k, recording=recording: _answer(k, env, recording, of)  # noqa: E731
            found = run.block(f"applies-{group}/{i:03d}", compute)
            yield Asked(kind, i, str(found["answer"]), float(found["p_value"]), float(found["seconds"]))


def _answer(key: jax.Array, env: Env, recording: Recording, of: int) -> dict[str, Any]:
    begun = time.process_time()
    found = applies(key, env, [recording], of)
    p_value = np.nan if found.p_value is None else found.p_value
    return {"answer": np.array(found.answer), "p_value": p_value, "seconds": time.process_time() - begun}


@dataclass(frozen=True)
class Ranked:
    """Where the truth stands in the posterior of one machine."""

    machine: int
    names: tuple[str, ...]
    ranks: Float[np.ndarray, "p"]
    """Of every parameter, between 0 and 1; uniform over machines if posteriors tell the truth."""
    spread: Float[np.ndarray, "p"]
    """The posterior's standard deviation over the prior's."""
    r_hat: float
    divergences: int
    effective: float
    agreement: float
    cpu_seconds: float

    @property
    def well_sampled(self) -> bool:
        """Whether the chains agree and nothing diverged."""
        return self.r_hat <= 1.01 and self.divergences == 0


def pairs(key: jax.Array, table: DomainDistribution, n: int) -> Domains:
    """Machines of a table whose laws are symmetric, each followed by its mirror image on the other side of every law.

    Where recordings tell little, the truth stands in the posterior almost where it stands in the prior: of a hundred
    machines with large pinions by chance, too many would lie above their intervals, and posteriors seem tilted.
    """
    drawn = table.sample(key, (n + 1) // 2)
    ends = {name: sum(row.marginal.support) for name, row in table.items()}
    return {name: jnp.stack([x, ends[name] - x], axis=1).reshape(-1)[:n] for name, x in drawn.items()}


def ranked(
    key: jax.Array, env: Env, hanging: tuple[float, ...], n: int, run: Run, settings: Settings | None = None
) -> Iterator[Ranked]:
    """Simulation-based calibration of what `spota fit` draws, friction and delays included; each machine is a block."""
    k_machines, k_noise, k_ties = jax.random.split(key, 3)
    settings = settings or Settings()
    env = env.with_domain(prior(env))
    machines = pairs(k_machines, env.domain, n)
    usual = {name: float(np.std(np.asarray(column))) for name, column in env.domain.sample(k_ties, 4000).items()}
    for i, recording in enumerate(recorded(k_noise, env, machines, hanging)):
        truth = {name: float(column[i]) for name, column in machines.items()}
        ties = np.random.default_rng([*np.asarray(jax.random.key_data(k_ties)), i])
        given = (env, recording, truth, usual, ties, replace(settings, seed=i))
        found = run.block(f"fit/{i:03d}", lambda given=given: _rank(*given))
        yield Ranked(
            i, tuple(map(str, found["names"])), found["ranks"], found["spread"], float(found["r_hat"]),
            int(found["divergences"]), float(found["effective"]), float(found["agreement"]), float(found["seconds"]),
        )  # fmt: skip


def calibration(machines: Sequence[Ranked]) -> dict[str, Any]:
    """By parameter: coverage of 90 % intervals, on which side the others lie, and the p-value of uniform ranks.

    The p-value takes machines for independent; pairs make ranks of what is hardly identified more even than that.
    """
    ranks, spread = (np.stack([getattr(one, what) for one in machines]) for what in ("ranks", "spread"))
    rows = {}
    for j, name in enumerate(machines[0].names):
        below, above = float((ranks[:, j] <= 0.05).mean()), float((ranks[:, j] >= 0.95).mean())
        uniform = float(scipy.stats.kstest(ranks[:, j], "uniform").pvalue)
        sides = {"coverage_90": 1 - below - above, "below": below, "above": above}
        rows[name] = {"spread": float(spread[:, j].mean()), **sides, "uniform_p": uniform}
    known = {name: row for name, row in rows.items() if row["spread"] <= KNOWN}
    good = sum(one.well_sampled for one in machines)
    return {"machines": len(machines), "well_sampled": good, "identifiable": known, "together": rows}


def _rank(
    env: Env,
    recording: Recording,
    truth: Mapping[str, float],
    usual: Mapping[str, float],
    ties: np.random.Generator,
    settings: Settings,
) -> dict[str, Any]:
    """The share of rows below the truth; among equal ones, such as whole delays, anywhere."""
    begun = time.process_time()
    found = _fitted(env, recording, settings)
    names, rows, sampled = found.problem.coordinates.names, found.values, found.sampled
    x = np.array([truth[name] for name in names])
    equal = np.isclose(rows, x[:, None], rtol=0, atol=1e-6 * np.abs(x)[:, None])
    below = (rows < x[:, None]) & ~equal
    return {
        "names": np.array(names),
        "ranks": below.mean(axis=1) + ties.uniform(size=x.size) * equal.mean(axis=1),
        "spread": rows.std(axis=1) / np.array([usual[name] for name in names]),
        **{name: getattr(sampled, name) for name in ("r_hat", "divergences", "effective", "agreement")},
        "seconds": time.process_time() - begun,
    }


def _fitted(env: Env, recording: Recording, settings: Settings) -> Allowed:
    """As `spota fit` does it; for a platform that stays the same, so that it is compiled once."""
    parts = divided([recording], env, settings.held_out)
    with TemporaryDirectory() as place, Run(Path(place) / "fit", {}) as run:
        return allowed(env, parts.fitted, parts.left, settings, run)
