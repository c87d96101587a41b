"""What can be learned of a simulator from recorded rollouts, so that gradients go through it: dynamics and reward.

Noise, delay and dead band are ours and known; learned is only what the physics make of an ideal observation and of the
command that reaches them. Every recorded rollout is a machine of its own, with dynamics of its own. What no surviving
rollout has seen is not known, so that leaving it costs (`barrier`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Bool, Float, Key

from spota.polopt.polynomials import Terms, fitted, values
from spota.polopt.rows import Rows
from spota.sim import randomness
from spota.sim.acting import acting_with
from spota.sim.effects import scale_and_clip
from spota.sim.env import Platform
from spota.sim.rollout import KEPT

BEYOND = 0.5
"""How far outside of what was seen the learned dynamics go on, in half widths; further out they stand still there."""


class Scale(eqx.Module):
    """What makes observations and commands, one after the other, numbers about as large as one."""

    mean: Float[Array, "k"]
    spread: Float[Array, "k"]

    def __call__(self, x: Float[Array, "k *n"]) -> Float[Array, "k *n"]:
        """In units of the spread."""
        return (x - _column(self.mean, x.ndim)) / _column(self.spread, x.ndim)


class Seen(eqx.Module):
    """The lowest and the highest value of every observation in rollouts that survived, scaled."""

    low: Float[Array, "d"]
    high: Float[Array, "d"]

    def beyond(self, x: Float[Array, "d n"]) -> Float[Array, "n"]:
        """The square of how far an observation is outside, in half widths."""
        outside = jnp.maximum(self.low[:, None] - x, 0.0) + jnp.maximum(x - self.high[:, None], 0.0)
        return ((outside / self._half()) ** 2).sum(axis=0)

    def inside(self, x: Float[Array, "d n"]) -> Float[Array, "d n"]:
        """The nearest observation for which the dynamics are believed."""
        return jnp.clip(x, self.low[:, None] - BEYOND * self._half(), self.high[:, None] + BEYOND * self._half())

    def _half(self) -> Float[Array, "d 1"]:
        return jnp.maximum(self.high - self.low, 1e-3)[:, None] / 2


class Recording(eqx.Module):
    """Rollouts of one problem: before each step and after it, batch last."""

    rows: Rows
    ideals: Float[Array, "T d n"]
    reached: Float[Array, "T a n"]
    rewards: Float[Array, "T n"]
    alive: Bool[Array, "T n"]
    nexts: Float[Array, "T d n"]
    survived: Bool[Array, "n"]

    @property
    def inputs(self) -> Float[Array, "k T n"]:
        """What the physics are told in every step."""
        return jnp.moveaxis(jnp.concatenate([self.ideals, self.reached], axis=1), 1, 0)


class Model(eqx.Module):
    """The dynamics of recorded rollouts and the reward of all."""

    laws: Float[Array, "F d n"]
    known: Bool[Array, "n"]
    """Rollouts that were long enough to fit their dynamics."""
    starts: Float[Array, "d n"]
    rows: Rows
    scale: Scale
    seen: Seen
    reward: Callable[[Float[Array, "k n"]], Float[Array, "n"]]
    """Of scaled inputs, in largest rewards."""


def laws(of: Terms, scale: Scale, recording: Recording) -> tuple[Float[np.ndarray, "F d n"], Bool[np.ndarray, "n"]]:
    """The dynamics of every rollout, from scaled inputs to scaled changes, and which of them could be fitted."""
    x = np.asarray(scale(recording.inputs))
    spread = np.asarray(scale.spread)[: recording.ideals.shape[1]]
    change = np.moveaxis((np.asarray(recording.nexts) - np.asarray(recording.ideals)) / spread[:, None], 1, 0)
    alive = np.asarray(recording.alive)
    known = alive.sum(axis=0) >= 2 * len(of)
    found = np.zeros((len(of), spread.size, known.size), np.float32)
    for n in np.flatnonzero(known):
        found[:, :, n] = fitted(of, x[:, :, n], change[:, :, n], alive[:, n])
    return found, known


def imagined(
    env: Platform, policy: Any, model: Model, of: Terms, keys: Key[Array, "n"], barrier: float, steps: int
) -> Float[Array, "n"]:
    """The returns, less the barrier, of rollouts in the model: with new noise, from the recorded starts.

    No step costs more than the largest reward: a rollout of which the model has lost track tells nothing.
    """
    words, act, domains = randomness.words(keys), acting_with(policy), model.rows.domains
    low, high = (tuple(getattr(s, end) for s in env.actions) for end in ("low", "high"))
    d, spread = len(env.observations), model.scale.spread[: len(env.observations), None]

    @partial(jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names(*KEPT))
    def step(carry, t):
        ideal, queue, memory, total = carry
        observation = checkpoint_name(env.effects.observe(words, t, ideal, domains), KEPT[0])
        memory, action = act.choose(words, t, memory, observation)
        command, queue = env.effects.delay(t, queue, scale_and_clip(action, low, high), domains)
        reached = env.effects.reach(checkpoint_name(command, KEPT[1]), domains)
        x = model.scale(jnp.concatenate([ideal, reached]))
        believed = jnp.concatenate([model.seen.inside(x[:d]), x[d:]])
        total += model.reward(believed) - jnp.minimum(barrier * model.seen.beyond(x[:d]), 1.0)
        change = (values(of, believed, jnp)[:, None] * model.laws).sum(axis=0)
        return (ideal + spread * change, queue, memory, total), None

    n = keys.shape[0]
    queue = env.effects.delay.empty(jnp.zeros((len(env.actions), n)))
    begin = model.starts, queue, act.start(n), jnp.zeros(n)
    return jax.lax.scan(step, begin, jnp.arange(steps))[0][3]


def _column(values: Float[Array, "k"], ndim: int) -> Float[Array, "k *ones"]:
    return values.reshape(-1, *(1,) * (ndim - 1))
