"""A gradient on its way back: outliers are cut, and nothing else is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.polopt.way_back import passed

NEARLY = 0.065
"""The bits of a float are its logarithm to the base 2 within 0.086, and 2^0.086 = 1.061."""


def gradient(weights, outlier: float | None = 100.0, horizon=None):
    """Of weights · x, which is the weights themselves where nothing is changed."""
    x = jnp.ones_like(jnp.asarray(weights))
    return np.asarray(jax.grad(lambda x: (jnp.asarray(weights) * passed(x, horizon, outlier)).sum())(x))


def test_what_is_usual_passes_as_it_is():
    weights = np.array([[1.0, -2.0, 0.5, 30.0], [1e-6, 2e-6, 0.0, -1e-6]], np.float32)
    np.testing.assert_array_equal(gradient(weights), weights)


def test_a_giant_is_cut_to_some_times_the_geometric_mean_of_its_channel():
    weights = np.array([[1.0, 1.0, -1.0, 1e10], [3.0, 3.0, 3.0, 3.0]], np.float32)
    usual = 1e10**0.25
    np.testing.assert_allclose(gradient(weights, 2.0), [[1, 1, -1, 2 * usual], [3, 3, 3, 3]], rtol=NEARLY)
    np.testing.assert_allclose(gradient(-weights, 2.0), [[-1, -1, 1, -2 * usual], [-3, -3, -3, -3]], rtol=NEARLY)


def test_the_usual_size_is_the_geometric_mean_over_all_magnitudes():
    weights = 10.0 ** np.random.default_rng(0).uniform(-20, 20, (200, 7)).astype(np.float32)
    giant = np.append(weights, np.full((200, 1), 3e38, np.float32), axis=1)
    usual = np.exp(np.log(giant.astype(np.float64)).mean(axis=1))
    np.testing.assert_allclose(gradient(giant, 1.0)[:, -1], usual, rtol=NEARLY)


def test_rollouts_that_have_ended_do_not_count():
    weights = np.array([[0.0] * 10 + [4.0, 4.0, 4.0, 4000.0]], np.float32)
    usual = (4**3 * 4000) ** 0.25
    assert gradient(weights, 1.5)[0, -1] == pytest.approx(1.5 * usual, rel=NEARLY)
    assert gradient(np.zeros((1, 3), np.float32)).tolist() == [[0.0, 0.0, 0.0]]


def test_numbers_that_are_not_finite_are_left_out():
    assert gradient(np.array([1.0, np.nan, np.inf, -np.inf, 2.0], np.float32)).tolist() == [1.0, 0.0, 0.0, 0.0, 2.0]


def test_a_horizon_fades_what_is_left():
    np.testing.assert_allclose(gradient(np.ones(3, np.float32), horizon=10), np.exp(-0.1), rtol=1e-6)
    giant = np.array([1.0, 1.0, 1e9], np.float32)
    np.testing.assert_allclose(gradient(giant, None, horizon=10), np.exp(-0.1) * giant, rtol=1e-6)
    np.testing.assert_array_equal(gradient(giant, None), giant)


def test_what_is_not_a_number_passes_through():
    tree = {"x": jnp.ones(2), "alive": jnp.array([True, False]), "t": jnp.int32(3)}
    assert jax.tree.map(lambda a, b: bool((a == b).all()), passed(tree, None, 10.0), tree)["alive"]
