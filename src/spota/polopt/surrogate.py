"""Gradients where a simulator has none: through a model of it that is learned from its rollouts, round by round.

A round records rollouts that explore a little, fits their dynamics and the reward (`learned_model`), and makes some
updates with gradients through that model. The loop evaluates on the simulator itself: what is only imagined never wins.
"""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, Key

from spota.polopt.analytic import Analytic
from spota.polopt.checks import at_least_one, positive
from spota.polopt.experience import Actor, exploring
from spota.polopt.learned_model import Model, Recording, Scale, Seen, imagined, laws
from spota.polopt.mesh import on_shards
from spota.polopt.optimizer import Optimizer
from spota.polopt.polynomials import Terms, terms
from spota.polopt.reward_net import RewardNet, fit, new_net
from spota.polopt.rows import Rows, all_rows, mean_over_devices, my_share
from spota.polopt.smoothing import smoothed, width_for
from spota.sim.domain import Domains, count
from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.host_groups import group_steps

MOST_TERMS = 150
"""Of a polynomial: cubic ones of up to seven signals and commands, quadratic ones of up to fifteen."""
STEPS_A_TERM = 4
"""Steps of an episode for each, at least."""


class SurrogateState(eqx.Module):
    """What is carried from one round to the next: the policy, the optimizer's memory, and what is known of the rest."""

    policy: Any
    memory: Any
    reward: RewardNet
    scale: Scale
    seen: Seen
    rounds: Int[Array, ""]


