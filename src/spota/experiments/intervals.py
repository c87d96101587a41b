"""How often each interval covers the truth, on comparisons whose true gap is known."""

import functools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Key

from spota.certify.certificate import METHODS
from spota.experiments.example import SIGMA
from spota.experiments.parabolas import PARABOLAS
from spota.files.atomic import plain
from spota.sim import randomness
from spota.stats.bootstrap import INTERVALS, UNITS
from spota.stats.replications import a2rp, i2rp, mrp
from spota.stats.split import FLOOR, SHARE, crash_level, rare_bound, reference_bound

ALPHA = 0.05
REPLICATIONS = ("mrp", "i2rp", "a2rp")
COLUMNS = (*METHODS, *REPLICATIONS)
SCALES = {"exponential": 1.0, "crash": 12.0}
"""The mean of synthetic gaps, crashes aside; their returns are on the same scale."""
CRASHES = (0.002, 0.01, 0.02)
CRASH_COST = (500.0, 1900.0)
CRASH_SIZES = ((20, 1), (10, 5), (20, 5), (20, 10), (20, 50))
UNSEEN, PILOT = 20_000, 1000  # domains of the split's rare loss and of its level
POLICIES = 200  # independent draws of these two, which the comparisons of a case share


@dataclass(frozen=True)
class Case:
    """One line of the coverage study."""

    problem: str
    n_G: int
    n_r: int
    correlation: float | None = None
    """Between the gaps of one reference, before they are made exponential; None where it follows from the problem."""
    crash: float = 0.0
    """The share of domains on which the candidate crashes and a reference does not."""


@dataclass(frozen=True)
class GapSets:
    """Many independent results of a comparison, and the truth about them."""

    raw: Float[Array, "sets n_G n_r"]
    final: Float[Array, "sets n_G n_r"]
    gap: float
    """The true optimality gap, which a certificate must not fall below."""
    bias: float
    """By how much exact references overestimate it, eq_SOB_def."""
    candidate: Float[np.ndarray, "sets n_G n_r"]
    """Returns, one rollout per domain; those of the references are higher by the raw gaps."""

    @property
    def reference(self) -> Float[np.ndarray, "sets n_G n_r"]:
        """Returns of each reference on its own domains."""
        return self.candidate + np.asarray(self.raw, np.float64)


@dataclass(frozen=True)
class Coverage:
    """How often each upper bound at nominal 95 % is at least the truth, in percent."""

    case: Case
    sets: int
    gap: float
    bias: float
    mean: float
    """Mean of the gaps after outlier rejection: what the bootstrap intervals really estimate."""
    negative: float
    """How many of the gaps of exact references are negative before rejection, in percent."""
    covers_gap: dict[str, float]
    """The true gap: what a user cares about. The bias helps."""
    covers_mean: dict[str, float]
    """The mean of the gaps that the interval is given: what a statistician cares about. Nothing helps."""
    width: dict[str, float]
    """Median bound over that mean."""
    high: dict[str, float]
    """90 % quantile of the bound over that mean."""
    unbounded: dict[str, float]
    """How often the answer is +inf, in percent."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON; a median that is infinite is "inf"."""
        return plain(asdict(self))


def cases(quick: bool = False) -> Iterator[Case]:
    """Problems, numbers of references, domains per reference and correlations that are studied."""
    numbers = (20,) if quick else (10, 20, 50)
    for n_G in numbers:
        for n_r in (1, 5, 20):
            for correlation in (0.0,) if n_r == 1 else (0.0, 0.3):
                yield Case("exponential", n_G, n_r, correlation)
    for problem in ("catapult", "lq"):
        yield from (Case(problem, n_G, n_r) for n_G in numbers for n_r in (1, 5, 20))


def crash_cases(quick: bool = False) -> Iterator[Case]:
    """Rare crashes: probabilities, sizes and correlations that are studied."""
    for crash in CRASHES[1:2] if quick else CRASHES:
        for n_G, n_r in CRASH_SIZES[:3] if quick else CRASH_SIZES:
            for correlation in (0.0,) if n_r == 1 else (0.0, 0.3):
                yield Case("crash", n_G, n_r, correlation, crash)


