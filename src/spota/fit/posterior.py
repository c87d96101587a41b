"""Which machines are still possible after recordings: NUTS through the simulator, four chains, whole delays enumerated.

Coordinates are whitened by the curvature at the best machine, so that the sampler meets almost a standard normal. Where
a segment began is integrated out to first order around its best guess. The scale of the noise is learned with the rest,
and n samples count as n / τ (`noise.py`). A delay is a whole number of steps: the few that matter are summed over, and
drawn afterwards.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from spota.fit.coordinates import Scores
from spota.fit.estimate import Estimate, Problem, beginnings_of
from spota.fit.noise import beginnings
from spota.fit.prediction import residuals
from spota.fit.segments import Segments
from spota.sim.env import Env

CHAINS = 4
WARM_UP = 200
DRAWS = 250
"""Of each chain."""
DEEPEST = 6
"""Doublings of a trajectory: 63 steps at most."""
ACCEPT = 0.85
SCALE_PRIOR = 0.5
"""Standard deviation of the logarithm of the noise's scale."""
WORTHY = 0.02
"""The probability that a delay must have at the best machine to be summed over."""
MOST_DELAYS = 3


@dataclass(frozen=True)
class Sampled:
    """Draws of all chains one after the other, and how the sampling went."""

    z: Float[np.ndarray, "draws p"]
    """Coordinates; a delay is its own coordinate."""
    scale: Float[np.ndarray, "draws"]
    """The noise's scale over that of the best machine."""
    divergences: int
    r_hat: float
    """The largest of all coordinates."""
    effective: float
    """The smallest effective number of draws."""
    steps: float
    """Steps through the simulator per draw, on average."""

    @property
    def complaints(self) -> list[str]:
        """What is wrong with the sampling, in words."""
        found = []
        if self.divergences:
            found.append(f"{self.divergences} transitions diverged: the posterior has corners that were not explored.")
        if not self.r_hat <= 1.01:
            found.append(f"the chains do not agree (R-hat {self.r_hat:.3f}, at most 1.01 is wanted); draw more.")
        if self.effective < 100:
            found.append(f"there are only {self.effective:.0f} independent draws of some parameter; draw more.")
        return found


def delay_weights(problem: Problem, found: Estimate, prior: np.ndarray) -> Float[np.ndarray, "m"]:
    """The probability of every delay, by Laplace at the best machine for each; machines of the problem are delays."""
    free = problem.free
    H = np.moveaxis(found.information[np.ix_(free, free)], -1, 0) + np.eye(int(free.sum()))
    log = np.log(prior) - found.cost / 2 - np.linalg.slogdet(H)[1] / 2
    weights = np.exp(log - log.max())
    return weights / weights.sum()


def sample(
    key: jax.Array, problem: Problem, found: Estimate, weights: np.ndarray, warm_up: int = WARM_UP, draws: int = DRAWS
) -> Sampled:
    """Draw machines; the problem's machines are the same one with different delays, and `weights` are theirs."""
    from numpyro.infer import MCMC, NUTS  # slow to import

    kept = np.argsort(-weights)[:MOST_DELAYS]
    kept = kept[weights[kept] >= WORTHY]
    target = _Target.of(problem, found, kept)
    k_start, k_chains, k_delays = jax.random.split(key, 3)
    first = 0.5 * jax.random.normal(k_start, (CHAINS, target.size))
    kernel = NUTS(potential_fn=target.potential, target_accept_prob=ACCEPT, max_tree_depth=DEEPEST, dense_mass=False)
    chains = MCMC(
        kernel, num_warmup=warm_up, num_samples=draws, num_chains=CHAINS, chain_method="vectorized", progress_bar=False
    )
    chains.run(k_chains, init_params=first, extra_fields=("diverging", "num_steps"))
    u = np.asarray(chains.get_samples(group_by_chain=True))
    fields = {name: np.asarray(x) for name, x in chains.get_extra_fields().items()}
    flat = u.reshape(-1, u.shape[-1])
    z = target.machines(k_delays, flat)
    r_hat, effective = _convergence(u)
    return Sampled(
        z, np.exp(SCALE_PRIOR * flat[:, -1]), int(fields["diverging"].sum()), r_hat, effective,
        float(fields["num_steps"].mean()),
    )  # fmt: skip


