"""EPOpt: PPO on the worst share of the rollouts, a policy search for the hard domains."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from spota.polopt.ppo import PPO, PPOState, exploring
from spota.polopt.rows import AXIS, Rows, all_rows, my_share, row_returns
from spota.polopt.smoothing import smoothed
from spota.sim.domain import Domains
from spota.sim.env import Platform


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
    def worst_share(self) -> float:
        """The best iterate is the one whose worst rollouts are best: what the updates improve."""
        return self.epsilon

    def update(self, env: Platform, domains: Domains, key: Key[Array, ""], state: PPOState) -> tuple[PPOState, dict]:
        """Run many, learn from the worst."""
        k_rows, k_smooth, k_learn = jax.random.split(key, 3)
        few, many = (
            smoothed(k_smooth, env.domain, all_rows(domains, k_rows, rollouts), self.smoothing)
            for rollouts in (self.rollouts, self.rollouts * round(1 / self.epsilon))
        )
        worst = jnp.argsort(_returns_of_all(env, state, many))[: few.keys.shape[0]]
        chosen = jax.tree.map(lambda a, b: jnp.where(state.iteration < self.warm_up_iterations, a, b[worst]), few, many)
        return self.learn(env, chosen, k_learn, state)


def _returns_of_all(env: Platform, state: PPOState, rows: Rows) -> Float[Array, "n"]:
    """Every device runs its share with exploration, and learns the returns of all."""
    mine, _ = row_returns(env, exploring(state.nets.actor), my_share(rows))
    return jax.lax.all_gather(mine, AXIS, tiled=True)
