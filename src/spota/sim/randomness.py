"""Fast keyed random numbers inside a rollout: a counter-based integer hash.

A rollout has one jax key. What it draws at step t in stream s depends on (key, t, s) alone, so an episode that
ends early desynchronises nothing, and two policies that get the same keys see the same noise. `jax.random` would
spend most of a rollout's time here; two multiplications and three shifts a number do not.
`tests/sim/test_randomness.py` measures moments, tails and correlations.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

Words = UInt32[Array, "2 *n"]
"""A rollout's key as two words, batch last."""

MACHINE_STREAM = 3
"""Of the seeds that simulators on the host get; noise and exploration have streams of their own."""

_STEP = np.uint32(0x9E3779B9)
_CHANNEL = np.uint32(0x85EBCA6B)

# The inverse error function in single precision, by two polynomials in w = -log(1 - x²) (M. Giles, 2012).
_CENTRE = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 2.1858087e-04, -1.25372503e-03,
           -4.17768164e-03, 0.246640727, 1.50140941)  # fmt: skip
_TAIL = (-2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03, 5.73950773e-03, -7.6224613e-03,
         9.43887047e-03, 1.00167406, 2.83297682)  # fmt: skip


def checked_seed(seed: int) -> int:
    """The seed, if every part of a run can be keyed by it."""
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed = {seed}: a seed is a whole number from 0 to {2**32 - 1}.")
    return seed


def generator(key: Key[Array, ""]) -> np.random.Generator:
    """For what is drawn on the host: a generator that the key alone decides."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def seed_of(key: Key[Array, ""]) -> int:
    """The number that `jax.random.key` makes this key of."""
    high, low = np.asarray(jax.random.key_data(key), np.uint64)[:2]
    return int(high << np.uint64(32) | low)


def chosen(keys: Key[Array, "*n"], index: Any) -> Key[Array, "*m"]:
    """keys[index], on the host: jax would compile a program for every shape."""
    return jax.random.wrap_key_data(jnp.asarray(np.asarray(jax.random.key_data(keys))[index]))


def joined(parts: Iterable[Key[Array, "_ *n"]]) -> Key[Array, "_ *n"]:
    """One array of keys after the other, on the host."""
    words = np.concatenate([np.asarray(jax.random.key_data(keys)) for keys in parts])
    return jax.random.wrap_key_data(jnp.asarray(words))


def reshaped(keys: Key[Array, "*n"], *shape: int) -> Key[Array, "*m"]:
    """keys.reshape(shape), on the host."""
    words = np.asarray(jax.random.key_data(keys))
    return jax.random.wrap_key_data(jnp.asarray(words.reshape(*shape, words.shape[-1])))


def words(keys: Key[Array, "*n"]) -> Words:
    """The two words of each key, batch last."""
    return jnp.moveaxis(jax.random.key_data(keys), -1, 0)[:2]


def seeds(keys: Key[Array, "n"]) -> UInt32[np.ndarray, "n"]:
    """A seed for a simulator on the host, of each rollout's key."""
    return np.asarray(_seeds(words(keys)))


@jax.jit
def _seeds(key: Words) -> UInt32[Array, "n"]:
    return _hash(key, jnp.int32(0), MACHINE_STREAM, 1)[0]


def normals(key: Words, step: Int[Array, ""], stream: int, channels: int) -> Float[Array, "channels *n"]:
    """Standard normal numbers for one step of each rollout; different streams are independent."""
    return _normal(_hash(key, step, stream, channels))


def _hash(key: Words, step: Int[Array, ""], stream: int, channels: int) -> UInt32[Array, "channels *n"]:
    counter = step.astype(jnp.uint32) * _STEP + np.uint32(stream * 0x632BE5AB & 0xFFFFFFFF)
    state = _mix(_mix(key[0] ^ counter) + key[1])
    numbers = np.arange(1, channels + 1, dtype=np.uint32) * _CHANNEL
    return _mix(state[None] + numbers.reshape(-1, *(1,) * state.ndim))


def _mix(x: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """A bijection of 32-bit words in which every input bit moves every output bit."""
    x = (x ^ (x >> 16)) * np.uint32(0x21F0AAAD)
    x = (x ^ (x >> 15)) * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)


def _normal(bits: UInt32[Array, "*n"]) -> Float[Array, "*n"]:
    """√2 erf⁻¹(x) of 24-bit x, symmetric in (-1, 1): the largest draw is 5.4 standard deviations."""
    x = (bits >> 8).astype(jnp.float32) * np.float32(2**-23) + np.float32(2**-24 - 1)
    w = -jnp.log((1 - x) * (1 + x))
    centre = _polynomial(_CENTRE, w - 2.5)
    tail = _polynomial(_TAIL, jnp.sqrt(jnp.maximum(w, 5)) - 3)
    return np.float32(np.sqrt(2)) * x * jnp.where(w < 5, centre, tail)


def _polynomial(coefficients: tuple[float, ...], x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + np.float32(coefficient)
    return value
