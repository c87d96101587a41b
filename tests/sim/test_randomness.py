"""The hash must look like independent standard normals over rollouts, steps, channels, streams and keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from spota.sim import randomness


def draws(seed: int = 0, rollouts: int = 4000, steps: int = 100, channels: int = 4, stream: int = 1) -> np.ndarray:
    words = randomness.words(jax.random.split(jax.random.key(seed), rollouts))
    times = jnp.arange(steps)
    return np.asarray(jax.vmap(lambda t: randomness.normals(words, t, stream, channels))(times))  # [T, c, n]


@pytest.fixture(scope="module")
def sample() -> np.ndarray:
    return draws()


def test_moments_are_those_of_a_standard_normal(sample):
    z, n = sample.ravel().astype(np.float64), sample.size
    for power, expected, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert abs((z**power).mean() - expected) < 4 * np.sqrt(variance / n)


def test_distribution_passes_kolmogorov_smirnov_in_every_channel(sample):
    for channel in range(sample.shape[1]):
        assert stats.kstest(sample[:, channel].ravel(), "norm").pvalue > 1e-3


@pytest.mark.parametrize("bound", [2.0, 3.0, 4.0])
def test_tails_have_the_right_weight(sample, bound):
    expected = 2 * stats.norm.sf(bound) * sample.size
    assert abs((np.abs(sample) > bound).sum() - expected) < 4 * np.sqrt(expected) + 1


def test_extreme_words_give_finite_symmetric_numbers():
    extremes = np.asarray(randomness._normal(jnp.array([0, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000], jnp.uint32)))
    assert np.isfinite(extremes).all()
    np.testing.assert_allclose(extremes[0], -extremes[1])
    np.testing.assert_allclose(extremes[1], stats.norm.isf(2**-25), rtol=1e-3)
    np.testing.assert_allclose(extremes[2:], [-(2**-24) * np.sqrt(np.pi / 2), 2**-24 * np.sqrt(np.pi / 2)], rtol=1e-3)


@pytest.mark.parametrize("axis", [0, 1, 2], ids=["steps", "channels", "rollouts"])
@pytest.mark.parametrize("lag", [1, 2, 3])
def test_neighbours_are_uncorrelated(sample, axis, lag):
    if lag >= sample.shape[axis]:
        return
    a = np.take(sample, range(sample.shape[axis] - lag), axis).ravel()
    b = np.take(sample, range(lag, sample.shape[axis]), axis).ravel()
    for f in (lambda z: z, np.square):
        assert abs(np.corrcoef(f(a), f(b))[0, 1]) < 4.5 / np.sqrt(a.size)


def test_seeds_and_streams_are_uncorrelated(sample):
    for other in (draws(seed=1), draws(stream=2)):
        assert abs(np.corrcoef(sample.ravel(), other.ravel())[0, 1]) < 4.5 / np.sqrt(sample.size)


def test_every_rollout_has_its_own_mean_zero_sequence(sample):
    means = sample.mean(axis=(0, 1)) * np.sqrt(sample.shape[0] * sample.shape[1])
    assert stats.kstest(means, "norm").pvalue > 1e-3


def test_a_draw_depends_on_its_own_key_step_and_stream_only():
    keys = jax.random.split(jax.random.key(3), 10)
    together = randomness.normals(randomness.words(keys), jnp.int32(7), 1, 3)
    alone = randomness.normals(randomness.words(keys[4:5]), jnp.int32(7), 1, 3)
    np.testing.assert_array_equal(together[:, 4:5], alone)
