"""Policies with parameters: a feed-forward network (FNN 16-16 tanh by default) and a linear map."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from spota.policies.contract import Contract
from spota.sim.env import Platform
from spota.sim.memory import refuse_beyond_memory

SMALL = 0.01
"""The size of a new network's last layer, unless told otherwise."""


@dataclass(frozen=True)
class Gains:
    """The sizes of a new network's first and last layer."""

    first: float = 1.0
    """Observations come in units of their sensors' ranges, and a machine that balances moves within a few percent of
    these: a network whose first layer is not large is linear there, and may stay so."""
    last: float = SMALL
    """A small one does little at first."""


USUAL_GAINS = Gains()


class FNN(eqx.Module):
    """tanh layers on scaled observations; a tanh at the end keeps actions within [−1, 1].

    Observations are clipped to the usual range of their sensor: what lies beyond is treated like the edge of what the
    policy was trained on. Without it, a Ball-Balancer with a plate larger than those in training is driven too hard.
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, "_"], ...]
    contract: Contract = eqx.field(static=True)

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The action without exploration."""
        return jnp.tanh(self.features(observation))

    def features(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """What goes into the last tanh."""
        return layered(self.weights, self.biases, scaled(self.contract, observation))

    def save(self, path: str | Path) -> Path:
        """Write a policy file; `spota.load` reads it."""
        return _save(self, path)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Sizes of the hidden layers."""
        return tuple(bias.shape[0] for bias in self.biases[:-1])


def scaled(contract: Contract, observation: Float[Array, "d *n"]) -> Float[Array, "d *n"]:
    """An observation in units of its sensors' usual ranges, clipped to them."""
    return jnp.clip(_column(contract.observation_scale, observation.ndim) * observation, -1.0, 1.0)


def layered(
    weights: tuple[Float[Array, "_ _"], ...], biases: tuple[Float[Array, "_"], ...], x: Float[Array, "_ *n"]
) -> Float[Array, "a *n"]:
    """Layers with tanh between them, and without one at the end."""
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        x = jnp.tanh(jnp.tensordot(weight, x, 1) + _column(bias, x.ndim))
    return jnp.tensordot(weights[-1], x, 1) + _column(biases[-1], x.ndim)


class Linear(eqx.Module):
    """action = gains · observation, both in physical units; the environment clips it."""

    gains: Float[Array, "a d"]
    contract: Contract = eqx.field(static=True)

    def __call__(self, observation: Float[Array, "d *n"]) -> Float[Array, "a *n"]:
        """The action, scaled to [−1, 1] and not yet clipped."""
        command = jnp.tensordot(self.gains, observation, 1)
        return _column(self.contract.action_scale, command.ndim) * command

    def save(self, path: str | Path) -> Path:
        """Write a policy file; `spota.load` reads it."""
        return _save(self, path)


def fnn(key: Key[Array, ""], env: Platform, hidden: tuple[int, ...] = (16, 16), gains: Gains = USUAL_GAINS) -> FNN:
    """A network with orthogonal weights; unless told otherwise the last layer is small: a new policy does little."""
    if not hidden or min(hidden) < 1:
        raise ValueError(f"hidden={hidden}: give the sizes of the hidden layers, e.g. (16, 16).")
    sizes = (len(env.observations), *hidden, len(env.actions))
    needed = 4.0 * sum(a * b for a, b in pairwise(sizes))
    refuse_beyond_memory(needed, f"hidden={hidden}:", "write smaller layers")
    weights, biases = _orthogonal(key, sizes, gains)
    return FNN(weights, biases, Contract.of(env))


@partial(jax.jit, static_argnames=("sizes", "gains"))
def _orthogonal(
    key: Key[Array, ""], sizes: tuple[int, ...], gains: Gains
) -> tuple[tuple[Float[Array, "_ _"], ...], tuple[Float[Array, "_"], ...]]:
    """Weights and biases of new layers."""
    orthogonal = jax.nn.initializers.orthogonal()
    each = (gains.first, *(1.0 for _ in sizes[3:]), gains.last)
    weights = tuple(
        size * orthogonal(k, (out, into))
        for k, size, into, out in zip(jax.random.split(key, len(each)), each, sizes[:-1], sizes[1:], strict=True)
    )
    return weights, tuple(jnp.zeros(size) for size in sizes[1:])


def _save(policy: FNN | Linear, path: str | Path) -> Path:
    from spota.policies.storage import save  # which knows these classes

    return save(policy, path)


def _column(values: Float[Array, "c"] | tuple[float, ...], ndim: int) -> Float[Array, "c *ones"]:
    return jnp.asarray(values, jnp.float32).reshape(-1, *(1,) * (ndim - 1))
