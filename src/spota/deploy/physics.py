"""The body of an emulated machine: a platform's physics on one domain, stepped with plain floats."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from spota.deploy.hardware import Hardware, ends, hardware_of
from spota.deploy.plain import plain
from spota.sim.env import Env, Platform
from spota.sim.host import HostEnv

SWITCHED_ON = 0.1
"""How far from the centre a machine may stand when it is switched on [m or rad]."""


@runtime_checkable
class Body(Protocol):
    """What moves, with ideal sensors."""

    def step(self, command: np.ndarray) -> None:
        """Let a command act for one time step."""
        ...

    def observe(self, into: np.ndarray) -> None:
        """The ideal observation."""
        ...


def body_of(env: Platform, domain: Mapping[str, float], seed: int) -> Body:
    """The body of a platform on a domain."""
    if isinstance(env, HostEnv):
        return HostBody(env, domain, seed)
    assert isinstance(env, Env)
    return PureBody(env, domain, seed)


class PureBody:
    """A platform's own equations. What has ends is stopped by them, without a rebound, and does not break."""

    def __init__(self, env: Env, domain: Mapping[str, float], seed: int):
        """Print the equations for this domain, and stand where the machine was switched on."""
        self.xi = env.params(dict(domain))
        start = jax.tree.map(float, env.start(jax.random.key(seed), self.xi))
        leaves, structure = jax.tree.flatten(start)
        self.ends = ends(env.name, self.xi)
        self._structure = structure
        self.first: list[float] = leaves
        """A start state as the platform draws them for its episodes."""
        self.state: list[float] = list(leaves)
        self._velocity = {q: v for v, q in hardware_of(env).velocities.items()} if self.ends else {}
        self._step = plain(
            lambda *x: env.step(jax.tree.unflatten(structure, x[: len(leaves)]), x[len(leaves) :], self.xi),
            len(leaves) + len(env.actions),
            f"the step of {env.name}",
        )
        self._observe = plain(
            lambda *x: env.observe(jax.tree.unflatten(structure, x), self.xi), len(leaves), f"what {env.name} observes"
        )
        if hardware_of(env).hangs:
            self.state = [0.0] * len(leaves)
            self.state[0] = float(np.random.default_rng(seed).uniform(-SWITCHED_ON, SWITCHED_ON))

    def step(self, command: np.ndarray) -> None:
        """One step of the equations, then the machine's ends."""
        try:
            self.state[:] = self._step(*self.state, *command.tolist())
        except (ArithmeticError, ValueError):  # beyond what the equations can say: it stands still
            return
        for at, end in self.ends.items():
            if abs(self.state[at]) > end:
                self.state[at] = math.copysign(end, self.state[at])
                self.state[self._velocity[at]] = 0.0

    def observe(self, into: np.ndarray) -> None:
        """The ideal observation."""
        into[:] = self._observe(*self.state)

    def rebuilt(self, values: Sequence[Any]) -> Any:
        """A state in the platform's own form."""
        return jax.tree.unflatten(self._structure, values)


class HostBody:
    """A machine of somebody else's simulator, a MuJoCo twin for example; when it fails, it is put back to a start."""

    def __init__(self, env: HostEnv, domain: Mapping[str, float], seed: int):
        """Open one machine."""
        self._env, self._seed = env, seed
        self._domain = {name: np.array([value], np.float32) for name, value in domain.items()}
        self._machines: Any = None
        self._open()

    def _open(self) -> None:
        if self._machines is not None:
            self._machines.close()
        self._machines = self._env.open(self._domain, np.array([self._seed], np.uint32))
        self._seed += 1

    def step(self, command: np.ndarray) -> None:
        """One step of the simulator."""
        _, failed = self._machines.step(command.astype(np.float32)[:, None], np.ones(1, bool))
        if failed[0]:
            self._open()

    def observe(self, into: np.ndarray) -> None:
        """The ideal observation."""
        into[:] = self._machines.observe()[:, 0]


def stands_at(hardware: Hardware, body: Body) -> float:
    """What the encoder that reads zero at the start takes for zero."""
    if hardware.zeroed is None or not isinstance(body, PureBody):
        return 0.0
    return body.state[hardware.zeroed]
