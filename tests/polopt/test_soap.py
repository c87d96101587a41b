"""SOAP against Adam, which it is in the eigenbasis, and on a valley that Adam's coordinates do not fit."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from spota.polopt import soap
from spota.polopt.soap import scale_by_soap


def steps(transformation: optax.GradientTransformation, gradients: list) -> list:
    state, found = transformation.init(gradients[0]), []
    for gradient in gradients:
        step, state = transformation.update(gradient, state)
        found.append(step)
    return found


def test_what_is_not_a_matrix_moves_as_with_adam(monkeypatch):
    monkeypatch.setattr(soap, "FLOOR", 0.0)
    gradients = [jax.random.normal(jax.random.key(i), (5,)) for i in range(4)]
    ours, adam = steps(scale_by_soap(0.9, 0.95), gradients), steps(optax.scale_by_adam(0.9, 0.95), gradients)
    np.testing.assert_allclose(ours, adam, rtol=1e-4)


def test_parameters_that_nothing_depends_on_yet_stay_where_they_are():
    """Steps are at most about one, however small a gradient is; 1e-25 squared is zero in 32 bits."""
    gradients = [{"cell": size * jnp.ones((3, 2)), "bias": size * jnp.ones(3)} for size in (0.0, 1e-25, 1e-3)]
    nothing, hardly, now = steps(scale_by_soap(), gradients)
    assert all((step == 0).all() for step in jax.tree.leaves(nothing))
    assert all((np.abs(step) < 1e-3).all() for step in jax.tree.leaves(hardly))
    assert all((np.abs(step) > 0.1).all() and (np.abs(step) < 2).all() for step in jax.tree.leaves(now["bias"]))


def test_a_rotation_of_the_layer_rotates_the_steps(monkeypatch):
    """Adam's steps depend on the coordinates; in the eigenbasis they do not."""
    monkeypatch.setattr(soap, "FLOOR", 0.0)
    gradients = [jax.random.normal(jax.random.key(i), (4, 4)) for i in range(6)]
    left, right = (jnp.linalg.qr(jax.random.normal(jax.random.key(k), (4, 4)))[0] for k in (10, 11))
    plain = steps(scale_by_soap(), gradients)
    turned = steps(scale_by_soap(), [left @ g @ right for g in gradients])
    np.testing.assert_allclose(turned[-1], left @ plain[-1] @ right, atol=2e-3)
    adam = optax.scale_by_adam(0.9, 0.95)
    assert (
        np.abs(steps(adam, [left @ g @ right for g in gradients])[-1] - left @ steps(adam, gradients)[-1] @ right).max()
        > 0.1
    )


def valley(seed: int):
    """A quadratic of condition 10⁴ in a weight matrix, its axes turned away from the coordinates."""
    left, right = (jnp.linalg.qr(jax.random.normal(jax.random.key(seed + k), (6, 6)))[0] for k in (0, 1))
    curvature = jnp.logspace(0, -4, 36).reshape(6, 6)
    target = jax.random.normal(jax.random.key(seed + 2), (6, 6))
    return lambda w: (curvature * (left @ (w - target) @ right) ** 2).sum()


@pytest.mark.parametrize("seed", [0, 10, 20])
def test_a_turned_valley_is_descended_faster_than_by_adam(seed):
    loss = valley(seed)

    def descend(scale: optax.GradientTransformation) -> float:
        optimizer = optax.chain(scale, optax.scale_by_learning_rate(optax.cosine_decay_schedule(0.1, 150)))
        w = jnp.zeros((6, 6))
        state = optimizer.init(w)

        @jax.jit
        def update(w, state):
            step, state = optimizer.update(jax.grad(loss)(w), state)
            return w + step, state

        for _ in range(150):
            w, state = update(w, state)
        return float(loss(w))

    assert descend(scale_by_soap()) < 0.3 * descend(optax.scale_by_adam())


def test_eigenvectors_of_several_problems_are_found_one_after_the_other():
    """A batch of them may wait for itself for ever: no program has one."""
    soap = scale_by_soap()
    many = jnp.broadcast_to(1 + jnp.eye(32), (3, 32, 32))
    program = str(jax.make_jaxpr(jax.vmap(lambda g: soap.update(g, soap.init(g))[0]))(many))
    shapes = re.findall(r"f32\[([\d,]+)\][^\n]*= eigh", program)
    assert shapes
    assert set(shapes) == {"32,32"}
    together = np.asarray(jax.vmap(lambda g: soap.update(g, soap.init(g))[0])(many))
    np.testing.assert_allclose(together[1], np.asarray(soap.update(many[0], soap.init(many[0]))[0]), rtol=1e-5)
