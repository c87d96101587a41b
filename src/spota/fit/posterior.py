"""Which machines are still possible after recordings: NUTS, four chains, whole delays enumerated.

Coordinates are whitened by the curvature at the best machine, so that the sampler meets almost a standard normal. A
step through the simulator costs a thousand times as much as one through a quadratic model of it (`quadratic.py`), so
NUTS moves through the model, and the simulator weighs its draws: rows are drawn again by the ratio of both posteriors
(importance resampling). A segment began where it is likeliest, to first order around the best guess. The scale of the
noise is learned with the rest, and n samples count as n / τ (`noise.py`). A delay is a whole number of steps: the few
that matter are summed over (`target.py`), and drawn afterwards.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float, Int

from spota.fit.estimate import Estimate, Problem
from spota.fit.target import MOST_DELAYS, Both, Target

CHAINS = 4
WARM_UP = 500
DRAWS = 250
"""Of each chain."""
THINNED = 4
"""Of so many draws one is kept: neighbours are alike, and each that is kept is simulated; divergences count in all."""
DEEPEST = 9
"""Doublings of a trajectory: 511 steps at most."""
ACCEPT = 0.98
AGREEING = 0.2
"""The share of draws that should count after weighing."""
WORTHY = 0.01
"""The probability that a delay must have at the best machine to be summed over."""


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
    kept = np.argsort(-weights)[:MOST_DELAYS]
    both = Both.of(problem, found, kept[weights[kept] >= WORTHY])
    k_start, k_rough, k_chains, k_again, k_delays = jax.random.split(key, 5)
    first = 0.5 * jax.random.normal(k_start, (CHAINS, both.target.size))
    rough, _, _ = map(np.asarray, _chains(both.target, first, k_rough, warm_up, draws))
    both = both.fitted_to(rough.reshape(-1, rough.shape[-1]))
    u, divergences, steps = map(np.asarray, _chains(both.target, jnp.asarray(rough[:, -1]), k_chains, warm_up, draws))
    flat = u.reshape(-1, u.shape[-1])
    chosen, z, agreement = weighed(k_again, k_delays, both, flat)
    r_hat, effective = _convergence(u)
    scale = np.exp(both.target.log_scale(flat[chosen, -1]))
    return Sampled(z, scale, int(divergences.sum()), r_hat, effective, float(steps.mean() / THINNED), agreement)


@eqx.filter_jit
def _chains(target: Target, first: Float[Array, "chains k"], key: jax.Array, warm_up: int, draws: int) -> Any:
    """Of every chain its draws, and for each of them how many transitions diverged and how many steps were made."""
    from numpyro.infer.hmc import hmc  # slow to import

    begin, transition = hmc(potential_fn_gen=lambda one: one.potential, algo="NUTS")
    step = lambda state: transition(state, (target,))  # noqa: E731

    def kept(state: Any, _: None) -> Any:
        def one(total: Any, _: None) -> Any:
            state, divergences, steps = total
            state = step(state)
            return (state, divergences + state.diverging, steps + state.num_steps), None

        (state, *told), _ = jax.lax.scan(one, (state, 0, 0), length=THINNED)
        return state, (state.z, *told)

    def chain(key: jax.Array, first: Float[Array, "k"]) -> Any:
        state = begin(
            first, warm_up, dense_mass=True, target_accept_prob=ACCEPT, max_tree_depth=DEEPEST, model_args=(target,),
            rng_key=key,
        )  # fmt: skip
        state = jax.lax.fori_loop(0, warm_up, lambda _, state: step(state), state)
        return jax.lax.scan(kept, state, length=draws)[1]

    return jax.vmap(chain)(jax.random.split(key, first.shape[0]), first)


def weighed(
    key: jax.Array, k_delays: jax.Array, both: Both, u: Float[np.ndarray, "draws k"]
) -> tuple[Int[np.ndarray, "draws"], Float[np.ndarray, "draws p"], float]:
    """Draws that are drawn again as the simulator weighs them, their coordinates, and the share that counts."""
    exact, modelled, z = both.weighed(u)
    by_simulator, by_model = (np.asarray(scipy.special.logsumexp(x, axis=1)) for x in (exact, modelled))
    log = by_simulator - by_model
    weights = np.exp(log - log.max())
    weights = np.minimum(weights, weights.mean() * np.sqrt(weights.size))  # truncated: no draw outweighs the rest
    weights /= weights.sum()
    places = (np.arange(weights.size) + float(jax.random.uniform(key))) / weights.size
    chosen = np.searchsorted(np.cumsum(weights), places).clip(max=weights.size - 1)
    which = np.asarray(jax.random.categorical(k_delays, jnp.asarray(exact[chosen]), axis=-1))
    return chosen, z[chosen, which], float(1 / (weights**2).sum() / weights.size)


def _convergence(u: Float[np.ndarray, "chains draws k"]) -> tuple[float, float]:
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    r_hat: Any = split_gelman_rubin(u)
    effective: Any = effective_sample_size(u)
    return float(np.max(r_hat)), float(np.min(effective))
