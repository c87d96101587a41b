"""A fit of a mass on a spring: it finds the machine, knows what it does not know, and goes on after a kill."""

import json
import shutil
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oscillator import ENV, KEY, TRUTH, fit_in, recording

import spota
from spota.fit import fitting
from spota.fit.covering import applies
from spota.fit.estimate import settled
from spota.fit.fitting import Settings, fit
from spota.fit.learned import Learned, combinations
from spota.fit.posterior import Sampled, delay_weights
from spota.fit.prior import prior
from spota.fit.segments import cut
from spota.fit.target import Both
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
    assert applies(KEY, ENV.with_domain(table), [recording("new", seed=9, **TRUTH)], 79).covered
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
    at_best = [np.asarray(one.z_of(jnp.zeros(4))) for one in both.target.delays]
    np.testing.assert_allclose(np.stack(at_best, axis=1), found.z[:, [2, 1, 3]], atol=1e-5)
    u = np.zeros((1, both.target.size))
    exact, z = both.simulated(u)
    np.testing.assert_allclose(exact, both.modelled(u), rtol=1e-3, atol=0.1)
    assert list(z[:, 0, -1]) == [2.0, 1.0, 3.0]
    weights = delay_weights(many, found, np.full(4, 0.25))[[2, 1, 3]]
    by_density = np.exp(exact[0] - exact[0].max())
    assert np.argmax(by_density) == np.argmax(weights) == 0
    ridge = both.target.delays[0].ridge
    assert len(ridge.tight) + len(ridge.loose) == 4
    jacobian = np.asarray(jax.jacfwd(ridge.z_of)(jnp.array([0.3, -0.5, 0.2, 0.4])))[:4]
    assert np.linalg.slogdet(jacobian)[1] == pytest.approx(ridge.volume, abs=1e-3)  # a shear keeps volumes


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="hold out a share"):
        Settings(held_out=0.0)
    with pytest.raises(ValueError, match="give a share"):
        Settings(prior_share=1.0)
    with pytest.raises(ValueError, match="at least 10"):
        Settings(draws=3)
