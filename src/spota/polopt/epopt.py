"""EPOpt: PPO on the worst share of the rollouts, a policy search for the hard domains."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key

from spota.polopt.experience import exploring
from spota.polopt.ppo import PPO, PPOState, tried_rows
from spota.polopt.rows import AXIS, Rows, my_share, row_returns
from spota.sim.domain import Domains
from spota.sim.env import Platform
from spota.sim.host import HostEnv
from spota.sim.host_groups import group_returns
from spota.sim.rollout import pure


@dataclass(frozen=True)
class EPOpt(PPO):
    """After a warm-up on all rollouts, learn from the worst ε of them by return.

    1/ε times as many are run, so that an update keeps its batch. A rollout is a function of its domain and key: the
    first pass only sums rewards, and the chosen rows are run again to learn from them. So nothing large is stored.
    """

    epsilon: float = 0.2
    """The share of the rollouts that counts, the CVaR parameter ε of tab_exp_hparams."""
    warm_up: int = 40
    """Iterations on all rollouts before; a training that is no longer than that has two thirds of its own."""

    def __post_init__(self):
        """Refuse settings that cannot work."""
        super().__post_init__()
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"epsilon = {self.epsilon}: ε lies between 0 and 1, 0 excluded.")

    @property
    def warm_up_iterations(self) -> int:
        """The warm-up; where it would take the whole training, two thirds of that."""
        return self.warm_up if self.warm_up < self.iterations else round(2 / 3 * self.iterations)

    @property
    def many(self) -> int:
        """Rollouts a domain that the worst are chosen from."""
        return self.rollouts * round(1 / self.epsilon)

    @property
    def worst_share(self) -> float:
        """The best iterate is the one whose worst rollouts are best: what the updates improve."""
        return self.epsilon

    def update(self, env: Platform, domains: Domains, key: Key[Array, ""], state: PPOState) -> tuple[PPOState, dict]:
        """Run many, learn from the worst."""
        few, k_learn = self.tried(env, domains, key, self.rollouts)
        many, _ = self.tried(env, domains, key, self.many)
        worst = jnp.argsort(_returns_of_all(env, state, many))[: few.keys.shape[0]]
        chosen = jax.tree.map(lambda a, b: jnp.where(state.iteration < self.warm_up_iterations, a, b[worst]), few, many)
        return self.learn(env, chosen, k_learn, state)

    def update_on_host(
        self, env: HostEnv, mesh: Mesh, keys: Key[Array, "P"], domains: dict[str, Float[Array, "P n"]], states: PPOState
    ) -> tuple[PPOState, dict]:
        """The same on a host environment; in the warm-up the many are not run at all."""
        if int(states.iteration[0]) < self.warm_up_iterations:
            return super().update_on_host(env, mesh, keys, domains, states)
        many, k_learn = tried_rows(self, env, keys, domains, self.many)
        earned, _ = group_returns(env, exploring, states.nets.actor, many.domains, many.keys)
        worst = jnp.asarray(np.argsort(earned, axis=1)[:, : earned.shape[1] * self.rollouts // self.many])
        chosen = jax.vmap(lambda rows, index: jax.tree.map(lambda x: x[index], rows))(many, worst)
        return self.learn_on_host(env, mesh, chosen, k_learn, states)


def _returns_of_all(env: Platform, state: PPOState, rows: Rows) -> Float[Array, "n"]:
    """Every device runs its share with exploration, and learns the returns of all."""
    mine, _ = row_returns(pure(env), exploring(state.nets.actor), my_share(rows))
    return jax.lax.all_gather(mine, AXIS, tiled=True)
