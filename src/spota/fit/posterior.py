"""Which machines are still possible after recordings: NUTS, four chains, whole delays enumerated.

Coordinates are whitened by the curvature at the best machine, so that the sampler meets almost a standard normal. A
step through the simulator costs a thousand times as much as one through a quadratic model of it (`quadratic.py`), so
NUTS moves through the model, and the simulator weighs its draws: rows are drawn again by the ratio of both posteriors
(importance resampling). Where a segment began is integrated out to first order around its best guess. The scale of the
noise is learned with the rest, and n samples count as n / τ (`noise.py`). A delay is a whole number of steps: the few
that matter are summed over, and drawn afterwards.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float, Int

from spota.fit.coordinates import Coordinates
from spota.fit.estimate import Estimate, Problem
from spota.fit.quadratic import Likelihood, Straight, modelled

CHAINS = 4
WARM_UP = 1000
DRAWS = 250
"""Of each chain."""
THINNED = 10
"""Of so many draws one is kept: neighbours are alike, and each that is kept is simulated."""
DEEPEST = 8
"""Doublings of a trajectory: 255 steps at most."""
ACCEPT = 0.95
AGREEING = 0.2
"""The share of draws that should count after weighing."""
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
    """Steps of NUTS per draw, on average."""
    agreement: float
    """The share of independent draws that is left when the simulator has weighed them; 1 if its model is exact."""

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
        if self.agreement < AGREEING:
            found.append(
                f"the simulator is more bent than its quadratic model: weighed by it, {100 * self.agreement:.0f} % of "
                "the draws count; the spread of the rows is rough."
            )
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
    k_start, k_chains, k_again, k_delays = jax.random.split(key, 4)
    first = 0.5 * jax.random.normal(k_start, (CHAINS, target.size))
    kernel = NUTS(potential_fn=target.potential, target_accept_prob=ACCEPT, max_tree_depth=DEEPEST, dense_mass=True)
    chains = MCMC(
        kernel, num_warmup=warm_up, num_samples=THINNED * draws, thinning=THINNED, num_chains=CHAINS,
        chain_method="vectorized", progress_bar=False,
    )  # fmt: skip
    chains.run(k_chains, init_params=first, extra_fields=("diverging", "num_steps"))
    u = np.asarray(chains.get_samples(group_by_chain=True))
    fields = {name: np.asarray(x) for name, x in chains.get_extra_fields().items()}
    flat = u.reshape(-1, u.shape[-1])
    chosen, z, agreement = target.weighed(k_again, k_delays, flat)
    r_hat, effective = _convergence(u)
    return Sampled(
        z, np.exp(np.asarray(target.log_scale(flat[chosen, -1]))), int(fields["diverging"].sum()), r_hat,
        effective, float(fields["num_steps"].mean()), agreement,
    )  # fmt: skip


@dataclass(frozen=True)
class _Target:
    """−log posterior over the whitened coordinates u and, last, the logarithm of the noise's scale, whitened too."""

    likelihoods: tuple[Likelihood, ...]
    """Of every delay, by the simulator."""
    roots: Float[Array, "delays f f"]
    """Of every delay, R of the quadratic model."""
    straight: Straight
    coordinates: Coordinates
    best: Float[np.ndarray, "p"]
    delays: Float[np.ndarray, "delays"]
    free: np.ndarray
    factor: Float[np.ndarray, "k k"]
    count: float
    middle: float
    """The logarithm of the likeliest scale of the noise, at the best machine."""

    @property
    def size(self) -> int:
        return self.factor.shape[0] + 1

    @staticmethod
    def of(problem: Problem, found: Estimate, kept: np.ndarray) -> "_Target":
        free, n = problem.free, problem.each
        z, samples = found.z[:, kept[0]], problem.segments.positions.shape[0]
        count = max(float((n * samples / problem.noise.tau).sum() - found.start.shape[0] * n), 10.0)
        middle = 0.5 * float(np.log((found.cost[kept[0]] - (z[free] ** 2).sum()) / count))
        information = found.information[..., kept[0]][np.ix_(free, free)] * np.exp(-2 * middle)
        factor = np.linalg.inv(np.linalg.cholesky(information + np.eye(int(free.sum())))).T
        delays = found.z[~free][0, kept] if not free.all() else np.zeros(1)
        likelihoods = tuple(Likelihood.of(problem, found, int(which)) for which in kept)
        straight = Straight.of(problem, z, factor)
        roots = [one.quadratic(straight, delay) for one, delay in zip(likelihoods, delays, strict=True)]
        model = jnp.asarray(np.stack(roots), jnp.float32)
        return _Target(likelihoods, model, straight, problem.coordinates, z, delays, free, factor, count, middle)

    def z_of(self, u: Float[Array, "k"]) -> Float[Array, "p"]:
        """All coordinates; a delay is that of the best machine."""
        moved = jnp.asarray(self.factor, jnp.float32) @ u[:-1]
        return jnp.asarray(self.best, jnp.float32).at[np.flatnonzero(self.free)].add(moved)

    def log_scale(self, u: Any) -> Any:
        """Of the noise; its posterior is nearly normal."""
        return self.middle + u / np.sqrt(2 * self.count + SCALE_PRIOR**-2)

    def log_likelihoods(self, u: Float[Array, "k"]) -> Float[Array, "delays"]:
        """For every delay, by the model."""
        misfit = modelled(self.roots, self.straight.places(self.coordinates.values(self.z_of(u))))
        scale = self.log_scale(u[-1])
        volumes = np.array([one.volume - self.likelihoods[0].volume for one in self.likelihoods], np.float32)
        return volumes - 0.5 * misfit * jnp.exp(-2 * scale) - self.count * scale

    def potential(self, u: Float[Array, "k"]) -> Float[Array, ""]:
        """What NUTS descends."""
        z = self.z_of(u)[np.flatnonzero(self.free)]
        likelihood = jax.scipy.special.logsumexp(self.log_likelihoods(u))
        return 0.5 * (z**2).sum() + 0.5 * (self.log_scale(u[-1]) / SCALE_PRIOR) ** 2 - likelihood

    def weighed(
        self, key: jax.Array, k_delays: jax.Array, u: Float[np.ndarray, "draws k"]
    ) -> tuple[Int[np.ndarray, "draws"], Float[np.ndarray, "draws p"], float]:
        """Draws that are drawn again as the simulator weighs them, their coordinates, and the share that counts."""
        model = np.asarray(jax.vmap(self.log_likelihoods)(jnp.asarray(u, jnp.float32)), np.float64)
        scale = self.log_scale(u[:, -1])
        z = np.array(jax.vmap(self.z_of)(jnp.asarray(u, jnp.float32)), np.float64)
        many = np.asarray(jax.vmap(self.coordinates.values)(jnp.asarray(z, jnp.float32)), np.float64).T
        exact = np.empty_like(model)
        for d, one in enumerate(self.likelihoods):
            many[~self.free] = self.delays[d]
            gained = one.volume - self.likelihoods[0].volume - self.count * scale
            exact[:, d] = gained - 0.5 * one.misfit(many) * np.exp(-2 * scale)
        log = scipy.special.logsumexp(exact, axis=1) - scipy.special.logsumexp(model, axis=1)
        weights = np.exp(log - log.max())
        weights = np.minimum(weights, weights.mean() * np.sqrt(weights.size))  # truncated: no draw outweighs the rest
        weights /= weights.sum()
        places = (np.arange(weights.size) + float(jax.random.uniform(key))) / weights.size
        chosen = np.searchsorted(np.cumsum(weights), places).clip(max=weights.size - 1)
        which = np.asarray(jax.random.categorical(k_delays, jnp.asarray(exact[chosen]), axis=-1))
        z = z[chosen]
        z[:, ~self.free] = self.delays[which][:, None]
        return chosen, z, float(1 / (weights**2).sum() / weights.size)


def _convergence(u: Float[np.ndarray, "chains draws k"]) -> tuple[float, float]:
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    r_hat: Any = split_gelman_rubin(u)
    effective: Any = effective_sample_size(u)
    return float(np.max(r_hat)), float(np.min(effective))