@dataclass(frozen=True)
class _Target:
    """−log posterior over the whitened coordinates u and, last, the logarithm of the noise's scale."""

    env: Env
    coordinates: Scores
    segments: Segments
    best: jax.Array
    """[p] with the delay of each kept one put in later."""
    free: np.ndarray
    factor: jax.Array
    delays: jax.Array
    start: jax.Array
    """[d, n, D]"""
    pulls: jax.Array
    """Sᵀ W of every sample, [t, q, d, n, D]"""
    off: jax.Array
    inverse: jax.Array
    weights: jax.Array
    count: float

    @property
    def size(self) -> int:
        return self.factor.shape[0] + 1

    @staticmethod
    def of(problem: Problem, found: Estimate, kept: np.ndarray) -> "_Target":
        assert isinstance(problem.coordinates, Scores)
        free, n = problem.free, problem.each
        covariance = found.covariance()[kept[0]][np.ix_(free, free)]
        spread = beginnings(problem.env, problem.noise, problem.segments)
        segments = problem.segments.chosen(np.arange(n))
        W = problem.weights
        parts: list[list[np.ndarray]] = [[], [], [], []]
        for d in kept:
            start = found.start[..., d]
            S, C = beginnings_of(problem, found.z[:, d], start)
            off = (start - np.asarray(segments.start, np.float64)) / spread[:, None] ** 2
            for part, value in zip(parts, (start, S * W[:, :, None, None], off, np.moveaxis(C, 0, -1)), strict=True):
                part.append(value)
        start, pulls, off, inverse = (jnp.asarray(np.stack(x, axis=-1), jnp.float32) for x in parts)
        tau, t = problem.noise.tau, segments.positions.shape[0]
        count = float((n * t / tau).sum() - start.shape[0] * n)
        place = list(free).index(False) if not free.all() else None
        delays = found.z[place, kept] if place is not None else np.zeros(1)
        return _Target(
            problem.env, problem.coordinates, segments, jnp.asarray(found.z[:, kept[0]], jnp.float32), free,
            jnp.asarray(np.linalg.cholesky(covariance), jnp.float32), jnp.asarray(delays, jnp.float32), start, pulls,
            off, inverse, jnp.asarray(W, jnp.float32), max(count, 10.0),
        )  # fmt: skip

    def z_of(self, u: Float[Array, "k"]) -> Float[Array, "p"]:
        """All coordinates, with the delay of the best machine."""
        moved = jnp.zeros(self.best.size).at[np.flatnonzero(self.free)].set(self.factor @ u[:-1])
        return self.best + moved

    def misfit(self, z: Float[Array, "p"]) -> Float[Array, "delays"]:
        """Twice the negative log likelihood for every delay, with beginnings integrated out, at the best scale."""

        def one(delay: Array, start: Array, pulls: Array, off: Array, inverse: Array) -> Array:
            here = z if self.free.all() else z.at[int(np.flatnonzero(~self.free)[0])].set(delay)
            domain = self.coordinates.domain(here)
            r = jax.vmap(lambda s, seg: residuals(self.env, domain, s, seg), in_axes=-1, out_axes=-1)(
                start, self.segments
            )
            h = jnp.einsum("tqdn,tqn->dn", pulls, r) + off
            fixed = (r**2 * self.weights[:, :, None]).sum()
            return fixed - jnp.einsum("in,ijn,jn->", h, inverse, h)

        return jax.vmap(one, in_axes=(0, -1, -1, -1, -1))(self.delays, self.start, self.pulls, self.off, self.inverse)

    def log_likelihoods(self, u: Float[Array, "k"]) -> Float[Array, "delays"]:
        """For every delay."""
        scale = SCALE_PRIOR * u[-1]
        return -0.5 * self.misfit(self.z_of(u)) * jnp.exp(-2 * scale) - self.count * scale

    def potential(self, u: Float[Array, "k"]) -> Float[Array, ""]:
        """What NUTS descends."""
        z = self.z_of(u)[np.flatnonzero(self.free)]
        likelihood = jax.scipy.special.logsumexp(self.log_likelihoods(u))
        return 0.5 * (z**2).sum() + 0.5 * u[-1] ** 2 - likelihood

    def machines(self, key: jax.Array, u: Float[np.ndarray, "draws k"]) -> Float[np.ndarray, "draws p"]:
        """The coordinates of every draw, each with a delay of its own."""
        z = np.array(jax.vmap(self.z_of)(jnp.asarray(u, jnp.float32)), np.float64)
        if self.delays.size > 1:
            logits = np.asarray(jax.lax.map(self.log_likelihoods, jnp.asarray(u, jnp.float32), batch_size=50))
            which = np.asarray(jax.random.categorical(key, jnp.asarray(logits), axis=-1))
            z[:, ~self.free] = np.asarray(self.delays)[which][:, None]
        return z


def _convergence(u: Float[np.ndarray, "chains draws k"]) -> tuple[float, float]:
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    r_hat: Any = split_gelman_rubin(u)
    effective: Any = effective_sample_size(u)
    return float(np.max(r_hat)), float(np.min(effective))
