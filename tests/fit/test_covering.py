"""Whether a table covers a machine: on a mass and a spring, where everything is known."""

import dataclasses

import jax
import numpy as np
import pytest
from oscillator import ENV, KEY, recording

from spota.fit import coordinates, covering
from spota.fit.covering import applies
from spota.fit.estimate import Problem, best_machine, estimate, settled
from spota.fit.noise import Noise, seen, sensors
from spota.fit.segments import cut
from spota.sim.marginals import TruncatedNormal

MACHINES = 79


def test_the_estimate_finds_the_machine_and_its_noise():
    segments = cut([recording("a", mass=1.15, stiffness=36.0, damping=0.8, action_delay=2)], ENV, 3)
    system = coordinates.linear(ENV.domain, ENV)
    found, noise = best_machine(Problem(ENV, system, segments, sensors(ENV)))
    values = dict(zip(system.names, coordinates.values_of(system, found.z[:, 0]), strict=True))
    assert values["mass"] == pytest.approx(1.15, abs=0.03)
    assert values["stiffness"] == pytest.approx(36.0, abs=1.0)
    assert values["action_delay"] == pytest.approx(2.0, abs=0.3)
    assert noise.sigma[0] == pytest.approx(2e-3, rel=0.1)
    assert noise.tau[0] < 1.6
    spread = np.sqrt(np.diag(found.covariance(0.1)[0]))
    assert spread[system.names.index("colour")] == pytest.approx(0.1**-0.5, rel=0.01)  # nothing is learned


def test_a_gauss_newton_step_is_that_of_all_unknowns_together():
    """With the beginnings eliminated, against one dense system."""
    segments = cut([recording("a", seconds=2.5)], ENV, 3)
    system = coordinates.linear(ENV.domain, ENV)
    problem = Problem(ENV, system, segments, sensors(ENV))
    found = estimate(problem, 12)
    from spota.fit.noise import beginnings
    from spota.fit.prediction import jacobians

    n, p = segments.n, len(system.names)
    free = np.ones(p, bool)
    _, J = jacobians(ENV, system, np.repeat(found.z, n, axis=1), found.start[..., 0], segments, free)
    spread = beginnings(ENV, problem.noise, segments)
    H = np.zeros((p + 2 * n, p + 2 * n))
    for i in range(n):
        own = [*range(p), p + 2 * i, p + 2 * i + 1]
        H[np.ix_(own, own)] += np.einsum("tqi,tq,tqj->ij", J[..., i], problem.weights, J[..., i])
        H[own[p:], own[p:]] += 1 / spread**2
    dense = np.linalg.inv(H + np.diag([1.0] * p + [0.0] * 2 * n))[:p, :p]
    np.testing.assert_allclose(found.covariance()[0], dense, rtol=0.02, atol=2e-4)


def test_a_machine_of_the_table_is_covered_and_what_cannot_be_seen_is_named():
    found = applies(KEY, ENV, [recording("a"), recording("b", seed=1)], MACHINES)
    assert found.covered and found.p_value is not None and found.p_value > 0.03
    assert "These recordings say nothing about" in str(found) and "colour" in str(found)
    assert {e.name for e in found.evidence if e.seen} >= {"mass", "stiffness"}
    assert found.outside["x"] < 0.2


@pytest.mark.parametrize(("stiffness", "words"), [(62.0, "the table ends at 52"), (20.0, "the table begins at 28")])
def test_a_machine_outside_is_refused_and_the_words_say_where(stiffness, words):
    found = applies(KEY, ENV, [recording("a", stiffness=stiffness)], MACHINES)
    assert found.answer == "not covered" and found.p_value is not None and found.p_value < 0.03
    near = next(e.near for e in found.evidence if e.name == "stiffness")
    assert near == pytest.approx(stiffness, rel=0.05)
    assert f"stiffness near {near:.3g} N/m, {words}" in str(found)


def test_model_error_is_admitted():
    """A vibration that the simulator does not know, three times the sensors' noise, refuses no table."""
    r = recording("a")
    slow = 0.006 * np.sin(2 * np.pi * 4.3 * r.time)[:, None]
    found = applies(KEY, ENV, [dataclasses.replace(r, positions=r.positions + slow)], MACHINES)
    assert found.covered
    assert found.explained[0].correlation > 2


def test_nothing_moves_and_nothing_is_commanded():
    still = applies(KEY, ENV, [recording("a", volts=0.02)], MACHINES)
    assert (still.answer, "record a chirp" in still.why) == ("unclear", True)


def test_a_flipped_sign_has_its_own_sentence():
    r = recording("a")
    found = applies(KEY, ENV, [dataclasses.replace(r, commands=-r.commands)], MACHINES)
    assert found.answer == "not covered"
    assert "the sign of" in found.why and "flipped" in found.why


def simulated_machines():
    """Machines of the table, found again from what they would have done; their problem is the last."""
    segments = cut([recording("a")], ENV, 3)
    system = coordinates.linear(ENV.domain, ENV)
    problem = Problem(ENV, system, segments, sensors(ENV))
    start = np.asarray(segments.start, np.float64)[..., None]
    simulated, z, begun = covering._simulated(jax.random.key(5), problem, start, 150)
    problem = dataclasses.replace(problem, segments=simulated, machines=150)
    return settled(problem, z, begun), system, problem


