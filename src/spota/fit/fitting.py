"""A fit in a directory: from recordings to a table of the machines that could have made them.

with Run(directory, settings) as run:
    found = fit(env, recordings, settings, run)

Every finished block is a file, so that a fit that was killed continues where it was. What is left in the directory:
domain.json (the table: whole rows, with their correlations), fit.json (what was learned, and how good it is).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from spota.files.blocks import SECONDS as COST
from spota.fit import coordinates as systems
from spota.fit import holding_out
from spota.fit.coordinates import Scores
from spota.fit.estimate import Estimate, Problem, estimate, settled
from spota.fit.excitation import still
from spota.fit.holding_out import HeldOut, Machines
from spota.fit.learned import Combination, Learned, combinations, learned
from spota.fit.noise import Noise, seen, sensors
from spota.fit.posterior import DRAWS, WARM_UP, Sampled, delay_weights, sample
from spota.fit.prior import prior
from spota.fit.recording import Recording
from spota.fit.segments import Segments, cut, movement
from spota.runs.directory import Run
from spota.sim import table_file
from spota.sim.domain import DomainDistribution, Empirical
from spota.sim.env import Platform
from spota.sim.replaying import check_start

MOST = 80
"""Segments that a fit looks at, evenly chosen."""
EXPLAINED = 0.7
"""The share of a signal's movement below which a fit is in doubt."""


@dataclass(frozen=True)
class Settings:
    """What decides a fit, beside the recordings."""

    widen: tuple[str, ...] = ()
    """Where the prior is wider than the table: `pole_length=0.05:0.3`, `pole_length=3`, or `2` for all."""
    held_out: float = 0.4
    """The share of the recordings that is not fitted, but predicted; of a single one, its last part."""
    prior_share: float = 0.0
    """The share of rows that come from the prior: for who does not trust the fit alone."""
    warm_up: int = WARM_UP
    draws: int = DRAWS
    """Of each of four chains."""
    seed: int = 0

    def __post_init__(self):
        """Refuse what is no share, and too few draws."""
        if not 0 < self.held_out < 0.9:
            raise ValueError(f"held_out = {self.held_out:g}: hold out a share between 0 and 0.9, e.g. 0.4.")
        if not 0 <= self.prior_share < 1:
            raise ValueError(f"prior_share = {self.prior_share:g}: give a share between 0 and 1, e.g. 0.1.")
        if self.warm_up < 10 or self.draws < 10:
            raise ValueError("warm_up and draws: at least 10 of each chain.")


@dataclass(frozen=True)
class Fit:
    """A table that covers the machine, and what speaks for it."""

    env: Platform
    """The platform with that table."""
    explained: tuple[float, ...]
    """Of the movement of every signal the share that the best machine explains."""
    noise: Noise
    tempering: dict[str, float]
    """Log scores of held-out segments, a sample each, by what is assumed about errors."""
    sampled: Sampled
    learned: tuple[Learned, ...]
    combinations: tuple[Combination, ...]
    held_out: HeldOut
    fitted: tuple[str, ...]
    """Names of the recordings that were fitted; the others were held out."""
    seconds: float

    @property
    def warnings(self) -> list[str]:
        """What someone should know before using the table."""
        found = [f"Sampling: {words}" for words in self.sampled.complaints]
        ends = {row.name: systems.possible(self.env.domain, self.env, row.name) for row in self.learned}
        edges = [(r.name, r.at_edge) for r in self.learned if r.identified and r.held_back(ends[r.name])]
        found += [
            f"{name} is held back by the {end} end of the prior: the machine may lie beyond it; widen it, e.g. --widen "
            f"{name}=3."
            for name, end in edges
        ]
        poor = [
            f"{100 * max(s, 0):.0f} % of {n}" for (n, _), s in zip(self.held_out.signals, self.explained, strict=True)
        ]
        if min(self.explained) < EXPLAINED:
            found.append(
                f"The best machine explains {', '.join(poor)}: is it a {self.env.name}, and are all signs right? Ask "
                "spota applies, which looks for a flipped one."
            )
        return [*found, *self.held_out.warnings]


