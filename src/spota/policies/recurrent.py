"""A network with units that remember: a leaky Elman cell beside the observation, trained through time."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from spota.policies.contract import Contract
from spota.policies.network import layered, scaled


class Remembered(eqx.Module):
    """What so many rollouts remember: the last action, and the units' values."""

    done: Float[Array, "a n"]
    units: Float[Array, "m n"]


class Recurrent(eqx.Module):
    """tanh layers on the scaled observation o and on m units z that remember.

    z ← z + σ(share) · (tanh(cell · [o, last action, z] + cell_bias) − z): each unit follows with a lag of its own.
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, "_"], ...]
    cell: Float[Array, "m _"]
    cell_bias: Float[Array, "m"]
    cell_share: Float[Array, "m"]
    contract: Contract = eqx.field(static=True)

    def start(self, n: int) -> Remembered:
        """Nothing done, and units at zero."""
        return Remembered(jnp.zeros((len(self.contract.actions), n)), jnp.zeros((self.units, n)))

    def step(self, past: Remembered, observation: Float[Array, "d n"]) -> tuple[Remembered, Float[Array, "a n"]]:
        """The action without exploration, and what is remembered then."""
        now = scaled(self.contract, observation)
        goal = jnp.tanh(self.cell @ jnp.concatenate([now, past.done, past.units]) + self.cell_bias[:, None])
        units = past.units + jax.nn.sigmoid(self.cell_share)[:, None] * (goal - past.units)
        action = jnp.tanh(layered(self.weights, self.biases, jnp.concatenate([now, units])))
        return Remembered(action, units), action

    def save(self, path: str | Path) -> Path:
        """Write a policy file; `spota.load` reads it."""
        from spota.policies.storage import save  # which knows this class

        return save(self, path)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Sizes of the hidden layers."""
        return tuple(bias.shape[0] for bias in self.biases[:-1])

    @property
    def units(self) -> int:
        """How many units remember."""
        return self.cell_bias.shape[0]