def coverage(seed: int, case: Case, sets: int = 2000, group: int = 250) -> Coverage:
    """Draw comparisons whose truth is known and count; `group` of them share their resamples."""
    if sets % group:
        raise ValueError(f"sets={sets}: write a multiple of {group}.")
    k_data, k_bootstrap = jax.random.split(jax.random.key(seed))
    data = draw(randomness.generator(k_data), case, sets)
    keys = jax.random.split(k_bootstrap, sets // group)
    grouped = (x.reshape(-1, group, case.n_G, case.n_r) for x in (data.raw, data.final))
    upper = {name: np.asarray(b, np.float64).ravel() for name, b in _bounds(keys, *grouped).items()}
    upper["split"] = split_bounds(seed, case, data)
    mean = {name: _estimated(case, data, name) for name in upper}
    return Coverage(
        case, sets, data.gap, data.bias, float(data.final.mean()), 100 * float((data.raw < 0).mean()),
        covers_gap={name: 100 * float((b >= data.gap).mean()) for name, b in upper.items()},
        covers_mean={name: 100 * float((b >= mean[name]).mean()) for name, b in upper.items()},
        width={name: float(np.median(b)) / mean[name] for name, b in upper.items()},
        high={name: float(np.quantile(b, 0.9, method="higher")) / mean[name] for name, b in upper.items()},
        unbounded={name: 100 * float(np.isinf(b).mean()) for name, b in upper.items()},
    )  # fmt: skip


def draw(rng: np.random.Generator, case: Case, sets: int) -> GapSets:
    """Gap samples of one case."""
    shape = sets, case.n_G, case.n_r
    if case.problem in SCALES:
        scale = SCALES[case.problem]
        gaps = scale * exponential_gaps(rng, shape, case.correlation or 0.0)
        gaps += jnp.asarray(crash_costs(rng, shape, case.crash), jnp.float32)
        candidate = easy_returns(rng, shape, scale) - np.asarray(gaps, np.float64)
        return GapSets(gaps, gaps, scale + case.crash * sum(CRASH_COST) / 2, 0.0, candidate)
    problem = PARABOLAS[case.problem]
    raw, final, candidate = problem.gaps(rng, shape, problem.optimum + SIGMA)
    return GapSets(raw, final, problem.curvature * SIGMA**2 / 2, problem.bias(case.n_r), candidate)


def unseen_returns(rng: np.random.Generator, problem: str, crash: float, n: int) -> Float[np.ndarray, " n"]:
    """Returns of the candidate on n domains that no reference knows."""
    if problem in PARABOLAS:
        known = PARABOLAS[problem]
        c, x, top = known.draw(rng, (n,))
        return top - c * (known.optimum + SIGMA - x) ** 2 / 2
    scale = SCALES[problem]
    return easy_returns(rng, (n,), scale) - scale * rng.standard_exponential(n) - crash_costs(rng, (n,), crash)


def easy_returns(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Returns of synthetic references: at most 200 mean gaps, and four below that on average, as domains differ."""
    return scale * (200 - 4 * rng.standard_exponential(shape))


def crash_costs(rng: np.random.Generator, shape: tuple[int, ...], crash: float) -> np.ndarray:
    """What a crash costs, which is uniform, where there is one; zero elsewhere."""
    return (rng.random(shape) < crash) * rng.uniform(*CRASH_COST, shape)


def split_bounds(seed: int, case: Case, data: GapSets) -> Float[np.ndarray, " sets"]:
    """The split interval of every comparison, as `split.split_upper` has it; rare losses come from POLICIES draws."""
    high = _range(case.problem)[1]
    levels, floors, rare_means, rare = (
        x[np.arange(len(data.candidate)) % POLICIES] for x in rare_losses(seed, case.problem, case.crash)
    )
    gains = np.maximum(data.reference, floors[:, None, None]) - np.maximum(data.candidate, levels[:, None, None])
    ordinary = np.minimum(reference_bound(gains, ALPHA * SHARE), high - levels)
    return np.maximum(ordinary + rare, np.maximum(gains.mean(axis=(1, 2)) + rare_means, 0.0))


@functools.cache
def rare_losses(seed: int, problem: str, crash: float) -> tuple[np.ndarray, ...]:
    """Levels, floors, means and bounds of the rare loss, from POLICIES independent pilots and unseen domains."""
    rng, low = np.random.default_rng([seed, round(1e6 * crash), 1]), _range(problem)[0]
    found = []
    for _ in range(POLICIES):
        pilot = unseen_returns(rng, problem, crash, PILOT)
        level = crash_level(pilot)
        losses = np.maximum(level - unseen_returns(rng, problem, crash, UNSEEN), 0.0)
        bound = rare_bound(losses, level - low, ALPHA * (1 - SHARE))
        found.append((level, crash_level(pilot, FLOOR), losses.mean(), bound))
    return tuple(np.array(found).T)


def _range(problem: str) -> tuple[float, float]:
    """The least and the largest return that are known beforehand."""
    return (PARABOLAS[problem].low, 0.0) if problem in PARABOLAS else (0.0, 200 * SCALES[problem])


def _estimated(case: Case, data: GapSets, method: str) -> float:
    """The mean of the gaps that a method is given; that of rare crashes is known better than it can be counted."""
    if case.crash:
        return data.gap
    return float((data.raw if method in ("split", *REPLICATIONS) else data.final).mean())


def exponential_gaps(
    rng: np.random.Generator, shape: tuple[int, int, int], correlation: float
) -> Float[Array, "sets n_G n_r"]:
    """Exponential gaps of mean 1 by a Gaussian copula: the normals of one reference correlate."""
    row, cell = rng.standard_normal((*shape[:2], 1)), rng.standard_normal(shape)
    normal = math.sqrt(correlation) * row + math.sqrt(1 - correlation) * cell
    return -log_ndtr(jnp.asarray(normal, jnp.float32))


@jax.jit
def _bounds(
    keys: Key[Array, "groups"], raw: Float[Array, "groups g n_G n_r"], final: Float[Array, "groups g n_G n_r"]
) -> dict[str, Float[Array, "groups g"]]:
    """Every bound on every data set; the sets of a group share a key, so that resampling is one matrix product."""

    def one(key, raw, final):
        found = {f"{m}_{u}": interval(key, final, ALPHA, 1000, u) for u in UNITS for m, interval in INTERVALS.items()}
        found["mrp"] = mrp(raw.mean(axis=1), ALPHA).upper
        if raw.shape[1] > 1:
            found |= {"i2rp": i2rp(raw[:2], ALPHA).upper, "a2rp": a2rp(raw[:2], ALPHA).upper}
        return found

    return jax.lax.map(lambda g: jax.vmap(functools.partial(one, g[0]))(g[1], g[2]), (keys, raw, final))