@dataclass(frozen=True)
class Allowed:
    """The machines that segments allow."""

    problem: Problem
    best: Estimate
    """For every delay."""
    tempering: dict[str, float]
    sampled: Sampled

    @property
    def values(self) -> Float[np.ndarray, "p draws"]:
        """Parameters of the drawn machines, in the order of the coordinates."""
        system = self.problem.coordinates
        return np.asarray(jax.vmap(system.values)(jnp.asarray(self.sampled.z, jnp.float32)), np.float64).T


@dataclass(frozen=True)
class Divided:
    """Segments to fit, and others, with a lead, to predict."""

    fitted: Segments
    again: Segments
    """Of the recordings that are fitted, with a lead: how well can they be predicted?"""
    left: Segments
    """Of what is held out."""
    names: tuple[str, ...]
    """Of the recordings that are fitted."""


def fit(env: Platform, recordings: Sequence[Recording], settings: Settings, run: Run) -> Fit:
    """Learn what the recordings tell about the machine."""
    check_start(env)
    before = prior(env, settings.widen)
    wide = env.with_domain(before)
    parts = divided(recordings, wide, settings.held_out)
    if (nothing := still(wide, parts.fitted)) is not None:
        raise ValueError(f"Not enough excitation to learn from: {nothing}.")
    found = allowed(wide, parts.fitted, parts.left, settings, run)
    key, names, after = jax.random.key(settings.seed), found.problem.coordinates.names, found.values
    table = _table(key, before, names, after, recordings, settings)
    one = wide.with_domain(table)
    drawn = before.sample(jax.random.fold_in(key, 1), 4000)
    units, ends = {n: before[n].unit for n in names}, {n: before[n].marginal.support for n in names}
    rows = learned(names, units, np.stack([np.asarray(drawn[n]) for n in names]), after, ends)
    seconds = sum(float(run.block(name, dict)[COST]) for name in ("estimate", "tempering", "again", "posterior"))
    explained = tuple(1 - (found.problem.noise.sigma / movement(parts.fitted)) ** 2)
    kept = (explained, found.problem.noise, found.tempering, found.sampled, rows, _together(found))
    result = Fit(one, *kept, _checked(found, parts), parts.names, seconds)
    table_file.save(one, run.directory / table_file.KEPT, f"fitted to {len(recordings)} recordings of one machine")
    run.write_json("fit.json", describe(result, recordings, settings))
    return result


def allowed(env: Platform, segments: Segments, left: Segments, settings: Settings, run: Run) -> Allowed:
    """The machines of the platform's table that segments allow; `left` ones say what to assume about errors."""
    problem, delays = _problem(env, segments)
    found, noise = _estimated(problem, delays, run)
    tempering, noise = _tempered(replace(problem, noise=noise), found, left, run)
    problem = replace(problem, noise=noise, machines=delays.size, segments=_for_each(segments, delays.size))
    best = _again(problem, found, run)
    weights = delay_weights(problem, best, np.full(delays.size, 1 / delays.size))
    sampled = _sampled(jax.random.key(settings.seed), problem, best, weights, settings, run)
    return Allowed(problem, best, tempering, sampled)


def _together(found: Allowed) -> tuple[Combination, ...]:
    free = found.problem.free
    names = tuple(n for n, f in zip(found.problem.coordinates.names, free, strict=True) if f)
    return combinations(names, found.sampled.z[:, free])


def _checked(found: Allowed, parts: Divided) -> HeldOut:
    problem, middle = found.problem, found.best.z[:, int(np.argmin(found.best.cost))]
    assert isinstance(problem.coordinates, Scores)
    machines = Machines(problem.env, problem.coordinates, middle, found.sampled, problem.noise)
    return holding_out.check(machines, parts.again, parts.left)


