"""Policy gradients by differentiating through the simulator: no critic, no exploration, very little noise.

The reward of a rollout ends with a failure, and a failure has no gradient. A smooth barrier in the *training* objective
stands in for it: it grows as a rollout comes close to a bound (`Env.danger`), and is zero elsewhere.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from spota import randomness, rollout
from spota.domain import Domains
from spota.polopt.checks import at_least_one, divides, positive
from spota.polopt.rows import Rows, all_rows, mean_over_devices, my_share
from spota.polopt.smoothing import smoothed
from spota.types import Env, Policy


class AnalyticState(eqx.Module):
    """The policy, and Adam's memory."""

    policy: Any
    adam: Any


@dataclass(frozen=True)
class Analytic:
    """Adam on the gradient of the simulated return; the step size decays with a cosine."""

    iterations: int = 150
    """Adam steps."""
    learning_rate: float = 1e-2
    """The first step size."""
    rollouts: int = 10
    """Rollouts a domain in a gradient."""
    clip_norm: float = 1.0
    """Longer gradients are shortened to this length."""
    barrier: float = 100.0
    """Weight of the barrier, in return."""
    barrier_start: float = 0.7
    """Where the barrier begins, as a share of the way to failure; a rollout that starts closer begins free of it."""
    smoothing: float = 0.0
    """Width of a kernel around each training domain, in standard deviations of ν; 0 trains on the domains alone."""
    segment: int = 50
    """Steps between two states that are stored for the way back; those in between are computed again."""
    evaluate_every: int = 5
    evaluation_rollouts: int = 20
    fresh_domains: bool = False

    def __post_init__(self):
        """Refuse settings that cannot work."""
        at_least_one(self, "iterations", "rollouts", "segment", "evaluate_every", "evaluation_rollouts")
        positive(self, "learning_rate", "clip_norm")
        if not (self.barrier >= 0 and self.smoothing >= 0):
            raise ValueError(f"barrier = {self.barrier}, smoothing = {self.smoothing}: neither can be negative.")

    @property
    def worst_share(self) -> float:
        """All rollouts of an evaluation count."""
        return 1.0

    def check(self, env: Env):
        """Refuse an environment whose steps the segments do not divide."""
        divides("segment", self.segment, env)

    def begin(self, key: Key[Array, ""], env: Env, policy: Any) -> AnalyticState:
        """Adam without memory."""
        del key, env
        return AnalyticState(policy, self._optimizer().init(policy))

    def update(
        self, env: Env, domains: Domains, key: Key[Array, ""], state: AnalyticState
    ) -> tuple[AnalyticState, dict]:
        """One Adam step; a gradient that is not finite is left out."""
        k_rows, k_smooth = jax.random.split(key)
        rows = all_rows(domains, k_rows, self.rollouts)
        rows = my_share(smoothed(k_smooth, env.domain, rows, self.smoothing))
        value, gradient = jax.value_and_grad(self.loss)(state.policy, env, rows)
        value, gradient = mean_over_devices((value, gradient))
        norm = optax.tree.norm(gradient)
        finite = jnp.isfinite(norm)
        step, adam = self._optimizer().update(gradient, state.adam, state.policy)
        moved = AnalyticState(optax.apply_updates(state.policy, step), adam)
        state = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, state)
        return state, {"objective": -value * env.max_steps, "gradient_norm": norm, "finite": finite}

    def policy(self, state: AnalyticState) -> Any:
        """The current policy."""
        return state.policy

    def loss(self, policy: Policy, env: Env, rows: Rows) -> Float[Array, ""]:
        """Minus the mean return with barrier, a step."""
        words, act = randomness.words(rows.keys), rollout.acting_with(policy)

        begin = rollout.begin(env, rows.domains, rows.keys)
        free = [jnp.maximum(d, self.barrier_start) for d in rollout.danger(env, begin.state, rows.domains)]

        @jax.checkpoint
        def step(carry, t):
            world, total = carry
            world, now = rollout.advance(env, act, rows.domains, words, t, world)
            danger = rollout.danger(env, world.state, rows.domains)
            near = sum(jnp.maximum(d - f, 0.0) ** 2 for d, f in zip(danger, free, strict=True))
            return (world, total + now.reward - jnp.where(now.alive, self.barrier * near, 0.0)), None

        @jax.checkpoint
        def segment(carry, times):
            return jax.lax.scan(step, carry, times)

        start = begin, jnp.zeros(rows.keys.shape)
        times = jnp.arange(env.max_steps).reshape(-1, self.segment)
        (_, total), _ = jax.lax.scan(segment, start, times)
        return -total.mean() / env.max_steps

    def _optimizer(self) -> optax.GradientTransformation:
        schedule = optax.cosine_decay_schedule(self.learning_rate, self.iterations)
        return optax.chain(optax.clip_by_global_norm(self.clip_norm), optax.adam(schedule))
