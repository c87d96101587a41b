"""Studies on problems whose truth is known: the illustrative example, and how often each interval covers the gap."""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Key

from spota.algorithm import Result, spota
from spota.bootstrap import INTERVALS, UNITS
from spota.certificate import METHODS
from spota.envs import catapult, make
from spota.events import Listener
from spota.files import plain
from spota.gap import reject_outliers
from spota.polopt import exact
from spota.replications import a2rp, i2rp, mrp
from spota.settings import Spota
from spota.split import SHARE, crash_level, rare_bound, reference_bound

SIGMA = 0.15  # how far the example's candidate is off, tab_params_ill_exmpl
STATED = (1, 5, 10, 30, 100)  # sample sizes whose exact bias is stated
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
class Example:
    """The illustrative example over n = 1 … N domains: one row a seed, next to the exact values."""

    n: np.ndarray
    best: Float[np.ndarray, "seeds N"]
    """Ĵ_n(θ*_n)."""
    candidate: Float[np.ndarray, "seeds N"]
    """Ĵ_n(θᶜ)."""
    optimum: Float[np.ndarray, "seeds N"]
    """Ĵ_n(θ*)."""
    gap: Float[np.ndarray, "seeds"]
    """G(θᶜ), which does not depend on n."""
    exact_bias: Float[np.ndarray, "N"]
    sigma: float

    @property
    def estimated_gap(self) -> Float[np.ndarray, "seeds N"]:
        """Ĝ_n(θᶜ), eq_optgap_approx."""
        return self.best - self.candidate

    @property
    def bias(self) -> Float[np.ndarray, "seeds N"]:
        """What Ĝ_n has too much; its mean estimates the simulation optimization bias, eq_SOB_def."""
        return self.estimated_gap - self.gap[:, None]

    def to_dict(self) -> dict[str, Any]:
        """Exact values, and means over the seeds with their standard errors."""
        thirty = int(np.searchsorted(self.n, 30))
        return {
            "seeds": self.gap.size,
            "sigma": self.sigma,
            "true_optimum": catapult.true_optimum(),
            "true_optimum_return": float(catapult.expected_return(catapult.true_optimum())),
            "exact_bias": {str(n): catapult.simulation_optimization_bias(n) for n in STATED},
            "gap": {"exact": catapult.expected_gap(self.sigma), **_mean(self.gap)},
            "estimated_gap_30": {
                "exact": catapult.expected_estimated_gap(30, self.sigma),
                **_mean(self.estimated_gap[:, thirty]),
            },
            "bias_30": {"exact": catapult.simulation_optimization_bias(30), **_mean(self.bias[:, thirty])},
        }


def illustrative_example(seed: int = 0, seeds: int = 100, largest: int = 100, sigma: float = SIGMA) -> Example:
    """Draw planets and candidates θᶜ ~ N(θ*, σ²), independent of them, and follow them over n."""
    if seeds < 2 or largest < 30:
        raise ValueError(f"seeds={seeds}, largest={largest}: the example needs 2 seeds and 30 domains at least.")
    k_domains, k_candidate = jax.random.split(jax.random.key(seed))
    drawn = make("catapult").domain.sample(k_domains, seeds * largest)["planet"]
    venus = np.asarray(drawn, np.float64).reshape(seeds, largest).cumsum(axis=1)
    n = np.arange(1, largest + 1)
    optimum = catapult.true_optimum()
    theta = optimum + sigma * np.asarray(jax.random.normal(k_candidate, (seeds, 1)), np.float64)
    best, candidate, true = (
        catapult.mean_return(t, venus / n) for t in (catapult.sample_optimum(n - venus, venus), theta, optimum)
    )
    gap = (catapult.expected_return(optimum) - catapult.expected_return(theta))[:, 0]
    bias = np.array([catapult.simulation_optimization_bias(int(i)) for i in n])
    return Example(n, best, candidate, true, gap, bias, sigma)


def spota_on_the_catapult(seed: int = 0, settings: Spota | None = None, report: Listener | None = None) -> Result:
    """SPOTA itself on the example, with the closed form as its optimizer: references are exact."""
    settings = settings or Spota(beta=10.0, n_J=1, growth="doubling", max_iterations=8)
    return spota(jax.random.key(seed), make("catapult"), exact.catapult, settings, report=report)


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
    """Returns, one rollout a domain; those of the references are higher by the raw gaps."""

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
    """Problems, numbers of references, domains a reference and correlations that are studied."""
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
    data = draw(np.random.default_rng(np.asarray(jax.random.key_data(k_data))), case, sets)
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
    levels, rare_means, rare = (
        x[np.arange(len(data.candidate)) % POLICIES] for x in rare_losses(seed, case.problem, case.crash)
    )
    gains = data.reference - np.maximum(data.candidate, levels[:, None, None])
    ordinary = np.minimum(reference_bound(gains, ALPHA * SHARE), high - levels)
    return np.maximum(ordinary + rare, np.maximum(gains.mean(axis=(1, 2)) + rare_means, 0.0))


