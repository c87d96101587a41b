"""How far off recordings are from the best machine, and for how long at a time: sensor noise and model error together.

A simulator is never the machine. What it leaves out (a gear's play, a cable, friction of another kind) makes residuals
that are larger than the sensors' noise and that last, so that a hundred samples in a row say little more than one. A
likelihood that took them for white noise would be absurdly sure. So their size σ and their correlation time τ (in
samples) are taken from the residuals themselves, and n samples count as n / τ.
"""

import equinox as eqx
import numpy as np
from jaxtyping import Float

from spota.fit.recording import is_rate, rate_of
from spota.fit.segments import AROUND, Segments
from spota.sim.env import Platform

SMALLEST = 1e-5
"""Metres or radians: no encoder is better."""


class Noise(eqx.Module):
    """Of every position its standard deviation, and its correlation time in samples."""

    sigma: Float[np.ndarray, "q"]
    tau: Float[np.ndarray, "q"]

    @property
    def weights(self) -> Float[np.ndarray, "q"]:
        """What a squared residual counts."""
        return 1 / (self.sigma**2 * self.tau)

    @property
    def rho(self) -> Float[np.ndarray, "q"]:
        """The correlation of neighbours in an AR(1) process with this correlation time."""
        return (self.tau - 1) / (self.tau + 1)

    def draw(self, generator: np.random.Generator, shape: tuple[int, int, int]) -> Float[np.ndarray, "t q n"]:
        """Noise like this on segments [t, q, n]."""
        e, rho = generator.standard_normal(shape), self.rho[:, None]
        for t in range(1, shape[0]):
            e[t] = rho * e[t - 1] + np.sqrt(1 - rho**2) * e[t]
        return self.sigma[:, None] * e


def sensors(env: Platform) -> Noise:
    """What the platform's own table says: white noise of its sensors."""
    std = env.effects.noise.std if env.effects.noise else (1e-3,) * len(env.observations)
    sigma = np.array([s for s, signal in zip(std, env.observations, strict=True) if not is_rate(signal)])
    return Noise(np.maximum(sigma, SMALLEST), np.ones(sigma.size))


def seen(residuals: Float[np.ndarray, "t q n"], parameters: int) -> Noise:
    """Size and correlation time of what is left, with so many numbers estimated from n / τ samples."""
    t, q, n = residuals.shape
    tau = np.array([_correlation_time(residuals[:, i]) for i in range(q)])
    share = max(1 - parameters / (t * n / tau).sum(), 0.5)
    sigma = np.sqrt((residuals**2).mean(axis=(0, 2)) / share)
    return Noise(np.maximum(sigma, SMALLEST), tau)


def beginnings(env: Platform, noise: Noise, segments: Segments) -> Float[np.ndarray, "d"]:
    """How far the measured beginning of a segment may be off: of positions and, from their slope, of rates."""
    dt = segments.every * env.dt
    around = max(5.0, 2 * AROUND / dt)
    places = [i for i, s in enumerate(env.observations) if not is_rate(s)]
    spread = np.zeros(len(env.observations))
    spread[places] = 2 * noise.sigma
    for rate, position in rate_of(env).items():
        spread[rate] = 4 * noise.sigma[places.index(position)] * np.sqrt(12) / (around**1.5 * dt)
    return spread


def _correlation_time(residuals: Float[np.ndarray, "t n"]) -> float:
    """1 + 2 Σ ρ_k up to the first k that is not positive."""
    t = residuals.shape[0]
    power = (residuals**2).mean()
    total = 1.0
    for k in range(1, t // 2):
        rho = (residuals[k:] * residuals[:-k]).mean() / power if power > 0 else 0.0
        if rho <= 0.02:
            break
        total += 2 * rho * (1 - k / t)
    return max(total, 1.0)
