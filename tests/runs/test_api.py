"""`spota.train` and `spota.assess` from Python."""

import dataclasses
import tomllib
from pathlib import Path

import jax.numpy as jnp
import pytest

import spota
from spota import api
from spota.certify.events import Assessed, BlockFinished
from spota.certify.settings import Spota
from spota.policies import fingerprint
from spota.polopt import exact
from spota.polopt.solver import solves_all

SMALL = {"n_c": 5, "n_r": 2, "n_G": 10, "n_J": 1, "n_b": 50, "performance_domains": 20, "hidden": (2,),
         "max_iterations": 1, "method": "student_t_reference"}  # fmt: skip
ASSESSED = {name: value for name, value in SMALL.items() if name not in ("n_c", "max_iterations")}
CATAPULT = spota.make("catapult")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def trained():
    return spota.train("catapult", seed=3, settings=SMALL)


def test_training_needs_one_line_and_writes_nothing(trained, tmp_path):
    assert not list(tmp_path.iterdir())
    assert trained.certificate.seed == 3
    assert trained.certificate.threshold == pytest.approx(9.51, abs=0.01)
    assert str(trained.certificate).startswith("Undecided")
    path = trained.policy.save("policy.npz")
    assert fingerprint(spota.load(path)) == trained.certificate.policy_sha256


def test_a_directory_keeps_it_and_gives_the_same(trained):
    heard = []
    again = spota.train("catapult", seed=3, settings=SMALL, out="a", listener=heard.append)
    assert again.certificate == trained.certificate
    assert Path("a/certificate.json").exists()
    assert isinstance(heard[-1], Assessed)
    config = tomllib.loads(Path("a/config.toml").read_text())
    assert config["spota"]["n_c"] == 5
    assert "platform" not in config
    heard.clear()
    shown = spota.train("catapult", seed=3, settings=SMALL, out="a", listener=heard.append)
    assert shown.certificate == trained.certificate
    assert all(e.replayed for e in heard if isinstance(e, BlockFinished))


def test_the_name_and_the_object_of_a_platform_give_the_same(trained):
    assert spota.train(CATAPULT, seed=3, settings=SMALL).certificate == trained.certificate


def test_a_platform_of_ones_own_is_described_in_the_directory():
    mine = dataclasses.replace(CATAPULT, domain=CATAPULT.domain.replace(planet=spota.Bernoulli(0.5)))
    spota.train(mine, settings=SMALL, out="a")
    config = tomllib.loads(Path("a/config.toml").read_text())
    assert config["platform"]["domain"]["planet"]["probability"] == 0.5
    with pytest.raises(ValueError, match="a holds a run with other settings"):
        spota.train(CATAPULT, settings=SMALL, out="a")


def test_optimizers_may_be_functions_of_ones_own():
    calls = []

    @solves_all
    def mine(keys, env, domains, inits, watch=None):
        calls.append(keys.size)
        return exact.catapult(keys, env, domains, inits, watch)

    spota.train("catapult", settings=SMALL, reference=mine, out="a")
    assert calls == [10]
    config = tomllib.loads(Path("a/config.toml").read_text())
    assert config["solver"] == "own"
    assert config["reference"].endswith("mine")
    assert config["candidate"] == "spota.polopt.exact.catapult"


def test_settings_may_be_an_object_and_arguments_win():
    result = spota.train("catapult", settings=Spota(**SMALL), beta=1000.0, max_minutes=5.0)
    assert result.reason == "certified"
    assert result.certificate.threshold == 1000


def test_progress_is_shown_on_standard_error(capsys):
    spota.train("catapult", settings=SMALL, progress=True)
    told = capsys.readouterr()
    assert not told.out
    assert "iteration 1: n_c = 5, n_r = 2: UCBOG" in told.err


def test_policies_are_assessed_as_objects_and_files(trained):
    trained.policy.save("policy.npz")
    by_file = spota.assess("policy.npz", "catapult", settings=ASSESSED)
    by_object = spota.assess(trained.policy, env=CATAPULT, settings=ASSESSED)
    assert by_file.certificate == by_object.certificate
    assert by_file.certificate.policy_sha256 == trained.certificate.policy_sha256


def test_two_functions_do_not_share_a_directory():
    def always(theta):
        return lambda observation: jnp.full((1, *observation.shape[1:]), theta)

    first, second = (api.identity(always(theta), CATAPULT) for theta in (0.1, 0.2))
    assert first != second
    assert first == api.identity(always(0.1), CATAPULT)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"n_x": 3}}, r"the arguments \[spota\]: Spota has no setting 'n_x'"),
        ({"settings": {"n_c": 0}}, "n_c=0"),
        ({"beta": -1.0}, "beta=-1.0"),
        ({"max_minutes": 0.0}, "positive number of minutes"),
        ({"solver": "pppo"}, "did you mean 'ppo'"),
        ({"candidate": {"iterations": 3}}, "exact.catapult has no settings"),
        ({"seed": -1}, "a seed is a whole number"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        spota.train("catapult", **arguments)