@dataclass(frozen=True)
class Surrogate(Optimizer):
    """SOAP, as `Analytic`, on the gradient of returns that a learned model imagines."""

    iterations: int = 6
    """Rounds."""
    rollouts: int = 1
    """Recorded rollouts a domain and round."""
    updates: int = 30
    """Of the policy in a round."""
    rows: int = 16
    """Imagined rollouts in an update: a random choice of the recorded ones."""
    learning_rate: float = 2e-2
    """The largest step size, which rises first and falls with a cosine over all updates."""
    exploration: float = 0.1
    """Standard deviation of what is added to recorded actions, so that commands and what they do can be told apart."""
    reward_updates: int = 600
    """Of the reward's network in a round."""
    barrier: float = 30.0
    """What it costs in a step to be as far outside of what was seen as that is wide, in largest rewards."""
    smoothing: float = 0.0
    """Width of a kernel around each training domain, in standard deviations of ν, if these are fewer than a hundred; 0
    trains on the domains alone."""
    evaluate_every: int = 1
    evaluation_rollouts: int = 10
    fresh_domains: bool = False

    def __post_init__(self):
        """Refuse settings that cannot work."""
        at_least_one(
            self, "iterations", "rollouts", "updates", "rows", "reward_updates", "evaluate_every", "evaluation_rollouts"
        )
        positive(self, "learning_rate", "exploration")
        if not (self.barrier >= 0 and self.smoothing >= 0):
            raise ValueError(f"barrier = {self.barrier}, smoothing = {self.smoothing}: neither can be negative.")

    def rollouts_on(self, n: int) -> tuple[int, int]:
        """In a round and in an evaluation: so many per domain."""
        return self.rollouts * n, self.evaluation_rollouts * n

    def width(self, n: int) -> float:
        """Of the kernel around each of n domains."""
        return width_for(n, self.smoothing)

    def begin(self, key: Key[Array, ""], env: Platform, policy: Any) -> SurrogateState:
        """Nothing is known yet."""
        d = len(env.observations)
        k = d + len(env.actions)
        nowhere = Seen(jnp.full(d, jnp.inf), jnp.full(d, -jnp.inf))
        memory = self._steps().init(policy)
        return SurrogateState(policy, memory, new_net(key, k), Scale(jnp.zeros(k), jnp.ones(k)), nowhere, jnp.int32(0))

    def update(self, env: Platform, domains: Domains, key: Key[Array, ""], state: SurrogateState) -> Any:
        """A pure environment has gradients of its own."""
        del domains, key, state
        raise ValueError(
            f"A learned model is for simulators without gradients, and {env.name} has them; write --solver analytic."
        )

    def update_on_host(
        self,
        env: HostEnv,
        mesh: Mesh,
        keys: Key[Array, "P"],
        domains: dict[str, Float[Array, "P n"]],
        states: SurrogateState,
    ) -> tuple[SurrogateState, dict]:
        """One round of all problems."""
        rows, k_learn = _rows(self, env, keys, domains)
        recorded = record(env, rows, states.policy, self.exploration)
        states = _looked(mesh, recorded, states)
        of = self.terms(env)
        every, known = zip(*(laws(of, *_one((states.scale, recorded), p)) for p in range(keys.shape[0])), strict=True)
        return _learned(self, env, mesh, k_learn, recorded, jnp.stack(every), jnp.stack(known), states)

    def policy(self, state: SurrogateState) -> Any:
        """The current policy."""
        return state.policy

    def terms(self, env: Platform) -> Terms:
        """Of the dynamics' polynomials."""
        return terms(len(env.observations) + len(env.actions), min(MOST_TERMS, env.max_steps // STEPS_A_TERM))

    def learn(
        self, env: Platform, key: Key[Array, ""], model: Model, state: SurrogateState
    ) -> tuple[SurrogateState, dict]:
        """The updates of a round."""

        def update(state, key):
            policy, memory = state
            k_choose, k_noise = jax.random.split(key)
            some = _taken(model, my_share(_chosen(k_choose, model.known.shape[0], self.rows)))
            keys = my_share(jax.random.split(k_noise, self.rows))

            def loss(policy):
                total = imagined(env, policy, some, self.terms(env), keys, self.barrier, env.max_steps)
                return -jnp.where(some.known, total, 0.0).sum() / jnp.maximum(some.known.sum(), 1) / env.max_steps

            value, gradient = mean_over_devices(jax.value_and_grad(loss)(policy))
            finite = jnp.isfinite(optax.tree.norm(gradient)) & jnp.isfinite(value)
            step, moved = self._steps().update(gradient, memory, policy)
            after = optax.apply_updates(policy, step), moved
            return jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, state), (value, finite)

        begin = state.policy, state.memory
        (policy, memory), (value, finite) = jax.lax.scan(update, begin, jax.random.split(key, self.updates))
        after = replace(state, policy=policy, memory=memory, rounds=state.rounds + 1)
        return after, {"imagined": -value[-1] * env.max_steps * _largest(env), "finite": finite.any()}

    def _steps(self) -> optax.GradientTransformation:
        return Analytic(iterations=self.iterations * self.updates, learning_rate=self.learning_rate).optimizer()


def record(env: HostEnv, rows: Rows, policies: Any, exploration: float) -> Recording:
    """Rollouts of all problems with a little noise on the actions; leaves have a leading axis P."""
    noise = jnp.full((rows.keys.shape[0], len(env.actions)), np.log(exploration), jnp.float32)
    steps, end = group_steps(env, exploring, jax.vmap(Actor)(policies, noise), rows.domains, rows.keys)
    nexts = np.concatenate([steps.ideal[:, 1:], np.asarray(end.ideal)[:, None]], axis=1)
    reached = _reached(env, rows.domains, steps.command)
    kept = steps.ideal, reached, steps.reward / _largest(env), steps.alive, nexts, end.alive
    return jax.vmap(Recording)(rows, *map(jnp.asarray, kept))


@eqx.filter_jit
def _rows(
    surrogate: Surrogate, env: Platform, keys: Key[Array, "P"], domains: dict[str, Float[Array, "P n"]]
) -> tuple[Rows, Key[Array, "P"]]:
    def one(key, own):
        k_rows, k_smooth, k_learn = jax.random.split(key, 3)
        rows = all_rows(own, k_rows, surrogate.rollouts)
        return smoothed(k_smooth, env.domain, rows, surrogate.width(count(own))), k_learn

    return jax.vmap(one)(keys, domains)


@eqx.filter_jit
def _reached(
    env: Platform, domains: dict[str, Float[Array, "P n"]], commands: Float[Array, "P T a n"]
) -> Float[Array, "P T a n"]:
    """What the physics felt of the commands."""
    return jax.vmap(lambda own, some: jax.vmap(lambda command: env.effects.reach(command, own))(some))(
        domains, commands
    )


@eqx.filter_jit
def _looked(mesh: Mesh, recorded: Recording, states: SurrogateState) -> SurrogateState:
    """What the rollouts tell about sizes, in the first round, and about where survivors go, in all."""

    def one(recorded: Recording, state: SurrogateState) -> SurrogateState:
        x, alive = recorded.inputs, recorded.alive.astype(jnp.float32)[None]
        mean = (alive * x).sum(axis=(1, 2)) / alive.sum()
        spread = jnp.sqrt((alive * (x - mean[:, None, None]) ** 2).sum(axis=(1, 2)) / alive.sum())
        first = Scale(mean, jnp.maximum(spread, 1e-6))
        scale = jax.tree.map(lambda new, old: jnp.where(state.rounds == 0, new, old), first, state.scale)
        d = recorded.ideals.shape[1]
        counts = (recorded.alive & (recorded.survived | ~recorded.survived.any())[None])[None]
        scaled = scale(x)[:d]
        low = jnp.where(counts, scaled, jnp.inf).min(axis=(1, 2))
        high = jnp.where(counts, scaled, -jnp.inf).max(axis=(1, 2))
        seen = Seen(jnp.minimum(low, state.seen.low), jnp.maximum(high, state.seen.high))
        return replace(state, scale=scale, seen=seen)

    return on_shards(mesh, one, recorded, states)


@eqx.filter_jit
def _learned(
    surrogate: Surrogate,
    env: Platform,
    mesh: Mesh,
    keys: Key[Array, "P"],
    recorded: Recording,
    every: Float[Array, "P F d n"],
    known: Bool[Array, "P n"],
    states: SurrogateState,
) -> tuple[SurrogateState, dict]:
    """The reward's fit and the policy's updates, of all problems as one program."""

    def one(key, recorded: Recording, every, known, state: SurrogateState):
        k_reward, k_learn = jax.random.split(key)
        x = state.scale(recorded.inputs).reshape(state.scale.mean.shape[0], -1)
        taken = recorded.alive.astype(jnp.float32).reshape(-1)
        net = fit(k_reward, state.reward, x, recorded.rewards.reshape(-1), taken, surrogate.reward_updates)
        model = Model(every, known, recorded.ideals[0], recorded.rows, state.scale, state.seen, net)
        return surrogate.learn(env, k_learn, model, replace(state, reward=net))

    return on_shards(mesh, one, keys, recorded, every, known, states)


def _chosen(key: Key[Array, ""], n: int, rows: int) -> Int[Array, "rows"]:
    """Some of n recorded rollouts at random, each as often as any other, nearly."""
    orders = [jax.random.permutation(k, n) for k in jax.random.split(key, -(-rows // n))]
    return jnp.concatenate(orders)[:rows]


def _taken(model: Model, index: Int[Array, "rows"]) -> Model:
    """The model of some of the recorded rollouts."""
    per_rollout = (model.laws, model.known, model.starts, model.rows)
    laws, known, starts, rows = jax.tree.map(lambda x: jnp.take(x, index, axis=-1), per_rollout)
    return Model(laws, known, starts, rows, model.scale, model.seen, model.reward)


def _one(tree: Any, p: int) -> Any:
    return jax.tree.map(lambda x: x[p], tree)


def _largest(env: Platform) -> float:
    """Reward in a step, whatever its sign."""
    return max(abs(env.max_reward), abs(env.min_reward))
