"""Policies as a loop on a machine wants them: NumPy or plain floats, never jax, and nothing allocated that lasts."""

from typing import Any, Protocol, cast, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from spota.deploy.plain import plain
from spota.policies.contract import Contract
from spota.policies.network import FNN, Linear
from spota.sim.acting import remembers, stepping
from spota.sim.env import Policy, Reactive


@runtime_checkable
class Controller(Protocol):
    """Observation → command, both in physical units; the command is not yet clipped."""

    def __call__(self, observation: np.ndarray, into: np.ndarray) -> None:
        """Write the command for this observation."""
        ...


@runtime_checkable
class WithMemory(Controller, Protocol):
    """A controller that remembers what it has seen and done."""

    def reset(self) -> None:
        """Remember nothing."""
        ...


def begin_episode(controller: Controller) -> None:
    """Let a controller that remembers forget what was before."""
    if isinstance(controller, WithMemory):
        controller.reset()


def controller_of(policy: Policy, contract: Contract) -> Controller:
    """The policy without jax: our networks in NumPy, everything else as plain arithmetic."""
    if isinstance(policy, FNN):
        return Network(policy)
    if isinstance(policy, Linear):
        return Gains(policy)
    return Remembered(policy, contract) if remembers(policy) else Printed(cast(Reactive, policy), contract)


class Network:
    """A network of ours, layer by layer into buffers."""

    def __init__(self, policy: FNN):
        """Copy the weights."""
        self._scale = np.array(policy.contract.observation_scale, np.float32)
        weights, biases = ([np.array(a, np.float32) for a in arrays] for arrays in (policy.weights, policy.biases))
        self._layers = [(w, b, np.zeros_like(b)) for w, b in zip(weights, biases, strict=True)]
        self._seen = np.zeros(self._scale.size, np.float32)
        self._middle, self._half = _range(policy.contract)

    def __call__(self, observation: np.ndarray, into: np.ndarray) -> None:
        """Write the command for this observation."""
        x = self._seen
        np.multiply(self._scale, observation, out=x, casting="same_kind")
        np.clip(x, -1.0, 1.0, out=x)
        for weight, bias, out in self._layers:
            np.matmul(weight, x, out=out)
            out += bias
            np.tanh(out, out=out)
            x = out
        np.multiply(x, self._half, out=into)
        into += self._middle


class Gains:
    """A linear map in physical units."""

    def __init__(self, policy: Linear):
        """Copy the gains; around the middle of the actuator's range, as the policy itself."""
        self._gains = np.array(policy.gains, np.float64)
        self._middle, _ = _range(policy.contract)

    def __call__(self, observation: np.ndarray, into: np.ndarray) -> None:
        """Write the command for this observation."""
        np.matmul(self._gains, observation, out=into)
        into += self._middle


class Printed:
    """Any other policy of jax, a classical controller for example, number by number."""

    def __init__(self, policy: Reactive, contract: Contract):
        """Print it."""
        name = getattr(policy, "__name__", type(policy).__name__)
        self._act = plain(lambda *x: policy(jnp.stack(x)), len(contract.observations), f"the policy {name}")
        self._middle, self._half = _range(contract)

    def __call__(self, observation: np.ndarray, into: np.ndarray) -> None:
        """Write the command for this observation."""
        into[:] = self._act(*observation.tolist())
        into *= self._half
        into += self._middle


class Remembered:
    """A policy with memory, number by number; its memory begins anew with `reset`."""

    def __init__(self, policy: Policy, contract: Contract):
        """Print one step of it."""
        start, step = stepping(policy)
        leaves, structure = jax.tree.flatten(start(1))
        d, sizes = len(contract.observations), [leaf.size for leaf in leaves]
        self._first = [float(x) for leaf in leaves for x in np.ravel(leaf)]
        self._memory: tuple[float, ...] = tuple(self._first)
        self._actions = len(contract.actions)

        def one(*x):
            pieces = np.split(np.arange(d, d + sum(sizes)), np.cumsum(sizes)[:-1]) if sizes else []
            past = [
                jnp.stack([x[i] for i in piece]).reshape(leaf.shape).astype(leaf.dtype)
                for piece, leaf in zip(pieces, leaves, strict=True)
            ]
            memory, action = step(jax.tree.unflatten(structure, past), jnp.stack(x[:d])[:, None])
            return [action, *(leaf.astype(jnp.float32) for leaf in jax.tree.leaves(memory))]

        self._act = plain(one, d + sum(sizes), f"the policy {type(policy).__name__}")
        self._middle, self._half = _range(contract)

    def reset(self) -> None:
        """Remember nothing."""
        self._memory = tuple(self._first)

    def __call__(self, observation: np.ndarray, into: np.ndarray) -> None:
        """Write the command for this observation, and remember."""
        found = self._act(*observation.tolist(), *self._memory)
        self._memory = found[self._actions :]
        into[:] = found[: self._actions]
        into *= self._half
        into += self._middle


def _range(contract: Contract) -> tuple[Any, Any]:
    low, high = np.array([(s.low, s.high) for s in contract.actions]).T
    return (low + high) / 2, (high - low) / 2
