"""A fit of a mass on a spring: it finds the machine, knows what it does not know, and goes on after a kill."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oscillator import ENV, KEY, TRUTH, fit_in, recording

import spota
from spota.fit import fitting, recording_file
from spota.fit.covering import applies
from spota.fit.curves import Curves
from spota.fit.estimate import settled
from spota.fit.fitting import Settings, fit
from spota.fit.learned import Learned, combinations
from spota.fit.posterior import Sampled, delay_weights
from spota.fit.prior import prior
from spota.fit.ridge import determined
from spota.fit.segments import cut
from spota.fit.target import MOST_DELAYS, Both
from spota.runs.directory import Run
from spota.sim import table_file


@pytest.mark.slow
def test_the_rows_surround_the_machine(fitted):
    rows = {row.name: row for row in fitted.learned}
    for name in ("mass", "stiffness", "damping"):
        assert abs(rows[name].mean - TRUTH[name]) < 4 * rows[name].std, name
    assert rows["mass"].identified and rows["mass"].ratio < 0.3
    assert rows["colour"].ratio == pytest.approx(1.0, abs=0.25) and not rows["colour"].identified
    assert rows["action_delay"].mean == pytest.approx(TRUTH["action_delay"], abs=0.3)


@pytest.mark.slow
def test_what_was_not_fitted_is_predicted(fitted):
    held = fitted.held_out
    assert held.error[0] < 0.25 * held.nominal_error[0]
    assert 0.8 < held.coverage[0] <= 1.0
    assert fitted.fitted == ("r0", "r1")
    assert fitted.sampled.divergences == 0 and fitted.sampled.r_hat < 1.1


@pytest.mark.slow
def test_the_table_covers_the_machine_and_names_its_recordings(fitted, fit_directory):
    table = table_file.read(fit_directory, ENV)
    assert table.recordings == ("r00", "r11", "r22")
    assert all(np.array_equal(table.sample(KEY, 30)[n], fitted.env.domain.sample(KEY, 30)[n]) for n in table)
    new = [applies(KEY, ENV.with_domain(table), [recording("new", seed=i, **TRUTH)], 79) for i in (9, 10, 11)]
    assert sum(one.covered for one in new) >= 2  # one recording in thirty is refused by chance
    assert not applies(KEY, ENV.with_domain(table), [recording("other", seed=9, stiffness=36.0)], 79).covered


@pytest.mark.slow
def test_a_fit_that_was_killed_ends_with_the_same_rows(fitted, fit_directory, tmp_path):
    killed = tmp_path / "fit"
    shutil.copytree(fit_directory, killed)
    for name in ("posterior.npz", "domain.json", "fit.json"):
        (killed / name).unlink()
    again = fit_in(killed)
    assert np.array_equal(again.sampled.z, fitted.sampled.z)
    whole, rest = (json.loads((place / "fit.json").read_text()) for place in (fit_directory, killed))
    assert whole["learned"] == rest["learned"]


@pytest.mark.slow  # four processes that compile
def test_a_fit_that_gets_sigkill_on_the_command_line_ends_with_the_same_numbers(tmp_path):
    names, inputs = (("x", "m"), ("x_dot", "m/s")), (("F", "N"),)
    for i in range(2):
        r = recording(f"r{i}", seconds=5.0, seed=i, **TRUTH)
        signals = np.concatenate([r.positions, np.gradient(r.positions, ENV.dt, axis=0)], axis=1)
        recording_file.write(tmp_path / f"r{i}.npz", r.time, signals, r.commands, names, inputs, env="oscillator")
    assert _fit(tmp_path, "whole").wait() == 0
    for block in ("estimate.npz", "again.npz"):
        process = _fit(tmp_path, "killed")
        while process.poll() is None and not (tmp_path / "killed" / block).exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "fit.json").exists()
    assert _fit(tmp_path, "killed").wait() == 0
    whole, rest = (json.loads((tmp_path / place / "fit.json").read_text()) for place in ("whole", "killed"))
    assert {**whole, "seconds": 0} == {**rest, "seconds": 0}
    tables = [(tmp_path / place / "domain.json").read_bytes() for place in ("whole", "killed")]
    assert tables[0] == tables[1]


def _fit(place: Path, out: str) -> subprocess.Popen:
    files = [str(place / f"r{i}.npz") for i in range(2)]
    env = f"{Path(__file__).with_name('oscillator.py')}:ENV"
    command = [sys.executable, "-m", "spota.cli", "fit", *files, "--env", env, "--warm-up", "40", "--draws", "20"]
    return subprocess.Popen([*command, "--out", str(place / out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_what_is_known_only_together_is_said_so():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=4000)
    z = np.stack([shared + 0.05 * rng.normal(size=4000), -shared, rng.normal(size=4000)], axis=1)
    (found,) = combinations(("a", "b", "c"), z)
    assert {name for name, _ in found.parts} == {"a", "b"}
    assert str(found).count("(+)") == 2 and found.ratio < 0.1  # a + b is known: one up, the other down


def test_friction_near_zero_is_not_held_back_by_the_prior():
    """There is no less; but a prior that begins at 1 and is pressed against holds something back."""
    row = Learned("friction", "N", 2.0, 0.5, 0.01, 0.01, 0.001, 0.02, "lower")
    assert not row.held_back((0.0, np.inf))
    assert replace(row, low=1.001).held_back((0.0, np.inf))
    assert not replace(row, at_edge="").held_back((-np.inf, np.inf))


def test_a_prior_is_widened_within_what_is_possible():
    cart_pole = spota.make("cart-pole")
    wide = prior(cart_pole, ("pole_length=0.05:0.3", "gear_efficiency=5", "cart_mass=3"))
    assert wide["pole_length"].marginal.support == (0.05, 0.3)
    assert wide["gear_efficiency"].marginal.support[1] == 1.0
    assert wide["cart_mass"].marginal.support[0] > 0
    assert "cart_friction" in wide and "cart_friction" not in cart_pole.domain
    for text, words in (
        ("pole=3", "no parameter 'pole'"),
        ("gear_efficiency=0.5:1.2", "between"),
        ("x", "could not"),
    ):
        with pytest.raises(ValueError, match=words):
            prior(cart_pole, (text,))


def test_bad_sampling_is_told():
    bad = Sampled(np.zeros((1, 1)), np.ones(1), 3, 1.2, 20.0, 5.0, 0.01)
    told = " ".join(bad.complaints)
    assert "3 transitions diverged" in told and "R-hat 1.200" in told and "20 independent draws" in told
    assert "1 % of the draws count" in told
    assert not Sampled(np.zeros((1, 1)), np.ones(1), 0, 1.005, 400.0, 5.0, 0.6).complaints


def test_friction_joins_only_tables_that_name_it():
    env = spota.make("cart-pole")
    xi = {name: float(row.nominal_value) for name, row in env.domain.items()}
    slow = env.at((0.0, -np.pi, 0.2, 0.0), env.params(xi))
    plainly = env.step(slow, (0.0,), env.params(xi))
    rubbed = env.step(slow, (0.0,), env.params({**xi, "cart_friction": 1.0}))
    mass = xi["cart_mass"] + xi["pole_mass"] / 4 + 0.9 * 3.71**2 * 3.9e-7 / 6.35e-3**2  # a hanging rod carries ¾
    assert float(plainly.x_dot - rubbed.x_dot) == pytest.approx(env.dt / mass, rel=0.01)


def test_a_machine_that_rests_teaches_nothing(tmp_path):
    with Run(tmp_path / "fit", {}) as run, pytest.raises(ValueError, match="nothing here is commanded.*record a chirp"):
        fit(ENV, [recording("a", volts=0.02)], Settings(), run)


def test_delays_share_one_hill():
    """Each has its own middle, so that the best machines of all delays are at v = 0."""
    segments = cut([recording("a", seconds=3.0, **TRUTH)], ENV, 3)
    problem, delays = fitting._problem(ENV, segments)
    many = replace(problem, machines=delays.size, segments=fitting._for_each(segments, delays.size))
    found = settled(
        many, fitting._with_delay(problem, np.zeros((5, 1)), delays), np.repeat(segments.start[..., None], 4, 2)
    )
    both = Both.of(many, found, np.array([2, 1, 3]))
    u = np.zeros((1, both.target.size))
    exact, modelled, z = both.weighed(u)
    np.testing.assert_allclose(z[0].T, found.z[:, [2, 1, 3]], atol=1e-4)
    np.testing.assert_allclose(exact, modelled, rtol=1e-3, atol=0.5)
    weights = delay_weights(many, found, np.full(4, 0.25))[[2, 1, 3]]
    by_density = np.exp(exact[0] - exact[0].max())
    assert np.argmax(by_density) == np.argmax(weights) == 0
    # that beginnings are known better with one delay counts for nothing: it would be 0.21 here
    assert exact[0, 1] - exact[0, 0] == pytest.approx(np.log(weights[1] / weights[0]), abs=0.1)
    assert both.target.delays.volume.shape == (MOST_DELAYS,) and np.isneginf(both.target.delays.volume[3])
    away = np.concatenate([np.random.default_rng(0).normal(size=(20, 4)), np.zeros((20, 1))], axis=1)
    exact, modelled, _ = both.weighed(away)  # the model says what the simulator does, where machines are likely
    np.testing.assert_allclose(exact[:, 0], modelled[:, 0], atol=0.5)


def test_a_unit_of_v_takes_the_volume_that_is_said():
    """By the determinant of v → z, near the best machine and away from it."""
    segments = cut([recording("a", seconds=3.0, **TRUTH)], ENV, 3)
    problem, _ = fitting._problem(ENV, segments)
    found = settled(problem, np.array([[0.0], [0.0], [0.0], [0.0], [2.0]]), segments.start[..., None])
    one = jax.tree.map(lambda x: x[0], Both.of(problem, found, np.array([0])).target.delays)
    assert one.ridge.tight.any() and not one.ridge.tight[problem.coordinates.names.index("colour")]
    for v in (np.zeros(4), np.array([0.3, -0.5, 0.2, 0.4]), np.array([-1.5, 1.0, 2.0, -1.0])):
        jacobian = np.asarray(jax.jacfwd(lambda x: one.ridge.z_of(x)[0])(jnp.asarray(v, jnp.float32)))[:4]
        stretch = float(one.ridge.z_of(jnp.asarray(v, jnp.float32))[1])
        assert np.linalg.slogdet(jacobian)[1] == pytest.approx(one.ridge.volume + stretch, abs=1e-2)


def test_draws_that_went_astray_spoil_no_model():
    """The model is fitted again to what it has drawn, and stays right where machines are likely."""
    segments = cut([recording("a", seconds=3.0, **TRUTH)], ENV, 3)
    problem, _ = fitting._problem(ENV, segments)
    found = settled(problem, np.array([[0.0], [0.0], [0.0], [0.0], [2.0]]), segments.start[..., None])
    both = Both.of(problem, found, np.array([0]))
    rng = np.random.default_rng(0)
    astray = np.concatenate([5.0 + 0.1 * rng.normal(size=(400, 4)), np.zeros((400, 1))], axis=1)
    likely = np.concatenate([rng.normal(size=(20, 4)), np.zeros((20, 1))], axis=1)
    exact, modelled, _ = both.fitted_to(astray).weighed(likely)
    np.testing.assert_allclose(exact, modelled, atol=0.5)


def test_what_ends_abruptly_follows_nobody_if_something_else_can():
    """A uniform and a normal parameter that are known together: the normal one is determined by the other."""
    problem, _ = fitting._problem(ENV, cut([recording("a", seconds=3.0)], ENV, 3))
    names = list(problem.coordinates.names)
    direction = np.zeros(4)
    direction[[names.index("damping"), names.index("mass")]] = 20.0, 10.0
    assert list(determined(problem, np.outer(direction, direction))) == [name == "mass" for name in names[:4]]
    assert not determined(problem, np.eye(4)).any()


def test_curves_are_smooth_and_go_on_straight():
    x = np.linspace(-2.0, 2.0, 41)
    curves = Curves.through(np.stack([x, x]), np.stack([np.sinh(x), x**3]))
    at = lambda t: curves.at(jnp.full(2, t, jnp.float32))  # noqa: E731
    for t in (-1.97, 0.013, 0.62, 1.9):
        np.testing.assert_allclose(at(t), [np.sinh(t), t**3], atol=6e-3)
        np.testing.assert_allclose(jax.jacfwd(at)(t), [np.cosh(t), 3 * t**2], atol=0.15)
    beyond = at(2.5) - at(2.0)
    np.testing.assert_allclose(beyond, 0.5 * jax.jacfwd(at)(3.0), rtol=1e-4)
    level = Curves.through(x[None], np.sinh(x)[None], level=True)
    assert float(level.at(jnp.array([7.0]))[0]) == pytest.approx(np.sinh(2.0))


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="hold out a share"):
        Settings(held_out=0.0)
    with pytest.raises(ValueError, match="give a share"):
        Settings(prior_share=1.0)
    with pytest.raises(ValueError, match="at least 10"):
        Settings(draws=3)