def test_machines_to_compare_with_are_found_as_a_recorded_one_is():
    """From their own truth or from nowhere, the same estimate: or a recording would be compared with something else."""
    null, system, problem = simulated_machines()
    again, _ = best_machine(problem)
    again = estimate(problem, 10, np.clip(again.z, -3, 3), again.start)
    seen = [system.names.index(name) for name in ("mass", "stiffness", "damping", "action_delay")]
    np.testing.assert_allclose(null.z[seen], again.z[seen], atol=0.02)
    assert np.quantile(null.gain, 0.9) < 0.1


def test_measured_beginnings_of_simulated_machines_are_as_far_off_as_those_of_recordings():
    """By the smoothing of noisy samples: against recordings of a machine that rests, whose beginnings are all zero."""
    noisy = [recording(f"r{i}", seconds=20.0, seed=i, noise=2e-3, volts=0.0) for i in range(6)]
    segments = cut(noisy, ENV, 3)
    problem = Problem(ENV, coordinates.linear(ENV.domain, ENV), segments, sensors(ENV))
    start = np.zeros((2, segments.n, 1))
    simulated, _, _ = covering._simulated(jax.random.key(5), problem, start, 3)
    np.testing.assert_allclose(simulated.start.std(axis=1), segments.start.std(axis=1), rtol=0.15)


def test_scores_of_machines_of_the_table_are_standard():
    """Over machines of the table, every parameter that can be seen has mean 0 and deviation 1, as the theory says."""
    null, system, _ = simulated_machines()
    share = covering.learned(system, null)
    t = covering.scores(system, null, share)
    for name in ("mass", "stiffness", "action_delay"):
        j = system.names.index(name)
        assert abs(t[j].mean()) < 0.35 and 0.8 < t[j].std() < 1.25, name
    assert share[system.names.index("colour")] < 1e-3


def test_lasting_errors_count_as_few():
    noise = Noise(np.array([0.5]), np.array([9.0]))
    drawn = noise.draw(np.random.default_rng(0), (400, 1, 200))
    again = seen(drawn, 0)
    assert again.sigma[0] == pytest.approx(0.5, rel=0.05)
    assert again.tau[0] == pytest.approx(9.0, rel=0.2)
    assert noise.weights[0] == pytest.approx(1 / (0.25 * 9))


def test_a_table_of_rows_keeps_its_correlations():
    x = np.random.default_rng(0).normal(size=400)
    rows = {"mass": 1 + 0.1 * x, "stiffness": 40 + 4 * x, "damping": 0.6 + 0.01 * np.sin(9 * x)}
    rows |= {"colour": 0.5 + 0.01 * np.cos(7 * x), "action_delay": np.full(400, 1.0)}
    from spota.sim.domain import Empirical

    table = Empirical({n: list(v) for n, v in rows.items()}, ENV.domain).learned_from(("1",))
    system = coordinates.linear(table, ENV)
    L = np.asarray(system.factor)
    covariance = L @ L.T
    assert covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]) == pytest.approx(1.0, abs=1e-3)
    assert "action_delay" not in system.names and system.constant["action_delay"] == 1.0


def test_a_machine_far_from_a_narrow_table_is_looked_for_as_far_as_the_platforms_machines_go():
    import spota
    from spota.sim.domain import Empirical

    env = spota.make("cart-pole")
    rows = {n: np.full(50, row.nominal_value) for n, row in env.domain.items()}
    rows["pole_length"] = np.linspace(0.160, 0.162, 50)
    fitted = env.with_domain(Empirical({n: list(v) for n, v in rows.items()}, env.domain))
    narrow = coordinates.linear(fitted.domain, fitted)
    assert narrow.names == ("pole_length",)
    spreads = {name: covering._usual_spread(fitted, name) for name in fitted.domain}
    wide = coordinates.wider(narrow, fitted.domain, fitted, spreads)
    assert wide.names == coordinates.linear(env.domain, env).names  # constants of the platform stay constant
    place = wide.names.index("pole_length")
    assert wide.spread[place] == pytest.approx(0.0178, rel=0.05)
    assert np.asarray(wide.mean)[place] == pytest.approx(0.161, rel=1e-3)
    assert np.isfinite(coordinates.values_of(wide, np.zeros(len(wide.names)))).all()


def test_scores_never_leave_the_table():
    system = coordinates.scores(ENV.domain, ("action_delay",))
    low, high = TruncatedNormal(1.0, 0.1).support
    for z in (-6.0, -1.0, 0.0, 2.0, 6.0):
        values = np.asarray(system.values(jax.numpy.full(len(system.names), z, jax.numpy.float32)))
        assert low <= values[0] <= high
        assert values[system.names.index("action_delay")] == pytest.approx(z, abs=1e-4)
    middle = np.array([1.05, 38.0, 0.7, 0.4, 2.0])
    again = system.values(jax.numpy.asarray(system.z_of(middle), jax.numpy.float32))
    np.testing.assert_allclose(np.asarray(again), middle, rtol=1e-3)
