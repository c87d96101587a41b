"""Proximal policy optimisation with GAE, a separate critic and a learnable, state-independent exploration.

The critic sees the *ideal* observation, without the sensors' noise: it is needed in training only, where the simulator
knows it. At 500 Hz a step changes the value less than the noise does, and advantages made of noisy values led training
down again (docs/earlier_results.md).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, Key

from spota.policies.network import FNN
from spota.polopt.checks import at_least_one, divides, positive
from spota.polopt.experience import Actor, Experience, explore, explore_on_host
from spota.polopt.gae import advantages
from spota.polopt.mesh import on_shards
from spota.polopt.optimizer import Optimizer, refuse_memory
from spota.polopt.rows import AXIS, Rows, all_rows, my_share, sum_over_devices
from spota.polopt.smoothing import smoothed, width_for
from spota.sim.acting import remembers
from spota.sim.domain import Domains, count
from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.rollout import pure


class Critic(eqx.Module):
    """The value of an ideal observation, in units of 1/(1 − γ) largest rewards: at most 1, and positive if they are."""

    body: FNN

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "*n"]:
        """V(o)."""
        return self.body.features(observation)[0]


class Nets(eqx.Module):
    """What Adam moves."""

    actor: Actor
    critic: Critic


class PPOState(eqx.Module):
    """What PPO carries from one iteration to the next."""

    nets: Nets
    adam: Any
    iteration: Int[Array, ""]


class Batch(eqx.Module):
    """What the updates of an iteration learn from: channel first, then time and rollout, or both as one axis."""

    observations: Float[Array, "d *n"]
    ideals: Float[Array, "d *n"]
    actions: Float[Array, "a *n"]
    log_likelihoods: Float[Array, "*n"]
    advantages: Float[Array, "*n"]
    targets: Float[Array, "*n"]
    alive: Bool[Array, "*n"]


@dataclass(frozen=True)
class PPO(Optimizer):
    """The defaults are the *tuned* setting; `PPO.paper()` has the paper's numbers."""

    with_memory: ClassVar[bool] = False

    iterations: int = 60
    """Updates of the batch."""
    rollouts: int = 20
    """Rollouts a domain and iteration, n_τ."""
    learning_rate: float = 5e-4
    """Adam's first step size."""
    decay: bool = True
    """Whether the step size goes down to zero linearly."""
    gamma: float = 0.998
    """Temporal discount γ."""
    lam: float = 0.98
    """λ of the advantage estimation; at 500 Hz, 0.98 looks 0.1 s ahead, and 0.95 only 40 ms."""
    epochs: int = 4
    """Passes over a batch."""
    minibatches: int = 50
    """Updates a pass; each takes random time steps of all rollouts."""
    clip: float = 0.2
    """How far the likelihood ratio may move."""
    initial_std: float = 0.3
    """Exploration at the start, of the scaled action."""
    clip_norm: float = 0.5
    """Longer gradients are shortened to this length."""
    smoothing: float = 0.0
    """Width of a kernel around each training domain, in standard deviations of ν, if these are fewer than a hundred; 0
    trains on the domains alone."""
    evaluate_every: int = 1
    evaluation_rollouts: int = 10
    fresh_domains: bool = False

    def __post_init__(self):
        """Refuse settings that cannot work."""
        at_least_one(self, "iterations", "rollouts", "epochs", "minibatches", "evaluate_every", "evaluation_rollouts")
        positive(self, "learning_rate", "clip", "initial_std", "clip_norm")
        if not 0 <= self.gamma < 1:
            raise ValueError(f"gamma = {self.gamma}: γ lies between 0 and 1, 1 excluded.")
        if not 0 <= self.lam <= 1:
            raise ValueError(f"lam = {self.lam}: λ lies between 0 and 1.")
        if not self.smoothing >= 0:
            raise ValueError(f"smoothing = {self.smoothing}: it cannot be negative.")

    def rollouts_on(self, n: int) -> tuple[int, int]:
        """In an update and in an evaluation: so many per domain."""
        return self.rollouts * n, self.evaluation_rollouts * n

    def width(self, n: int) -> float:
        """Of the kernel around each of n domains."""
        return width_for(n, self.smoothing)

    def check(self, env: Platform):
        """Refuse an environment whose steps the minibatches do not divide."""
        divides("minibatches", self.minibatches, env)

    @classmethod
    def paper(cls) -> "PPO":
        """The values of tab_exp_hparams; what the table leaves open (epochs, minibatches, clip) is ours."""
        return cls(
            iterations=400, rollouts=10, learning_rate=1e-4, decay=False, gamma=0.999, lam=0.95, epochs=10,
            minibatches=10, initial_std=1.0, evaluate_every=5,
        )  # fmt: skip

    def begin(self, key: Key[Array, ""], env: Platform, policy: Any) -> PPOState:
        """A new critic, a new optimizer, exploration as at the start."""
        if remembers(policy):
            refuse_memory(self)
        actor = Actor(policy, jnp.full(len(env.actions), np.log(self.initial_std), jnp.float32))
        nets = Nets(actor, new_critic(key, policy))
        return PPOState(nets, self._optimizer().init(cast(Any, nets)), jnp.int32(0))

    def update(self, env: Platform, domains: Domains, key: Key[Array, ""], state: PPOState) -> tuple[PPOState, dict]:
        """Collect rollouts on the domains and learn from them."""
        rows, k_learn = self.tried(env, domains, key, self.rollouts)
        return self.learn(env, rows, k_learn, state)

    def tried(self, env: Platform, domains: Domains, key: Key[Array, ""], rollouts: int) -> tuple[Rows, Key[Array, ""]]:
        """What an update runs, so many rollouts a domain, and the key that is left to learn."""
        k_rows, k_smooth, k_learn = jax.random.split(key, 3)
        rows = all_rows(domains, k_rows, rollouts)
        return smoothed(k_smooth, env.domain, rows, self.width(count(domains))), k_learn

    def learn(self, env: Platform, rows: Rows, key: Key[Array, ""], state: PPOState) -> tuple[PPOState, dict]:
        """Collect these rows, each device its share, then several passes of minibatch updates."""
        return self.learn_from(env, explore(pure(env), my_share(rows), state.nets.actor), key, state)

    def learn_from(
        self, env: Platform, seen: Experience, key: Key[Array, ""], state: PPOState
    ) -> tuple[PPOState, dict]:
        """Several passes of minibatch updates, from this device's share of the experience."""
        return self.fit(judged(self, env, state.nets, seen), key, state)

    def update_on_host(
        self, env: HostEnv, mesh: Mesh, keys: Key[Array, "P"], domains: dict[str, Float[Array, "P n"]], states: PPOState
    ) -> tuple[PPOState, dict]:
        """The same on a host environment: experience from its machines, then the compiled passes."""
        rows, k_learn = tried_rows(self, env, keys, domains, self.rollouts)
        return self.learn_on_host(env, mesh, rows, k_learn, states)

    def learn_on_host(
        self, env: HostEnv, mesh: Mesh, rows: Rows, keys: Key[Array, "P"], states: PPOState
    ) -> tuple[PPOState, dict]:
        """Collect these rows of all problems and learn from them."""
        return learned(self, env, mesh, keys, explore_on_host(env, rows, states.nets.actor), states)

    def fit(self, batch: Batch, key: Key[Array, ""], state: PPOState) -> tuple[PPOState, dict]:
        """All updates of an iteration; each pass takes the time steps in another order."""
        orders = shuffled(key, self.epochs, batch.alive.shape[0]).reshape(self.epochs * self.minibatches, -1)

        @jax.custom_batching.sequential_vmap  # problem by problem: batched products of small matrices are slow
        def passes(batch, start, orders):
            return jax.lax.scan(lambda state, times: self._minibatch(batch, state, times), start, orders)

        (nets, adam), figures = passes(batch, (state.nets, state.adam), orders)
        figures = {name: values.mean() for name, values in figures.items()}
        moved = PPOState(nets, adam, state.iteration)
        finite = jnp.isfinite(figures["loss"])
        kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, state)
        std = jnp.exp(kept.nets.actor.log_std).mean()
        return replace(kept, iteration=state.iteration + 1), {**figures, "std": std, "finite": finite}

    def policy(self, state: PPOState) -> Any:
        """The mean policy."""
        return state.nets.actor.policy

    def _minibatch(self, batch: Batch, state: tuple[Any, Any], times: Int[Array, "t"]) -> tuple[tuple[Nets, Any], dict]:
        nets, adam = state
        gradient, figures = jax.grad(loss, has_aux=True)(nets, at_times(batch, times), self.clip)
        gradient, figures = sum_over_devices((gradient, figures))  # the only meeting of the devices in an update
        taken = jnp.maximum(figures.pop("taken"), 1.0)
        gradient, figures = jax.tree.map(lambda total: total / taken, (gradient, figures))
        step, adam = self._optimizer().update(gradient, adam)
        return (cast(Nets, optax.apply_updates(nets, step)), adam), figures

    def _optimizer(self) -> optax.GradientTransformation:
        updates = self.iterations * self.epochs * self.minibatches
        rate = optax.linear_schedule(self.learning_rate, 0.0, updates) if self.decay else self.learning_rate
        return optax.flatten(optax.chain(optax.clip_by_global_norm(self.clip_norm), optax.adam(rate)))


