"""Policies: shapes, files without pickle, controllers, and what is refused."""

import io
import json
import zipfile
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from spota import policies
from spota.envs import make
from spota.policies.architecture import widened
from spota.policies.lqr import linearise
from spota.sim import rollout

CART_POLE, BALL = make("cart-pole"), make("ball-balancer")


@pytest.fixture(scope="module")
def network():
    return policies.fnn(jax.random.key(0), CART_POLE)


def outcome(env, policy, n=500):
    domains = env.domain.sample(jax.random.key(11), n)
    return rollout.returns(env, policy, domains, jax.random.split(jax.random.key(12), (n, 1)))


def test_network_is_the_matrix_products_that_it_stands_for(network):
    observation = np.array([0.1, -0.2, 0.3, 0.4], np.float32)
    x = observation * np.array(network.contract.observation_scale, np.float32)
    for weight, bias in zip(network.weights, network.biases, strict=True):
        x = np.tanh(np.asarray(weight) @ x + np.asarray(bias))
    np.testing.assert_allclose(network(jnp.asarray(observation)), x, rtol=1e-5)
    assert network.hidden == (16, 16)


def test_batch_axes_follow_the_channel(network):
    batch = jax.random.normal(jax.random.key(1), (4, 5, 3))
    np.testing.assert_allclose(network(batch)[:, 2, 1], network(batch[:, 2, 1]), rtol=1e-5)


def test_new_networks_do_little_and_differ_by_key():
    a, b = (policies.fnn(jax.random.key(i), BALL) for i in (0, 1))
    observation = jax.random.normal(jax.random.key(1), (8, 100))
    assert jnp.abs(a(observation)).max() < 0.1
    assert not jnp.allclose(a(observation), b(observation))


def test_a_new_networks_layers_have_the_sizes_that_were_asked_for():
    network = policies.fnn(jax.random.key(2), BALL, (16, 16), policies.Gains(first=4.0, last=0.5))
    for weight, size in zip(network.weights, (4.0, 1.0, 0.5), strict=True):
        np.testing.assert_allclose(np.linalg.svd(np.asarray(weight), compute_uv=False), size, rtol=1e-5)


@pytest.mark.parametrize(
    "make_policy", [lambda: policies.fnn(jax.random.key(3), BALL, (8, 4)), lambda: policies.lqr(BALL)]
)
def test_files_give_back_the_same_policy(tmp_path, make_policy):
    policy = make_policy()
    again = cast(policies.FNN, policies.load(policies.save(policy, tmp_path / "policy.npz")))
    observation = jax.random.normal(jax.random.key(1), (8, 10))
    np.testing.assert_array_equal(policy(observation), again(observation))
    assert again.contract == policy.contract
    assert cast(policies.FNN, policies.find(tmp_path, BALL))(observation).shape == (2, 10)


def test_files_are_readable_without_spota(tmp_path, network):
    policies.save(network, tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz", allow_pickle=False) as archive:
        about = json.loads(str(archive["about"]))
        assert archive["array_0"].shape == (16, 4)
    assert about["contract"]["env"] == "cart-pole"
    assert [s["unit"] for s in about["contract"]["actions"]] == ["V"]


def test_policy_of_another_platform_is_refused(tmp_path, network):
    policies.save(network, tmp_path / "p.npz")
    with pytest.raises(ValueError, match="made for 'cart-pole'"):
        policies.find(tmp_path / "p.npz", BALL)


def test_truncated_and_corrupted_files_are_refused_by_name(tmp_path, network):
    whole = policies.save(network, tmp_path / "p.npz").read_bytes()
    damaged = {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"hello", "flipped": _flip(whole)}
    for name, content in damaged.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}.npz"):
            policies.load(tmp_path / f"{name}.npz")


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def test_foreign_archives_and_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "foreign.npz", weights=np.ones(3))
    np.savez(tmp_path / "pickle.npz", about=np.array([{"format": 1}], dtype=object))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("about.npy", b"no array")
    (tmp_path / "zip.npz").write_bytes(buffer.getvalue())
    for name in ("foreign", "pickle", "zip"):
        with pytest.raises(ValueError, match=f"{name}.npz is not a policy file"):
            policies.load(tmp_path / f"{name}.npz")


