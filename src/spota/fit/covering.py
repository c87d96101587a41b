"""Do recordings come from a machine of a table? A check of what the table predicts against what was recorded.

The machine is one unknown ξ in all segments of all recordings. The table says what to expect of it: mean μ and
covariance Σ. The recordings say where it is: mean m and covariance S after both, by Gauss-Newton through the simulator.
If the machine is one of the table, m scatters around μ with the covariance Σ − S, whatever the recordings can tell and
what not. So t_j = (m_j − μ_j) / √(Σ_jj − S_jj) of every parameter is a standard score, and the one that is least likely
for a machine of the table is the test statistic. Its distribution is not assumed: machines are drawn from the table,
simulated with the recorded commands, and estimated in the same way (a parametric bootstrap).

Model error is admitted: how far off, and for how long at a time, the best machine of any kind is, inside the table or
as far outside as the platform's machines go, is taken for noise (`noise.py`), in the estimate as in the simulated
recordings. So a little friction that the simulator lacks refuses no table; a pole of the wrong length, which no machine
of the table can imitate, does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from spota.fit import coordinates as coordinate_systems
from spota.fit.coordinates import Linear, is_drawn, values_of
from spota.fit.estimate import Estimate, Problem, best_machine, estimate, settled
from spota.fit.excitation import still
from spota.fit.noise import Noise, sensors
from spota.fit.recording import Recording, is_rate, measured
from spota.fit.segments import Segments, cut, movement, observation_of, smoothed
from spota.fit.verdict import Coverage, Evidence, Explained
from spota.sim.env import Platform
from spota.sim.replaying import check_start

LEVEL = 0.03
"""The probability with which a machine of the table is refused."""
MACHINES = 199
"""Machines that are drawn from the table, for the distribution of the statistic."""
MOST = 60
"""Segments that are looked at; more of them say the same again."""
LEARNED = 0.1
"""The share of a parameter's variance that recordings must take away before it may speak."""
BESIDE = 0.5
"""And what that share must be beside the largest one: parameters that hardly tell have wild scores."""
FELT = 0.01
"""The share below which the score of a parameter is numerical noise."""
DRAWN = 40_000
"""Scores that are drawn to tell how unlikely one is."""
FLIPPED = 0.9
"""The share of the movement that a machine must explain with a sign turned round, before that is believed."""
HOPELESS = 0.5
"""Below this share no machine near the table moves like that at all."""
SEEN = 0.5
"""The share of its usual spread to which recordings must narrow a parameter before they tell about it."""


def applies(key: jax.Array, env: Platform, recordings: Sequence[Recording], machines: int = MACHINES) -> Coverage:
    """Whether the platform's table covers the machine of these recordings."""
    check_start(env)
    segments = cut(recordings, env, env.effects.delay.longest)
    if segments.n > MOST:
        segments = segments.chosen(np.linspace(0, segments.n - 1, MOST).round().astype(int))
    if (nothing := still(env, segments)) is not None:
        return Coverage.unclear(env.name, recordings, nothing)
    system = coordinate_systems.linear(env.domain, env)
    usual_spreads = {name: _usual_spread(env, name) for name in env.domain}
    problem = Problem(env, coordinate_systems.wider(system, env.domain, env, usual_spreads), segments, sensors(env))
    wide, noise = best_machine(problem)
    explained = _explained(env, segments, noise)
    if max(e.share for e in explained) >= HOPELESS:
        near = dict(zip(problem.coordinates.names, values_of(problem.coordinates, wide.z[:, 0]), strict=True))
        believed = replace(problem, coordinates=system, noise=noise)
        judged = _judged(key, believed, near, wide.start, recordings, explained, machines)
    else:
        judged = Coverage.refused(env.name, recordings, explained, _hopeless(env, explained))
    share = float(np.mean([e.share for e in explained]))
    if judged.answer == "not covered" or share < FLIPPED:  # what is not explained is taken for noise, and says little
        flipped = _flipped(problem, share)
        if flipped is not None:
            return Coverage.refused(env.name, recordings, explained, flipped)
    return judged


