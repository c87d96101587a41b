"""What stands between a policy and the physics: sensors and actuators that are not ideal. Any platform can wear them.

Effects work on whole batches with the batch axis last, [channels, n]; the platforms themselves are written for one
domain. The order in a step is fixed (`rollout.advance`): noisy observation → policy → scaled and clipped command
→ delay → reward → dead band → dynamics.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from spota.sim import randomness
from spota.sim.domain import Domains

Queue = Float[Array, "slots channels *n"]
OBSERVATION_STREAM = 1


@dataclass(frozen=True)
class ObservationNoise:
    """Gaussian noise on every channel, one standard deviation each."""

    std: tuple[float, ...]

    def __post_init__(self):
        """Refuse what is no standard deviation."""
        if any(not s >= 0 for s in self.std):
            raise ValueError(f"ObservationNoise({self.std}): standard deviations must be zero or positive.")

    def __call__(
        self, key: randomness.Words, t: Int[Array, ""], observation: Float[Array, "d *n"]
    ) -> Float[Array, "d *n"]:
        """What the sensors read at step t."""
        noise = randomness.normals(key, t, OBSERVATION_STREAM, len(self.std))
        return observation + _column(self.std, noise.ndim) * noise


@dataclass(frozen=True)
class ObservationOffset:
    """A constant error of the sensors: each channel names the domain parameter that is added to it, or None."""

    parameters: tuple[str | None, ...]

    def __call__(self, observation: Float[Array, "d *n"], domains: Domains) -> Float[Array, "d *n"]:
        """What the sensors read."""
        zero = jnp.zeros_like(observation[0])
        return observation + jnp.stack([zero if p is None else domains[p] for p in self.parameters])


@dataclass(frozen=True)
class ActionDelay:
    """A command of step t acts at step t + delay; before the first one arrives, zero acts. Whole steps."""

    parameter: str = "action_delay"
    longest: int = 0

    def __post_init__(self):
        """Refuse a buffer of no length."""
        if self.longest < 0:
            raise ValueError(f"ActionDelay(longest={self.longest}): the longest delay is zero or more steps.")

    def check(self, domains: Domains):
        """Refuse delays that are no whole number or that the buffer cannot hold."""
        delay = np.asarray(domains[self.parameter])
        if (delay != np.round(delay)).any():
            raise ValueError(f"{self.parameter} = {delay[delay != np.round(delay)][0]:g}: write whole steps.")
        if delay.max() > self.longest:
            raise ValueError(
                f"{self.parameter} = {delay.max():g} steps, but the buffer holds {self.longest}; "
                f"make the environment with longest_delay={int(delay.max())}."
            )

    def empty(self, command: Float[Array, "a *n"]) -> Queue:
        """A queue of zeros for commands of that shape."""
        return jnp.zeros((self.longest + 1, *command.shape), command.dtype)

    def __call__(
        self, t: Int[Array, ""], queue: Queue, command: Float[Array, "a *n"], domains: Domains
    ) -> tuple[Float[Array, "a *n"], Queue]:
        """Put the command of step t into the ring, take out the one that acts now."""
        if self.longest == 0:
            return command, queue
        slots = self.longest + 1
        queue = jax.lax.dynamic_update_index_in_dim(queue, command, t % slots, 0)
        due = (t - domains[self.parameter].astype(jnp.int32)) % slots
        return jnp.take_along_axis(queue, due[None, None], axis=0, mode="clip")[0], queue


@dataclass(frozen=True)
class DeadBand:
    """Commands between a negative and a positive threshold do nothing; each channel names its two parameters."""

    low: tuple[str, ...]
    high: tuple[str, ...]

    def __call__(self, command: Float[Array, "a *n"], domains: Domains) -> Float[Array, "a *n"]:
        """What reaches the dynamics."""
        low, high = (jnp.stack([domains[name] for name in names]) for names in (self.low, self.high))
        return jnp.where((command > low) & (command < high), 0.0, command)


@dataclass(frozen=True)
class Effects:
    """What one environment wears."""

    noise: ObservationNoise | None = None
    offset: ObservationOffset | None = None
    delay: ActionDelay = field(default_factory=ActionDelay)
    dead_band: DeadBand | None = None

    @property
    def parameters(self) -> frozenset[str]:
        """The domain parameters that effects use; a simulator of somebody else's never hears of them."""
        bands = () if self.dead_band is None else (*self.dead_band.low, *self.dead_band.high)
        offsets = () if self.offset is None else self.offset.parameters
        delays = (self.delay.parameter,) if self.delay.longest else ()
        return frozenset(name for name in (*delays, *offsets, *bands) if name is not None)

    def observe(
        self, key: randomness.Words, t: Int[Array, ""], observation: Float[Array, "d *n"], domains: Domains
    ) -> Float[Array, "d *n"]:
        """What the policy sees of the true observation."""
        if self.offset is not None:
            observation = self.offset(observation, domains)
        return observation if self.noise is None else self.noise(key, t, observation)

    def reach(self, command: Float[Array, "a *n"], domains: Domains) -> Float[Array, "a *n"]:
        """What the dynamics feel of the command that acts."""
        return command if self.dead_band is None else self.dead_band(command, domains)


def scale_and_clip(
    action: Float[Array, "a *n"], low: tuple[float, ...], high: tuple[float, ...]
) -> Float[Array, "a *n"]:
    """From the policy's [−1, 1] to physical units, clipped to the actuator's range."""
    low_, high_ = _column(low, action.ndim), _column(high, action.ndim)
    return jnp.clip((low_ + high_) / 2 + action * ((high_ - low_) / 2), low_, high_)


def _column(values: tuple[float, ...], ndim: int) -> np.ndarray:
    return np.asarray(values, dtype=np.float32).reshape(-1, *(1,) * (ndim - 1))
