"""What a new network looks like: its layers and its memory. And a network as part of a larger one."""

from dataclasses import dataclass
from operator import gt

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from spota.policies.network import FNN, USUAL_GAINS, Gains, fnn
from spota.policies.recurrent import Recurrent
from spota.policies.stacked import Stacked
from spota.sim.env import Platform, Policy

Network = FNN | Stacked | Recurrent
"""Policies that an optimizer can start from."""

LONGEST = 1000
"""Steps, or units, that a policy remembers at most: each step of a gradient keeps them."""
FASTEST, SLOWEST = 0.5, 0.01
"""Shares with which new units follow in a step: they remember one step to a hundred."""


@dataclass(frozen=True)
class Architecture:
    """The size of a network and the kind of its memory."""

    hidden: tuple[int, ...] = (16, 16)
    """Sizes of the hidden layers."""
    memory: int = 1
    """Observations that it acts on: the last one, or the last N with its own actions between them."""
    stride: int = 1
    """Steps from one of them to the next."""
    recurrent: int = 0
    """Units that remember; 0: none."""

    def __post_init__(self):
        """Refuse what is no network."""
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden={self.hidden}: give the sizes of the hidden layers, e.g. (16, 16).")
        for name, least in (("memory", 1), ("stride", 1), ("recurrent", 0)):
            if not least <= getattr(self, name) <= LONGEST:
                raise ValueError(f"{name}={getattr(self, name)}: write a number from {least} to {LONGEST}.")
        if self.steps > LONGEST:
            raise ValueError(
                f"memory={self.memory}, stride={self.stride}: that is {self.steps} steps, and {LONGEST} are remembered "
                "at most; write smaller ones."
            )
        if self.memory > 1 and self.recurrent:
            raise ValueError(
                f"memory={self.memory} and recurrent={self.recurrent}: a network has one kind of memory; leave out "
                "one of them."
            )

    @classmethod
    def told(
        cls, hidden: tuple[int, ...], memory: int | None, stride: int | None, recurrent: int | None
    ) -> "Architecture":
        """From settings, in which None stands for what was not said; so files without memory stay as they were."""
        given = {"memory": memory, "stride": stride, "recurrent": recurrent}
        return cls(hidden, **{name: value for name, value in given.items() if value is not None})

    @property
    def steps(self) -> int:
        """How many steps a stack reaches back."""
        return (self.memory - 1) * self.stride

    @property
    def remembers(self) -> bool:
        """Whether it has a memory."""
        return self.memory > 1 or self.recurrent > 0

    @property
    def inputs(self) -> str:
        """In words: what it acts on."""
        if self.recurrent:
            return f"the observation and {self.recurrent} recurrent units"
        return "the observation" if self.memory == 1 else f"the last {self.memory} observations and actions"


USUAL = Architecture()
"""The paper's."""


def architecture_of(policy: Policy) -> Architecture | None:
    """The architecture of a network; None for other policies."""
    if isinstance(policy, Stacked):
        return Architecture(policy.hidden, policy.memory, policy.stride)
    if isinstance(policy, Recurrent):
        return Architecture(policy.hidden, recurrent=policy.units)
    return Architecture(policy.hidden) if isinstance(policy, FNN) else None


def new_network(key: Key[Array, ""], env: Platform, architecture: Architecture, gains: Gains = USUAL_GAINS) -> Network:
    """A new network; its memory does nothing yet, so that it acts like the new one without memory of the same key."""
    return remembering(key, fnn(key, env, architecture.hidden, gains), architecture)


def remembering(key: Key[Array, ""], network: FNN, architecture: Architecture) -> Network:
    """The same policy with a memory that it does not use yet, but can learn to use."""
    d, a, (first, *others) = len(network.contract.observations), len(network.contract.actions), network.weights
    older, units = (architecture.memory - 1) * (d + a), architecture.recurrent
    wider = (jnp.pad(first, ((0, 0), (0, older + units))), *others)
    if architecture.recurrent:
        cell = jax.nn.initializers.orthogonal()(jax.random.fold_in(key, 1), (units, d + a + units))
        share = np.geomspace(FASTEST, SLOWEST, units)
        lag = jnp.asarray(np.log(share / (1 - share)), jnp.float32)
        return Recurrent(wider, network.biases, cell, jnp.zeros(units), lag, network.contract)
    if architecture.memory > 1:
        return Stacked(wider, network.biases, network.contract, architecture.memory, architecture.stride)
    return network


def holds(large: Architecture, small: Architecture) -> bool:
    """Whether a network of the one architecture can be part of one of the other."""
    if len(small.hidden) != len(large.hidden) or any(map(gt, small.hidden, large.hidden)):
        return False
    same_pace = small.memory == 1 or small.stride == large.stride
    return same_pace and small.memory <= large.memory and small.recurrent <= large.recurrent


def widened(network: Network, new: Network) -> Network:
    """The same policy in a new network with larger layers or memory; what is added does nothing yet, but can learn."""
    mine, theirs = architecture_of(network), architecture_of(new)
    if mine is None or theirs is None or not holds(theirs, mine):
        raise ValueError(f"A network of {mine} does not fit into one of {theirs}; give larger layers and memory.")
    weights = tuple(_within(old, large) for old, large in zip(network.weights, new.weights, strict=True))
    biases = tuple(_beginning(old, large) for old, large in zip(network.biases, new.biases, strict=True))
    wide = eqx.tree_at(lambda n: (n.weights, n.biases), new, (weights, biases))
    if not isinstance(network, Recurrent) or not isinstance(new, Recurrent):
        return wide
    cell = _within(network.cell, new.cell)
    rest = (_beginning(network.cell_bias, new.cell_bias), _beginning(network.cell_share, new.cell_share))
    return eqx.tree_at(lambda n: (n.cell, n.cell_bias, n.cell_share), wide, (cell, *rest))


def _within(old: Float[Array, "out into"], large: Float[Array, "OUT INTO"]) -> Float[Array, "OUT INTO"]:
    """Old units read what they read before, and nothing of the new ones; these read everything."""
    out, into = old.shape
    return large.at[:out].set(0.0).at[:out, :into].set(old)


def _beginning(old: Float[Array, "k"], large: Float[Array, "K"]) -> Float[Array, "K"]:
    return large.at[: old.size].set(old)