@eqx.filter_jit
def tried_rows(
    ppo: PPO, env: Platform, keys: Key[Array, "P"], domains: dict[str, Float[Array, "P n"]], rollouts: int
) -> tuple[Rows, Key[Array, "P"]]:
    """The rows of all problems."""
    return jax.vmap(lambda key, own: ppo.tried(env, own, key, rollouts))(keys, domains)


@eqx.filter_jit
def learned(
    ppo: PPO, env: Platform, mesh: Mesh, keys: Key[Array, "P"], seen: Experience, states: PPOState
) -> tuple[PPOState, dict]:
    """What an update makes of the experience of all problems: one program."""
    return on_shards(mesh, lambda key, own, state: ppo.learn_from(env, my_share(own), key, state), keys, seen, states)


def new_critic(key: Key[Array, ""], policy: Any) -> Critic:
    """A critic of the policy's size that says one half everywhere; any network has a contract and hidden layers."""
    sizes = (len(policy.contract.observations), *policy.hidden, 1)
    orthogonal = jax.nn.initializers.orthogonal()
    weights = [orthogonal(k, (o, i)) for k, i, o in zip(jax.random.split(key, len(sizes) - 1), sizes, sizes[1:])]  # noqa: B905
    weights[-1] = 0.1 * weights[-1]
    biases = [jnp.zeros(o) for o in sizes[1:-1]] + [jnp.full(1, 0.5, jnp.float32)]
    return Critic(FNN(tuple(weights), tuple(biases), policy.contract))