def describe(found: Fit, recordings: Sequence[Recording], settings: Settings) -> dict[str, Any]:
    """For fit.json."""
    s = found.sampled
    return {
        "format": 1,
        "env": found.env.name,
        "recordings": [{"name": r.name, "sha256": r.sha256, "fitted": r.name in found.fitted} for r in recordings],
        "settings": vars(settings),
        "noise": {"sigma": found.noise.sigma, "correlation_samples": found.noise.tau},
        "tempering": found.tempering,
        "sampling": {
            "divergences": s.divergences,
            "r_hat": s.r_hat,
            "effective": s.effective,
            "steps": s.steps,
            "agreement": s.agreement,
        },
        "learned": [{**vars(row), "ratio": row.ratio} for row in found.learned],
        "combinations": [{"parts": dict(c.parts), "ratio": c.ratio, "text": str(c)} for c in found.combinations],
        "held_out": found.held_out.to_dict(),
        "warnings": found.warnings,
        "seconds": found.seconds,
    }


def divided(recordings: Sequence[Recording], env: Platform, share: float) -> Divided:
    """Whole recordings are held out if there are several; of a single one, its last part."""
    longest, n = env.effects.delay.longest, len(recordings)
    segments, led = cut(recordings, env, longest), cut(recordings, env, longest, holding_out.LEAD)
    if n > 1:
        out = np.linspace(n - 1, 0, max(1, round(share * n)), endpoint=False).round().astype(int)
        kept, again = ~np.isin(segments.of, out), ~np.isin(led.of, out)
    else:
        first = round((1 - share) * segments.n)
        kept, again = np.arange(segments.n) < first, np.arange(led.n) < first
    if kept.sum() < 3 or again.all():
        raise ValueError(f"{segments.n} segments of half a second are too few to fit some and predict others.")
    names = tuple(recordings[i].name for i in np.unique(segments.of[kept]))
    chosen = [_thinned(np.flatnonzero(x)) for x in (kept, again, ~again)]
    return Divided(segments.chosen(chosen[0]), led.chosen(chosen[1]), led.chosen(chosen[2]), names)


def _thinned(index: np.ndarray) -> np.ndarray:
    return index if index.size <= MOST else index[np.linspace(0, index.size - 1, MOST).round().astype(int)]


def _problem(env: Platform, segments: Segments) -> tuple[Problem, Float[np.ndarray, "m"]]:
    """One machine, and the whole delays that the prior allows."""
    name = env.effects.delay.parameter
    if name not in env.domain:
        return Problem(env, systems.scores(env.domain), segments, sensors(env)), np.zeros(1)
    low, high = env.domain[name].marginal.support
    delays = np.arange(np.ceil(low), np.floor(high) + 1)
    return Problem(env, systems.scores(env.domain, (name,)), segments, sensors(env), pinned=(name,)), delays


def _with_delay(problem: Problem, z: np.ndarray, delays: np.ndarray) -> np.ndarray:
    """The same machine with each delay."""
    many = np.repeat(z, delays.size, axis=1)
    many[~problem.free] = delays
    return many


def _for_each(segments: Segments, machines: int) -> Segments:
    return segments.chosen(np.tile(np.arange(segments.n), machines))