@functools.cache
def rare_losses(seed: int, problem: str, crash: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels, means and bounds of the rare loss, from POLICIES independent pilots and sets of unseen domains."""
    rng, low = np.random.default_rng([seed, round(1e6 * crash), 1]), _range(problem)[0]
    found = []
    for _ in range(POLICIES):
        level = crash_level(unseen_returns(rng, problem, crash, PILOT))
        losses = np.maximum(level - unseen_returns(rng, problem, crash, UNSEEN), 0.0)
        found.append((level, losses.mean(), rare_bound(losses, level - low, ALPHA * (1 - SHARE))))
    levels, means, bounds = np.array(found).T
    return levels, means, bounds


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


@dataclass(frozen=True)
class Parabolas:
    """J(θ, ξ) = top − c/2 (θ − x)² with random c and x: the optimum of any sample is a weighted mean."""

    draw: Callable[[np.random.Generator, tuple[int, ...]], tuple[np.ndarray, np.ndarray, np.ndarray]]
    """c, x and top of random domains."""
    curvature: float
    """E[c]."""
    optimum: float
    """θ*."""
    low: float
    """Below every return of the optimum of any domains."""

    def gaps(
        self, rng: np.random.Generator, shape: tuple[int, int, int], theta: float
    ) -> tuple[Float[Array, "sets n_G n_r"], Float[Array, "sets n_G n_r"], Float[np.ndarray, "sets n_G n_r"]]:
        """Gaps of θ against exact references, before and after outlier rejection, and the returns of θ."""
        parts = [self._some_gaps(rng, (size, *shape[1:]), theta) for size in _sizes(shape[0], 250)]
        raw, final, returns = zip(*parts, strict=True)
        return jnp.concatenate(raw), jnp.concatenate(final), np.concatenate(returns)

    def bias(self, n: int, draws: int = 200_000) -> float:
        """E[Ĵ_n(θ*_n)] − J(θ*) = E[c̄_n/2 (θ*_n − θ*)²], eq_SOB_def, by drawing (to about half a percent)."""
        c, x, _ = self.draw(np.random.default_rng(0), (draws, n))
        return float((c.mean(axis=1) / 2 * (best(c, x) - self.optimum) ** 2).mean())

    def _some_gaps(self, rng: np.random.Generator, shape: tuple[int, int, int], theta: float):
        c, x, top = self.draw(rng, shape)
        loss = c * (theta - x) ** 2 / 2
        # cross[s, k', k, i]: reference k' on domain i of reference k
        cross = loss[:, None] - c[:, None] * (best(c, x)[:, :, None, None] - x[:, None]) ** 2 / 2
        raw = np.einsum("skki->ski", cross)
        raw, cross = jnp.asarray(raw, jnp.float32), jnp.asarray(cross, jnp.float32)
        return raw, _rejected(raw, cross), top - loss


def best(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """θ*_n for the domains of the last axis."""
    return np.asarray((c * x).sum(axis=-1) / c.sum(axis=-1))


def _planets(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    venus = (rng.random(shape) < catapult.VENUS).astype(int)
    c = np.array(catapult.STIFFNESS) / (catapult.MASS * np.array(catapult.GRAVITY))
    return c[venus], np.array(catapult.PRE_EXTENSION)[venus], np.zeros(shape)


def _regulators(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lq = exact.LinearQuadratic()
    a, b = lq.draw(rng, shape)
    c, x = lq.parabola(a, b)
    return c, x, lq.returns(x, a, b)


PARABOLAS = {
    "catapult": Parabolas(
        _planets, 2 * catapult.expected_gap(1.0), catapult.true_optimum(), catapult.Catapult().min_return
    ),
    "lq": Parabolas(
        _regulators, exact.LinearQuadratic().curvature, exact.LinearQuadratic().optimum, -108.0
    ),  # the best θ of a domain is at most 2.31, and costs at most 107.2 elsewhere
}


_rejected = jax.jit(jax.vmap(lambda raw, cross: reject_outliers(raw, cross, "first").final))


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


def _sizes(total: int, most: int) -> Iterator[int]:
    for first in range(0, total, most):
        yield min(most, total - first)


def _mean(values: np.ndarray) -> dict[str, float]:
    return {"mean": float(values.mean()), "standard_error": float(values.std(ddof=1) / math.sqrt(values.size))}