def test_wrong_shapes_and_nan_weights_are_refused(tmp_path, network):
    broken = eqx.tree_at(lambda p: p.biases[0], network, jnp.full(16, jnp.nan))
    with pytest.raises(ValueError, match="not finite"):
        policies.save(broken, tmp_path / "nan.npz")
    assert not (tmp_path / "nan.npz").exists()
    shifted = eqx.tree_at(lambda p: p.weights[1], network, jnp.zeros((16, 15)))
    policies.save(shifted, tmp_path / "shape.npz")
    with pytest.raises(ValueError, match="no FNN for its signals"):
        policies.load(tmp_path / "shape.npz")


def test_unknown_policy_says_what_there_is(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'lqr'"):
        policies.find("lqrr", CART_POLE)
    with pytest.raises(ValueError, match="neither a policy file, a run directory"):
        policies.find(tmp_path / "missing.npz", CART_POLE)
    with pytest.raises(FileNotFoundError, match=r"missing\.npz"):
        policies.load(tmp_path / "missing.npz")


def test_controllers_refuse_platforms_that_they_are_not_made_for():
    with pytest.raises(ValueError, match="use --policy lqr"):
        policies.find("pd", CART_POLE)
    with pytest.raises(ValueError, match="no LQR"):
        policies.lqr(make("catapult"))


def test_lqr_solves_the_riccati_equation_of_the_linearised_model():
    A, B = linearise(CART_POLE)
    assert CART_POLE.lqr_weights is not None
    Q, R = (np.diag(w) for w in CART_POLE.lqr_weights)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = -np.asarray(policies.lqr(CART_POLE).gains, np.float64)
    np.testing.assert_allclose(P, Q + A.T @ P @ (A - B @ K), rtol=1e-4, atol=1e-3 * np.abs(P).max())
    assert (np.abs(np.linalg.eigvals(A - B @ K)) < 1).all()
    assert (np.abs(np.linalg.eigvals(A)) > 1).any()


def test_linearisation_equals_finite_differences():
    A, B = linearise(BALL)
    xi = BALL.params({k: v[0] for k, v in BALL.domain.nominal().items()})
    rest = BALL.equilibrium(xi)
    for i, name in enumerate(["theta_x", "theta_y", "x"]):
        moved = eqx.tree_at(lambda s, name=name: getattr(s, name), rest, jnp.float32(1e-3))
        column = np.stack(BALL.observe(BALL.step(moved, (jnp.zeros(()), jnp.zeros(())), xi), xi)) / 1e-3
        np.testing.assert_allclose(A[:, i], column, atol=1e-3)
    pushed = np.stack(BALL.observe(BALL.step(rest, (jnp.float32(0.1), jnp.zeros(())), xi), xi)) / 0.1
    np.testing.assert_allclose(B[:, 0], pushed, atol=1e-3)


def test_pd_keeps_the_ball_on_the_plate():
    random = outcome(BALL, policies.pd(BALL))
    assert random.survived.mean() >= 0.97
    keys = jax.random.split(jax.random.key(3), (1, 200))
    assert rollout.returns(BALL, policies.pd(BALL), BALL.domain.nominal(), keys).returns.mean() >= 1100


def test_lqr_balances_the_pole_on_random_domains():
    random = outcome(CART_POLE, policies.lqr(CART_POLE))
    assert random.survived.mean() >= 0.98
    assert random.returns.mean() >= 2300


def test_a_widened_network_acts_as_before_and_its_new_units_can_learn():
    small, large = (policies.fnn(jax.random.key(8), CART_POLE, sizes) for sizes in ((4, 3), (7, 5)))
    small = jax.tree.map(lambda x: x + 0.3, small)  # biases, too
    wide = cast(policies.FNN, widened(small, large))
    assert wide.hidden == (7, 5)
    observations = jax.random.normal(jax.random.key(10), (4, 50))
    np.testing.assert_allclose(wide(observations), small(observations), atol=1e-6)
    slope = jax.grad(lambda policy: policy(observations).sum())(wide)
    assert np.abs(slope.weights[-1][:, 3:]).min() > 0
    with pytest.raises(ValueError, match="does not fit"):
        widened(large, small)