def _judged(
    key: jax.Array,
    problem: Problem,
    near: Mapping[str, float],
    start: Float[np.ndarray, "d n m"],
    recordings: Sequence[Recording],
    explained: tuple[Explained, ...],
    machines: int,
) -> Coverage:
    """The test itself; `near` is the best machine of any kind."""
    env, system = problem.env, problem.coordinates
    assert isinstance(system, Linear)
    first = system.z_of(np.array([[near[name]] for name in system.names]))
    found = estimate(problem, 10, np.clip(first, -3.0, 3.0), start)
    simulated, z, begun = _simulated(key, problem, start, machines)
    null = settled(replace(problem, segments=simulated, machines=machines), z, begun)
    share = learned(system, null)
    score, scores_of_null = scores(system, found, share), scores(system, null, share)
    counts = speaking(share)
    both = np.concatenate([score, scores_of_null], axis=1)
    unlikely = surprise(env, system, share, both) * counts[:, None]
    own, largest = unlikely[:, 0], unlikely[:, 1:].max(axis=0)
    p_value = (1 + int((largest >= own.max()).sum())) / (machines + 1)
    critical = float(np.quantile(largest, 1 - LEVEL))
    evidence = _evidence(env, system, near, found, score[:, 0], own, critical)
    bands = _bands(problem.segments, simulated, machines)
    return Coverage.judged(env.name, recordings, explained, evidence, p_value, LEVEL, machines, bands)


def learned(system: Linear, found: Estimate) -> Float[np.ndarray, "p"]:
    """The share of each parameter's variance that such recordings take away, for the median machine."""
    L = np.asarray(system.factor, np.float64)
    before = (L**2).sum(axis=1)[:, None]
    after = np.einsum("ij,mjk,ik->im", L, found.covariance(), L)
    return np.median(np.clip(1 - after / before, 0.0, 1.0), axis=1)


def scores(system: Linear, found: Estimate, share: Float[np.ndarray, "p"]) -> Float[np.ndarray, "p m"]:
    """t of every parameter, of whose variance the recordings take away that share; 0 where they take none."""
    values = np.asarray(jax.vmap(system.values, -1, -1)(jnp.asarray(found.z, jnp.float32)), np.float64)
    off = (values - np.asarray(system.mean, np.float64)[:, None]) / system.spread[:, None]
    return np.where(share[:, None] > FELT, off / np.sqrt(np.maximum(share, FELT))[:, None], 0.0)


def speaking(share: Float[np.ndarray, "p"]) -> Bool[np.ndarray, "p"]:
    """Which parameters may speak against a table."""
    return share > max(LEARNED, BESIDE * float(share.max()))


def surprise(
    env: Platform, system: Linear, share: Float[np.ndarray, "p"], t: Float[np.ndarray, "p m"]
) -> Float[np.ndarray, "p m"]:
    """−log of the probability that |t| of a parameter is as large among machines of the table.

    t is √share of the parameter's own law and √(1 − share) of a normal one: a uniform law ends, and a normal one is
    cut. It must not come from the machines that the statistic is compared with: these would look too usual.
    """
    drawn = env.domain.sample(jax.random.key(0), DRAWN)
    normal = np.random.default_rng(0).standard_normal(DRAWN)
    found = np.zeros_like(t)
    for j, name in enumerate(system.names):
        off = (np.asarray(drawn[name], np.float64) - float(system.mean[j])) / system.spread[j]
        usual = np.sort(np.abs(np.sqrt(share[j]) * off + np.sqrt(1 - share[j]) * normal))
        found[j] = -np.log((1 + DRAWN - np.searchsorted(usual, np.abs(t[j]))) / (DRAWN + 1))
    return found


def _simulated(
    key: jax.Array, problem: Problem, start: Float[np.ndarray, "d n 1"], machines: int
) -> tuple[Segments, Float[np.ndarray, "p m"], Float[np.ndarray, "d n m"]]:
    """The same segments as machines of the table would have done them; these machines; and where they truly began.

    Noise spoils what is measured during a segment and, with what was measured before, its measured beginning.
    """
    env, system, segments = problem.env, problem.coordinates, problem.segments
    assert isinstance(system, Linear)
    drawn = env.domain.sample(key, machines)
    values = np.stack([np.asarray(drawn[name], np.float64) for name in system.names])
    z = system.z_of(values)
    everything = segments.chosen(np.tile(np.arange(segments.n), machines))
    own = replace(problem, segments=everything, machines=machines)
    begun = np.repeat(start, machines, axis=2)
    left = own.residuals(z, begun)
    reach, smoothing = smoothed(env, segments.every)
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    noise = problem.noise.draw(generator, (reach + 1 + left.shape[0], *left.shape[1:]))
    slopes, positions = np.einsum("it,tqn->iqn", smoothing, noise[: 2 * reach + 1])
    measured = begun.reshape(begun.shape[0], -1, order="F") + observation_of(env, positions, slopes)
    seen = everything.positions - left + noise[reach + 1 :]
    return everything.seen(measured.astype(np.float32), seen.astype(np.float32)), z, begun


