"""Polynomials by least squares: those that made the data are found again."""

import jax.numpy as jnp
import numpy as np

from spota.polopt.polynomials import fitted, terms, values


def test_terms_are_all_products_of_the_highest_degree_that_fits():
    assert terms(2, 100) == ((), (0,), (1,), (0, 0), (0, 1), (1, 1), (0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1))
    assert len(terms(5, 56)) == 56 and len(terms(5, 55)) == 21
    assert terms(9, 1) == ((), *((i,) for i in range(9)))


def test_values_are_the_products_in_numpy_and_in_jax():
    x = np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32)
    of = terms(3, 100)
    want = [np.prod(x[list(term)], axis=0) for term in of]
    np.testing.assert_allclose(values(of, x, np), want, rtol=1e-5)
    np.testing.assert_allclose(values(of, jnp.asarray(x), jnp), want, rtol=1e-5)


def test_the_polynomial_that_made_the_data_is_found():
    rng = np.random.default_rng(1)
    of, x = terms(3, 20), rng.normal(size=(3, 400))
    weights = rng.normal(size=(len(of), 2))
    taken = rng.random(400) < 0.5
    y = np.where(taken, weights.T @ values(of, x, np), 99.0)
    np.testing.assert_allclose(fitted(of, x, y, taken), weights, atol=1e-6)


def test_an_input_that_never_varies_gets_no_weight_of_its_own():
    x = np.random.default_rng(2).normal(size=(2, 100))
    x[1] = 0.0
    found = fitted(terms(2, 3), x, 2 * x[:1], np.ones(100, bool))
    np.testing.assert_allclose(found[:, 0], [0, 2, 0], atol=1e-6)
