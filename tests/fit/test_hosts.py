"""Recordings and simulators that the host steps: the same answers as for the same physics in jax."""

import dataclasses

import jax
import numpy as np
import pytest
from host_oscillator import HostOscillator
from oscillator import ENV, KEY, SETTINGS, TRUTH, recording

import spota
from spota.fit import coordinates
from spota.fit.covering import applies
from spota.fit.fitting import Settings, fit
from spota.fit.prediction import jacobians, predicted
from spota.fit.segments import cut
from spota.runs.directory import Run
from spota.sim.domain import Empirical
from spota.sim.replaying import replay

HOST = HostOscillator()


def test_differences_are_the_derivatives():
    """Through the compiled spring, and between springs side by side; a pinned coordinate is not looked at."""
    segments = cut([recording("a", seconds=3.0)], ENV, 3)
    system = coordinates.linear(ENV.domain, ENV)
    z = np.random.default_rng(0).normal(size=(len(system.names), segments.n))
    free = np.array([name != "mass" for name in system.names])
    r, J = jacobians(ENV, system, z, segments.start, segments, free)
    small = dataclasses.replace(HOST, at_once=7)  # so that many batches are put together
    again, differences = jacobians(small, system, z, segments.start, segments, free)
    np.testing.assert_allclose(again, r, atol=2e-6)
    np.testing.assert_allclose(predicted(small, system, z, segments.start, segments), r, atol=2e-6)
    scale = np.abs(J).max(axis=(0, 1, 3), keepdims=True) + 1e-9
    moving = [i for i in range(J.shape[2]) if i != system.names.index("mass")]
    np.testing.assert_allclose((differences / scale)[:, :, moving], (J / scale)[:, :, moving], atol=3e-3)
    assert not differences[:, :, system.names.index("mass")].any()


@pytest.mark.parametrize(("stiffness", "covered"), [(41.0, True), (62.0, False)])
def test_both_simulators_get_the_same_answer(stiffness, covered):
    recordings = [recording("a", seconds=5.0, stiffness=stiffness)]
    pure, host = (applies(KEY, env, recordings, 39) for env in (ENV, HOST))
    assert host.covered is covered and host.p_value == pytest.approx(pure.p_value, abs=0.05)
    near = {e.name: e.near for e in pure.evidence}
    for e in host.evidence:
        assert e.near == pytest.approx(near[e.name], rel=0.02, abs=0.02), e.name


def test_what_lies_outside_a_narrow_table_is_looked_for_where_the_platforms_own_table_goes():
    rows = {n: np.full(40, row.nominal_value) for n, row in ENV.domain.items()}
    rows["stiffness"] = 40 + 0.1 * np.random.default_rng(0).normal(size=40)
    narrow = HOST.with_domain(Empirical({n: list(v) for n, v in rows.items()}, ENV.domain))
    assert narrow.own_domain is HOST.domain and narrow.with_effects(noise=None).own_domain is HOST.domain
    found = applies(KEY, narrow, [recording("a", seconds=5.0, stiffness=47.0, action_delay=0)], 39)
    assert not found.covered and found.evidence[0].name == "stiffness"
    assert found.evidence[0].near == pytest.approx(47.0, rel=0.03)


def test_a_failed_machine_stands_still_where_physics_do_not_go_on():
    class Ending(HostOscillator):
        goes_on = False

    start, pushed = np.array([[0.9, 0.0], [5.0, 0.0]]), np.zeros((30, 1, 2))
    domains = {n: np.full(2, row.nominal_value) for n, row in ENV.domain.items()}
    whole, ended = (replay(env, domains, start, pushed) for env in (HOST, Ending()))
    over = np.abs(whole[:, 0, 0]) > 1
    first = int(over.argmax())
    assert over.any() and not over.all()
    np.testing.assert_array_equal(ended[: first + 1], whole[: first + 1])
    np.testing.assert_array_equal(ended[first:, :, 0], np.broadcast_to(ended[first, :, 0], (30 - first, 2)))


def test_what_is_missing_is_said_with_what_to_type(tmp_path):
    import host_point_mass

    bare = host_point_mass.HostPointMass()
    with pytest.raises(ValueError, match=r"write its method open_at\(domains, observation\)"):
        applies(KEY, bare, [recording("a")])
    with Run(tmp_path / "fit", {}) as run, pytest.raises(ValueError, match="cannot begin where a recording was"):
        fit(bare, [recording("a")], Settings(), run)


@pytest.mark.slow
def test_a_fit_finds_the_machine(tmp_path):
    recordings = [recording(f"r{i}", seconds=5.0, seed=i, **TRUTH) for i in range(3)]
    with Run(tmp_path / "fit", {"env": "host-oscillator"}) as run:
        found = fit(HOST, recordings, SETTINGS, run)
    rows = {row.name: row for row in found.learned}
    for name in ("mass", "stiffness", "damping"):
        assert abs(rows[name].mean - TRUTH[name]) < 4 * rows[name].std, name
    assert rows["mass"].ratio < 0.3 and rows["action_delay"].mean == pytest.approx(TRUTH["action_delay"], abs=0.3)
    assert found.held_out.error[0] < 0.25 * found.held_out.nominal_error[0]


@pytest.mark.slow
def test_a_mujoco_model_finds_the_pole_of_our_cart_pole(tmp_path):
    """Recordings are simulated in jax, and a MuJoCo model of the same machine explains them."""
    pytest.importorskip("mujoco")
    from spota.experiments.recorded_machines import recorded

    pure, host = spota.make("cart-pole"), spota.make("examples/mujoco_cart_pole.py:env")
    drawn = pure.domain.sample(jax.random.key(3), 2)
    longer = {**drawn, "pole_length": np.array([drawn["pole_length"][0], 0.165])}
    hanging = (0.0, -np.pi, 0.0, 0.0)
    inside, outside = recorded(jax.random.key(1), pure, longer, hanging)
    assert applies(KEY, host, [inside], 39).covered
    refused = applies(KEY, host, [outside], 39)
    assert not refused.covered and refused.evidence[0].name == "pole_length"
    settings = Settings(("pole_length=0.05:0.3",), warm_up=150, draws=40)
    with Run(tmp_path / "fit", {"env": "mujoco"}) as run:
        found = fit(host, [outside], settings, run)
    pole = next(row for row in found.learned if row.name == "pole_length")
    assert pole.mean == pytest.approx(0.165, abs=4 * pole.std) and pole.std < 0.005