def _evidence(
    env: Platform,
    system: Linear,
    near: Mapping[str, float],
    found: Estimate,
    score: np.ndarray,
    unlikely: np.ndarray,
    critical: float,
) -> tuple[Evidence, ...]:
    """What is known of every parameter: where it is if the table is hardly believed, and how well it is known."""
    own = np.array([_usual_spread(env, name) for name in system.names]) / system.spread
    information = found.information[..., 0]
    scale = np.asarray(system.factor, np.float64) / system.spread[:, None]
    after = np.linalg.inv(np.linalg.inv(scale).T @ information @ np.linalg.inv(scale) + np.diag(1 / own**2))
    share = 1 - np.clip(np.diag(after) / own**2, 0.0, 1.0)
    shows = np.sqrt(1 - share) <= SEEN
    rows = []
    for j, name in enumerate(system.names):
        low, high = env.domain[name].marginal.support
        rows.append(
            Evidence(name, env.domain[name].unit, float(near[name]), float(low), float(high), float(score[j]),
                     bool(unlikely[j] > critical), float(np.sqrt(1 - share[j])), bool(shows[j]), float(unlikely[j]))
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -row.surprise))


def _usual_spread(env: Platform, name: str) -> float:
    """The spread that the platform itself gives a parameter: how far to look, and what excitation is measured by."""
    own = {**env.optional, **env.own_domain}
    rows = [table[name].marginal for table in (own, env.domain) if name in table]
    drawn = next((marginal for marginal in rows if is_drawn(marginal)), None)
    return 0.0 if drawn is None else float(np.std(drawn.draw(np.random.default_rng(0), 2000)))


def _explained(env: Platform, segments: Segments, noise: Noise) -> tuple[Explained, ...]:
    moved = movement(segments)
    names = [(s.name, s.unit) for s in measured(env)]
    return tuple(
        Explained(name, unit, float(moved[i]), float(noise.sigma[i]), float(noise.tau[i]))
        for i, (name, unit) in enumerate(names)
    )


def _flipped(problem: Problem, before: float) -> str | None:
    """Whether the recording makes sense with the sign of one quantity turned round, in words."""
    env, segments = problem.env, problem.segments
    best, words = before, None
    quantities = [(f"command {s.name}", None) for s in env.actions[:1]] + [(s.name, s) for s in measured(env)]
    for name, signal in quantities:
        turned = _turned(env, segments, signal)
        _, noise = best_machine(replace(problem, segments=turned))
        share = float(np.mean([e.share for e in _explained(env, turned, noise)]))
        if share > max(best, FLIPPED) and 1 - share < 0.5 * (1 - before):
            best = share
            words = (
                f"the sign of {name} seems to be flipped: turned round, a machine explains {100 * share:.1f} % of the "
                f"movement, and as recorded {100 * before:.1f} %; check the wiring or the sign convention"
            )
    return words


def _turned(env: Platform, segments: Segments, signal: object) -> Segments:
    """The segments with one quantity's sign turned round, its rate included."""
    if signal is None:
        return replace(segments, commands=-segments.commands)  # type: ignore[type-var]
    place = measured(env).index(signal)  # type: ignore[arg-type]
    rates = [i for i, s in enumerate(env.observations) if is_rate(s)]
    own = [i for i, s in enumerate(env.observations) if not is_rate(s)]
    sign = np.ones((len(env.observations), 1), np.float32)
    sign[own[place]] = -1
    if place < len(rates):
        sign[rates[place]] = -1
    positions = segments.positions.copy()
    positions[:, place] *= -1
    return segments.seen(segments.start * sign, positions)


def _hopeless(env: Platform, explained: tuple[Explained, ...]) -> str:
    shares = ", ".join(f"{100 * max(e.share, 0):.0f} % of {e.name}" for e in explained)
    return f"no machine near the table moves like this: the best one explains {shares}; is it a {env.name}?"


def _bands(segments: Segments, simulated: Segments, machines: int) -> dict[str, np.ndarray]:
    """Recorded positions of a few segments, and between which values 95 % of the table's machines would be."""
    all_of = simulated.positions.reshape(*segments.positions.shape[:2], machines, segments.n)
    low, high = np.quantile(all_of, [0.025, 0.975], axis=2)
    return {"recorded": segments.positions, "low": low, "high": high, "of": segments.of}
