"""References of an imported network start from the network itself, or from ours; one policy has one certificate."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from host_point_mass import HostPointMass
from point_mass import PointMass, regulator
from spota import policies
from spota.certify.assessment import assess_policy
from spota.certify.line_up import ITSELF, OURS
from spota.certify.settings import Spota
from spota.policies.one_of import as_one_of
from spota.policies.onnx_export import exported
from spota.policies.onnx_policy import imported
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.runs import exporting
from three_signals import ThreeSignals

ENV, MASS = ThreeSignals(), PointMass()
FILE = f"{Path(__file__).parent.parent / 'data' / 'rsl_rl.onnx'},units=physical"
SMALL = Spota(
    n_c=4, n_r=1, n_G=4, n_J=1, beta=1.0, n_b=50, performance_domains=40, hidden=(4,), looks=1, effort_references=0,
    method="student_t_reference",
)  # fmt: skip
SHORT = Analytic(iterations=3, evaluate_every=1)


def weaker(key, env, domains, start):
    """A solver that only shrinks what it is given: quick, and of the kind that it was given."""
    del key, env, domains
    return jax.tree.map(lambda x: 0.9 * x, start)


@pytest.mark.slow
def test_one_of_two_networks_acts_and_learns_alone():
    theirs, ours = imported(FILE, ENV), policies.fnn(jax.random.key(0), ENV, (4,))
    seen = jax.random.normal(jax.random.key(1), (3, 7))
    for network in (theirs, ours):
        either = as_one_of(network, theirs, ours)
        np.testing.assert_allclose(either(seen), network(seen), rtol=1e-6)
        slope = jax.grad(lambda p: (p(seen) ** 2).sum())(either)
        moved = {
            part: any(jnp.any(x != 0) for x in jax.tree.leaves(getattr(slope, part))) for part in ("imported", "ours")
        }
        assert moved == {"imported": network is theirs, "ours": network is ours}
        assert not slope.theirs.any()


@pytest.mark.slow
def test_references_start_from_the_network_itself():
    found = assess_policy(jax.random.key(0), ENV, imported(FILE, ENV), weaker, SMALL, candidate_solver=weaker)
    assert set(found.certificate.starts) >= {ITSELF, OURS} and found.imitation is None
    assert sum(found.certificate.starts.values()) == SMALL.n_G
    assert found.certificate.policy_sha256 == policies.fingerprint(imported(FILE, ENV))
    assert np.isfinite(found.certificate.ucbog)


@pytest.mark.slow
def test_the_same_policy_has_the_same_certificate_as_npz_as_onnx_and_in_numpy(tmp_path):
    settings = Spota(
        n_c=8,
        n_r=2,
        n_G=10,
        n_J=2,
        beta=1.0,
        n_b=200,
        performance_domains=500,
        hidden=(4,),
        looks=1,
        effort_references=0,
    )
    network = regulator(MASS)
    scale = np.asarray(network.contract.observation_scale)
    weights, biases = ([np.asarray(x) for x in part] for part in (network.weights, network.biases))

    def in_numpy(observation):
        x = np.clip((scale * observation.T).T, -1, 1)
        for w, b in zip(weights, biases, strict=True):
            x = np.tanh((w @ x).T + b).T
        return x

    files = network.save(tmp_path / "p.npz"), exporting.export(network, tmp_path / "p.onnx", MASS)
    npz, onnx, function = (
        assess_policy(jax.random.key(0), MASS, policy, SHORT, settings, candidate_solver=SHORT).certificate
        for policy in (*(policies.find(file, MASS) for file in files), in_numpy)
    )
    assert onnx == npz
    assert function.performance is not None and npz.performance is not None
    np.testing.assert_allclose(function.performance.mean, npz.performance.mean, rtol=1e-5)
    assert abs(function.mean_gap - npz.mean_gap) <= max(npz.ucbog - npz.mean_gap, function.ucbog - function.mean_gap)


@pytest.mark.slow
def test_references_of_an_imported_network_learn_on_a_host_environment(tmp_path):
    env, path = HostPointMass(spread=0.2), tmp_path / "weak.onnx"
    weak = jax.tree.map(lambda x: 0.3 * x, regulator(MASS))
    path.write_bytes(exported(weak, {}).SerializeToString())
    ppo = PPO(iterations=4, rollouts=4, minibatches=5)
    policy = imported(f"{path},units=physical", env)
    found = assess_policy(jax.random.key(0), env, policy, ppo, SMALL, candidate_solver=ppo)
    assert found.imitation is None and found.certificate.starts[ITSELF] > 0
    assert found.certificate.reference_improvement >= 0 and np.isfinite(found.certificate.ucbog)