def _estimated(problem: Problem, delays: np.ndarray, run: Run) -> tuple[Estimate, Noise]:
    """The best machine for every delay, and the noise that the best of all leaves.

    Each delay is looked at for itself first: from a wrong one, a machine may be found that is right about nothing.
    """

    def compute() -> dict[str, Any]:
        begun = time.monotonic()
        many = replace(problem, machines=delays.size, segments=_for_each(problem.segments, delays.size))
        found = estimate(replace(many, horizon=0.2), 6, _with_delay(problem, np.zeros((problem.free.size, 1)), delays))
        found = estimate(replace(many, horizon=0.5), 5, found.z, found.start)
        found = estimate(many, 8, found.z, found.start)
        best = int(np.argmin(found.cost))
        noise = _noise(many, found, best)
        start = np.repeat(found.start[..., [best]], delays.size, axis=2)
        found = estimate(replace(many, noise=noise), 4, _with_delay(problem, found.z[:, [best]], delays), start)
        noise = _noise(many, found, int(np.argmin(found.cost)))
        found = estimate(replace(many, noise=noise), 8, found.z, found.start)
        noise = _noise(many, found, int(np.argmin(found.cost)))
        return {**_arrays(found), "sigma": noise.sigma, "tau": noise.tau, COST: time.monotonic() - begun}

    kept = run.block("estimate", compute)
    return _estimate(kept), Noise(kept["sigma"], kept["tau"])


def _noise(many: Problem, found: Estimate, which: int) -> Noise:
    """What one of the machines leaves."""
    left = many.residuals(found.z, found.start)
    own = left.reshape(*left.shape[:2], many.machines, -1)[:, :, which]
    return seen(own, found.start[..., which].size + found.z.shape[0])


def _tempered(problem: Problem, found: Estimate, left: Segments, run: Run) -> tuple[dict[str, float], Noise]:
    """What held-out segments say about the errors: independent, or as lasting as they look; the better is used."""

    def compute() -> dict[str, Any]:
        begun = time.monotonic()
        names, log = holding_out.log_scores(problem, found, left)
        return {"names": np.array(names), "scores": np.array(log), COST: time.monotonic() - begun}

    kept = run.block("tempering", compute)
    log = dict(zip(map(str, kept["names"]), map(float, kept["scores"]), strict=True))
    best = max(log, key=lambda name: log[name])
    return log, holding_out.choices(problem.noise)[best]


def _again(problem: Problem, found: Estimate, run: Run) -> Estimate:
    """The best machines with the noise that was chosen."""

    def compute() -> dict[str, Any]:
        begun = time.monotonic()
        return {**_arrays(settled(problem, found.z, found.start)), COST: time.monotonic() - begun}

    return _estimate(run.block("again", compute))


def _sampled(
    key: jax.Array, problem: Problem, best: Estimate, weights: np.ndarray, settings: Settings, run: Run
) -> Sampled:
    def compute() -> dict[str, Any]:
        begun = time.monotonic()
        drawn = sample(jax.random.fold_in(key, 2), problem, best, weights, settings.warm_up, settings.draws)
        return {**{name: np.asarray(value) for name, value in vars(drawn).items()}, COST: time.monotonic() - begun}

    kept = run.block("posterior", compute)
    numbers = {name: kept[name].item() for name in ("divergences", "r_hat", "effective", "steps", "agreement")}
    return Sampled(kept["z"], kept["scale"], **numbers)


def _table(
    key: jax.Array,
    before: DomainDistribution,
    names: tuple[str, ...],
    after: Float[np.ndarray, "p m"],
    recordings: Sequence[Recording],
    settings: Settings,
) -> DomainDistribution:
    """Whole rows: the fit's, what it says nothing about from the prior, and a share of prior rows if wanted."""
    n = after.shape[1]
    drawn = before.sample(jax.random.fold_in(key, 3), n)
    rows = {name: np.asarray(drawn[name], np.float64).copy() for name in before}
    own = np.arange(n) >= round(settings.prior_share * n)
    for j, name in enumerate(names):
        rows[name][own] = after[j][own]
    table = Empirical({name: column.tolist() for name, column in rows.items()}, before)
    return table.learned_from([r.sha256 for r in recordings])


def _arrays(found: Estimate) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in vars(found).items()}


def _estimate(kept: dict[str, np.ndarray]) -> Estimate:
    return Estimate(**{name: kept[name] for name in ("z", "start", "information", "cost", "gain")})