def judged(ppo: PPO, env: Platform, nets: Nets, seen: Experience) -> Batch:
    """Advantages, value targets and likelihoods for the updates."""
    observations, ideals, actions = (jnp.moveaxis(x, 1, 0) for x in (seen.observations, seen.ideals, seen.actions))
    rewards = (1 - ppo.gamma) * seen.rewards / max(abs(env.max_reward), abs(env.min_reward))
    values, last = nets.critic(ideals), nets.critic(seen.last_ideal)
    raw = advantages(rewards, values, last, seen.alive, seen.survived, ppo.gamma, ppo.lam)
    likelihoods = nets.actor.log_likelihood(observations, actions)
    return Batch(observations, ideals, actions, likelihoods, normalised(raw, seen.alive), raw + values, seen.alive)


def normalised(raw: Float[Array, "T n"], alive: Bool[Array, "T n"]) -> Float[Array, "T n"]:
    """Mean zero and standard deviation one over the steps that were taken, on all devices."""
    taken = alive.astype(raw.dtype)
    size = jax.lax.psum(taken.sum(), AXIS)
    mean = jax.lax.psum((taken * raw).sum(), AXIS) / size
    variance = jax.lax.psum((taken * (raw - mean) ** 2).sum(), AXIS) / size
    return taken * (raw - mean) / (jnp.sqrt(variance) + 1e-8)


def shuffled(key: Key[Array, ""], passes: int, steps: int) -> Int[Array, "passes steps"]:
    """The numbers below `steps` in a random order, for every pass.

    Words with random high bits and the number in their low bits are sorted: ten times faster than
    `jax.random.permutation`, which sorts pairs, twice.
    """
    low = (steps - 1).bit_length()
    words = jax.random.bits(key, (passes, steps)) << low | jnp.arange(steps, dtype=jnp.uint32)[None]
    return (jnp.sort(words, axis=1) & np.uint32(2**low - 1)).astype(jnp.int32)


def at_times(batch: Batch, times: Int[Array, "t"]) -> Batch:
    """All rollouts at some time steps, as one axis: whole rows of memory, so that it costs little."""

    def take(x):
        rows = jnp.take(x, times, axis=x.ndim - 2, mode="clip")
        return rows.reshape(*x.shape[:-2], -1)

    return jax.tree.map(take, batch)


def loss(nets: Nets, batch: Batch, clip: float) -> tuple[Float[Array, ""], dict]:
    """The clipped surrogate, minus, and the critic's squared error: sums over the steps that were taken."""
    taken = batch.alive.astype(jnp.float32)
    ratio = jnp.exp(nets.actor.log_likelihood(batch.observations, batch.actions) - batch.log_likelihoods)
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    surrogate = taken @ jnp.minimum(ratio * batch.advantages, clipped * batch.advantages)
    error = taken @ (nets.critic(batch.ideals) - batch.targets) ** 2
    moved = taken @ (jnp.abs(ratio - 1) > clip).astype(jnp.float32)
    total = error - surrogate
    return total, {"loss": total, "critic_error": error, "clipped": moved, "taken": taken.sum()}
