"""PPO, and gradients through a learned model: what a host environment is solved with unless told otherwise.

PPO finds a policy from nothing and on any simulator, but hardly improves one that is good. A learned model improves
that quickly where the simulator is smooth and its state can be observed, and is no help elsewhere. So both are tried,
and the loop keeps the best policy of all.
"""

from dataclasses import dataclass, fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key

from spota.polopt.ppo import PPO, PPOState
from spota.polopt.surrogate import Surrogate, SurrogateState
from spota.sim.env import Platform
from spota.sim.host import HostEnv


class PolishedState(eqx.Module):
    """Both learners; PPO's works first."""

    ppo: PPOState
    model: SurrogateState


@dataclass(frozen=True)
class Polished(PPO):
    """The settings of PPO, and how much of the work is done with the model."""

    polish: float = 0.25
    """The share of all iterations, the last ones, that are rounds with a learned model."""
    restart: bool = False
    """Whether these rounds begin at the start again, which is good already, and not at what PPO made of it."""
    polish_rows: int = 16
    """Imagined rollouts in an update with the model."""

    def __post_init__(self):
        """Refuse settings that cannot work."""
        super().__post_init__()
        if not 0 <= self.polish < 1:
            raise ValueError(f"polish = {self.polish}: a share of the iterations lies between 0 and 1, 1 excluded.")
        _ = self.model

    @property
    def rounds(self) -> int:
        """With the model."""
        return round(self.polish * self.iterations)

    @property
    def ppo(self) -> PPO:
        """The first part."""
        own = {f.name: getattr(self, f.name) for f in fields(PPO)}
        return PPO(**{**own, "iterations": max(1, self.iterations - self.rounds)})

    @property
    def model(self) -> Surrogate:
        """The second part, on rollouts as PPO has them."""
        same = {
            name: getattr(self, name) for name in ("rollouts", "smoothing", "evaluate_every", "evaluation_rollouts")
        }
        return Surrogate(iterations=max(1, self.rounds), rows=self.polish_rows, **same)

    def begin(self, key: Key[Array, ""], env: Platform, policy: Any) -> PolishedState:
        """Both at the start."""
        k_ppo, k_model = jax.random.split(key)
        return PolishedState(self.ppo.begin(k_ppo, env, policy), self.model.begin(k_model, env, policy))

    def update(self, env: Platform, domains: Any, key: Key[Array, ""], state: Any) -> Any:
        """Only of a host environment: others have gradients of their own."""
        return self.model.update(env, domains, key, state)

    def update_on_host(
        self,
        env: HostEnv,
        mesh: Mesh,
        keys: Key[Array, "P"],
        domains: dict[str, Float[Array, "P n"]],
        states: PolishedState,
    ) -> tuple[PolishedState, dict]:
        """An update of PPO or, at the end, a round with the model."""
        if not self._polishes(states):
            after, figures = self.ppo.update_on_host(env, mesh, keys, domains, states.ppo)
            return PolishedState(after, states.model), figures
        model = states.model
        if not self.restart and not int(model.rounds[0]):
            model = eqx.tree_at(lambda state: state.policy, model, states.ppo.nets.actor.policy)
        after, figures = self.model.update_on_host(env, mesh, keys, domains, model)
        return PolishedState(states.ppo, after), figures

    def policy(self, state: PolishedState) -> Any:
        """Of the learner that worked last."""
        polished = state.model.rounds > 0
        pairs = self.model.policy(state.model), self.ppo.policy(state.ppo)
        return jax.tree.map(lambda new, old: jnp.where(polished, new, old), *pairs)

    def _polishes(self, states: PolishedState) -> bool:
        return self.rounds > 0 and int(states.ppo.iteration[0]) >= self.iterations - self.rounds
