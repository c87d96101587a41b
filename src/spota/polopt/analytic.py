"""Policy gradients by differentiating through the simulator: no critic, no exploration, very little noise.

The reward of a rollout ends with a failure, and a failure has no gradient. A smooth barrier in the *training* objective
stands in for it (`polopt.barrier`): it grows as a rollout comes close to a bound (`Env.danger`), and is zero elsewhere.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from spota.polopt.barrier import Barrier, Scalar
from spota.polopt.checks import at_least_one, positive
from spota.polopt.optimizer import Optimizer
from spota.polopt.rows import AXIS, Rows, all_rows, mean_over_devices, my_share
from spota.polopt.smoothing import smoothed, width_for
from spota.polopt.soap import scale_by_soap
from spota.polopt.way_back import passed
from spota.sim import randomness, rollout
from spota.sim.acting import Act, acting_with, stepping
from spota.sim.domain import Domains, count
from spota.sim.env import Env, Policy

MANY = 2000
"""Domains that an evaluation takes at most: more of them cost more than the updates, and tell hardly more."""


class AnalyticState(eqx.Module):
    """The policy, the optimizer's memory, and how many updates there were."""

    policy: Any
    memory: Any
    updates: Int[Array, ""]


@dataclass(frozen=True)
class Analytic(Optimizer):
    """SOAP on the gradient of the simulated return; the step size rises for a few updates, then falls with a cosine."""

    iterations: int = 150
    """Updates."""
    learning_rate: float = 2e-2
    """The largest step size."""
    warm_up: int = 20
    """Updates until the step size is the largest: the first gradients say little about the scale of the others."""
    rows: int = 500
    """Rollouts in an update: shared among the domains or, where these are more, one on each of a random choice."""
    rollouts: int = 20
    """Rollouts per domain at most."""
    clip_norm: float = 1.0
    """Longer gradients are shortened to this length."""
    horizon: int | None = None
    """Steps that a gradient looks ahead, with weights that fall exponentially; None: to the end."""
    outlier: float | None = None
    """Rollouts whose gradient is more than so many times the median's are shortened to that; None: none is. It takes
    almost twice the time."""
    cut: float | None = None
    """On the way back a rollout's gradient is cut where it is more than so many times as large as those of the others
    usually are, see `polopt.way_back`; None: nowhere."""
    barrier: float = 100.0
    """Weight of the barrier, in return."""
    barrier_start: float = 0.7
    """Where the barrier begins, as a share of the way to failure; a rollout that starts closer begins free of it."""
    barrier_end: float | None = None
    """Where it begins at the last update: on its way there it becomes steeper, and costs the same at the bound. None:
    where it began."""
    smoothing: float = 0.0
    """Width of a kernel around each training domain, in standard deviations of ν, if these are fewer than a hundred; 0
    trains on the domains alone."""
    evaluate_every: int = 20
    """Updates between two evaluations."""
    evaluation_rows: int = 400
    """Rollouts in an evaluation, shared among the domains: one per domain at least, and at most `rollouts`."""
    fresh_domains: bool = False

    def __post_init__(self):
        """Refuse settings that cannot work."""
        at_least_one(self, "iterations", "warm_up", "rows", "rollouts", "evaluate_every", "evaluation_rows")
        positive(self, "learning_rate", "clip_norm")
        positive(self, *(name for name in ("outlier", "cut") if getattr(self, name) is not None))
        if self.horizon is not None:
            at_least_one(self, "horizon")
        if not (self.barrier >= 0 and self.smoothing >= 0):
            raise ValueError(f"barrier = {self.barrier}, smoothing = {self.smoothing}: neither can be negative.")
        if self.barrier_end is not None and not self.barrier_start <= self.barrier_end < 1:
            raise ValueError(
                f"barrier_end = {self.barrier_end}: the barrier moves from barrier_start = {self.barrier_start} "
                "towards failure, which is 1, and ends before it; write barrier_end=0.95."
            )

    def rollouts_on(self, n: int) -> tuple[int, int]:
        """In an update and in an evaluation: about as many as wanted; an evaluation has one per domain at least, and
        of thousands of domains the first ones."""
        return min(n, self.rows) * self._each(self.rows, n), min(n, MANY) * self._each(self.evaluation_rows, n)

    def _each(self, rows: int, n: int) -> int:
        """Rollouts per domain that make the rows full."""
        return min(self.rollouts, -(-rows // n))

    def width(self, n: int) -> float:
        """Of the kernel around each of n domains."""
        return width_for(n, self.smoothing)

    def begin(self, key: Key[Array, ""], env: Env, policy: Any) -> AnalyticState:
        """An optimizer without memory."""
        del key, env
        return AnalyticState(policy, self.optimizer().init(policy), jnp.int32(0))

    def update(
        self, env: Env, domains: Domains, key: Key[Array, ""], state: AnalyticState
    ) -> tuple[AnalyticState, dict]:
        """One step; a gradient that is not finite is left out."""
        k_choose, k_rows, k_smooth = jax.random.split(key, 3)
        rows = all_rows(self._chosen(k_choose, domains), k_rows, self._each(self.rows, count(domains)))
        rows = my_share(smoothed(k_smooth, env.domain, rows, self.width(count(domains))))
        barrier = self.barrier_at(state.updates / self.iterations)
        value, gradient = mean_over_devices(self.slope(state.policy, env, rows, barrier))
        norm = optax.tree.norm(gradient)
        finite = jnp.isfinite(norm)
        step, memory = self.optimizer().update(gradient, state.memory, state.policy)
        moved = AnalyticState(optax.apply_updates(state.policy, step), memory, state.updates + 1)
        state = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, state)
        return state, {"objective": -value * env.max_steps, "gradient_norm": norm, "finite": finite}

    def _chosen(self, key: Key[Array, ""], domains: Domains) -> Domains:
        """The domains of an update: all, or as many as it has rows."""
        if count(domains) <= self.rows:
            return domains
        chosen = jax.random.permutation(key, count(domains))[: self.rows]
        return {name: column[chosen] for name, column in domains.items()}

    def policy(self, state: AnalyticState) -> Any:
        """The current policy."""
        return state.policy

    def barrier_at(self, share: Scalar) -> Barrier:
        """The barrier after this share of all updates."""
        first = Barrier(self.barrier, self.barrier_start)
        return first if self.barrier_end is None else first.moved(self.barrier_end, share)

    def slope(
        self, policy: Policy, env: Env, rows: Rows, barrier: Barrier | None = None
    ) -> tuple[Float[Array, ""], Any]:
        """The loss of these rows and its gradient, in which no rollout counts for more than `outlier` others."""
        if self.outlier is None:
            return jax.value_and_grad(self.loss)(policy, env, rows, barrier)
        still = jnp.zeros((env.max_steps, len(env.actions), rows.keys.shape[0]))
        with_pull = jax.value_and_grad(self._nudged, argnums=3, has_aux=True)
        (value, seen), pull = with_pull(policy, env, rows, still, barrier)
        return value, _through_actions(policy, seen, _shortened(pull, self.outlier), self.horizon)

    def loss(self, policy: Policy, env: Env, rows: Rows, barrier: Barrier | None = None) -> Float[Array, ""]:
        """Minus the mean return with barrier, a step; the first barrier unless there is another one."""
        return self._nudged(policy, env, rows, None, barrier)[0]

    def _nudged(
        self,
        policy: Policy,
        env: Env,
        rows: Rows,
        nudges: Float[Array, "T a n"] | None,
        barrier: Barrier | None,
    ) -> tuple[Float[Array, ""], Float[Array, "T d n"] | None]:
        """The loss if something is added to every action, and what the policy saw."""
        barrier = self.barrier_at(0.0) if barrier is None else barrier
        words, act = randomness.words(rows.keys), acting_with(policy)
        begin = rollout.begin(env, act, rows.domains, rows.keys)
        free = barrier.free(rollout.danger(env, begin.state, rows.domains))

        @partial(jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names(*rollout.KEPT))
        def step(carry, now):
            (world, total), (t, nudge) = carry, now
            nudged = act if nudge is None else _with_nudge(act, nudge)
            world, step = rollout.advance(env, nudged, rows.domains, words, t, passed(world, self.horizon, self.cut))
            cost = barrier.cost(rollout.danger(env, world.state, rows.domains), free)
            total += step.reward - jnp.where(step.alive, cost, 0.0)
            return (world, total), None if nudge is None else step.observation

        start = begin, jnp.zeros(rows.keys.shape)
        (_, total), seen = jax.lax.scan(step, start, (jnp.arange(env.max_steps), nudges))
        return -total.mean() / env.max_steps, seen

    def step_size(self, update: Any) -> Float[Array, ""]:
        """A rise over the warm-up, times a cosine over all updates; they count from 0."""
        rise = jnp.minimum((update + 1) / self.warm_up, 1.0)
        return self.learning_rate * rise * (1 + jnp.cos(jnp.pi * update / self.iterations)) / 2

    def optimizer(self) -> optax.GradientTransformation:
        """What turns gradients into steps."""
        return optax.chain(
            optax.clip_by_global_norm(self.clip_norm), scale_by_soap(), optax.scale_by_learning_rate(self.step_size)
        )


def _shortened(pull: Float[Array, "T a n"], outlier: float) -> Float[Array, "T a n"]:
    """Rollouts whose pull on their actions is larger than `outlier` times the median over all devices, cut to that.

    One that is not finite is left out.
    """
    length = jnp.sqrt((pull**2).sum(axis=(0, 1)))
    most = outlier * jnp.nanmedian(jax.lax.all_gather(length, AXIS, tiled=True))
    share = jnp.where(length > most, most / length, 1.0)[None, None]
    return jnp.where(jnp.isfinite(length)[None, None], share * pull, 0.0)


def _with_nudge(act: Act, nudge: Float[Array, "a n"]) -> Act:
    """The same with something added to the action, of which the policy's memory does not hear."""

    def choose(key, t, memory, observation):
        memory, action = act.choose(key, t, memory, observation)
        return memory, action + nudge

    return Act(act.start, choose)


def _through_actions(
    policy: Policy, seen: Float[Array, "T d n"], pull: Float[Array, "T a n"], horizon: int | None
) -> Any:
    """The gradient of the policy's parameters from that of its actions, on what it saw."""

    def pulled(policy):
        start, step = stepping(policy)

        def pulled_step(carry, now):
            (memory, total), (observation, pull) = carry, now
            memory, action = step(passed(memory, horizon, None), observation)
            return (memory, total + (pull * action).sum()), None

        begin = start(seen.shape[-1]), jnp.zeros(())
        return jax.lax.scan(pulled_step, begin, (jax.lax.stop_gradient(seen), pull))[0][1]

    return jax.grad(pulled)(policy)
