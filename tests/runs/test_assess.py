"""`spota assess`: a certificate for a file, a run or a controller, and what is said about mistakes."""

import functools
import json
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from spota import envs, policies
from spota.certify import line_up, looks
from spota.certify.certificate import Certificate
from spota.cli import main
from spota.envs import catapult
from spota.policies import Linear, fingerprint, fnn
from spota.polopt import exact

TINY = ("--no-report", "--set", "spota.n_G=10", "spota.n_r=2", "spota.n_J=1", "spota.n_b=50",
        "spota.performance_domains=20",
        "spota.method=student_t_reference")  # fmt: skip
NETWORK = fnn(jax.random.key(0), envs.make("catapult"), (3, 3))
POLICY = exact.extending(1.0, NETWORK)


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    POLICY.save("policy.npz")


def run(capsys, *arguments: str):
    main(["assess", *arguments])
    return capsys.readouterr()


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["assess", *arguments])
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    return " ".join(told.err.split())


@pytest.mark.slow
def test_a_network_of_any_size_is_assessed_from_itself(capsys, monkeypatch):
    told = run(capsys, "policy.npz", "--env", "catapult", *TINY, "--out", "a", "--json")
    document = json.loads(told.out)
    certificate = Certificate.from_dict(document["certificate"])
    assert certificate.policy_sha256 == fingerprint(POLICY)
    assert (certificate.n_c, certificate.n_r, certificate.n_G) == (None, 2, 10)
    assert document["imitation"] is None
    assert json.loads(Path("a/certificate.json").read_text()) == document["certificate"]
    assert json.loads(Path("a/result.json").read_text()) == {k: v for k, v in document.items() if k != "directory"}
    assert fingerprint(policies.load("a/policy.npz")) == fingerprint(POLICY)
    assert {p.stem for p in Path("a/iteration-01").glob("*.npz")} == {
        "candidate", "starts", "references", "comparison", "performance", "certificate",
    }  # fmt: skip
    config = tomllib.loads(Path("a/config.toml").read_text())
    assert (config["algo"], config["policy"], config["env"]) == ("assess", "policy.npz", "catapult")

    again = run(capsys, "--config", "a/config.toml", "--out", "b")
    assert Path("b/certificate.json").read_bytes() == Path("a/certificate.json").read_bytes()
    assert again.out.startswith("Undecided: on an unseen domain it may lose")
    assert "spota.n_r=100" in again.out
    assert "the certificate is in b" in again.out
    assert "The report is b/report.html" in again.out
    assert "Undecided" in Path("b/report.html").read_text("utf-8")

    monkeypatch.setattr(looks, "references_from", lambda *_: pytest.fail("trained again"))
    shown = run(capsys, "--resume", "a", "--json")
    assert json.loads(shown.out) == document
    assert "a holds this run already" in shown.err


def test_the_file_knows_its_platform_and_a_good_policy_is_certified(capsys):
    told = run(capsys, "policy.npz", *TINY, "--beta", "1000", "--out", "a")
    assert told.out.startswith("Certified:")
    assert "n_r=10" not in told.out


def test_a_run_directory_is_a_policy(capsys):
    POLICY.save("trained/policy.npz")
    document = json.loads(run(capsys, "trained", *TINY, "--out", "a", "--json").out)
    assert document["certificate"]["policy_sha256"] == fingerprint(POLICY)


def test_a_controller_is_assessed_from_a_network_that_imitates_it(capsys, monkeypatch):
    small = functools.partial(line_up.imitate, rounds=1, steps=50, domains=2)
    monkeypatch.setattr(line_up, "imitate", small)
    controller = Linear(jnp.zeros((1, 1)), POLICY.contract)
    monkeypatch.setitem(policies.CONTROLLERS, "lqr", lambda _: controller)
    arguments = ("lqr", "--env", "catapult", *TINY, "spota.hidden=[2]", "--out", "a")
    document = json.loads(run(capsys, *arguments, "--json").out)
    assert document["policy"] == "lqr"
    assert document["certificate"]["policy_sha256"] == fingerprint(controller)
    assert document["imitation"]["mean"] == pytest.approx(document["imitation"]["original_mean"], rel=0.1)
    assert Path("a/iteration-01/imitation.npz").exists()
    assert "found in the directory" in run(capsys, *arguments).err


@pytest.mark.slow
def test_known_policies_are_starts_and_part_of_the_run(capsys):
    mars, venus = (exact.extending(catapult.sample_optimum(*n), NETWORK) for n in ((1, 0), (0, 1)))
    mars.save("runs/mars/policy.npz")
    venus.save("venus.npz")
    arguments = ("policy.npz", *TINY, "--against", "runs/mars", "venus.npz", "--out", "a")
    document = json.loads(run(capsys, *arguments, "--json").out)
    assert document["against"] == ["runs/mars", "venus.npz"]
    starts = document["certificate"]["starts"]
    assert list(starts) == ["the policy", "our candidate", "runs/mars", "venus.npz"]
    assert sum(starts.values()) == 10
    assert starts["runs/mars"] + starts["venus.npz"] > 0
    config = tomllib.loads(Path("a/config.toml").read_text())
    assert config["against"] == ["runs/mars", "venus.npz"]
    assert config["against_sha256"] == [fingerprint(mars), fingerprint(venus)]
    assert json.loads(run(capsys, "--resume", "a", "--json").out) == document
    assert "against" in fail(capsys, "policy.npz", *TINY, "--against", "runs/mars", "--out", "a")
    mars.save("venus.npz")
    assert "against_sha256 is" in fail(capsys, *arguments)


def test_ctrl_c_says_how_to_go_on(capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(looks, "compare", stop)
    with pytest.raises(SystemExit) as stopped:
        run(capsys, "policy.npz", *TINY, "--out", "a")
    assert stopped.value.code == 130
    assert "To go on:\n  spota assess --resume a\n" in capsys.readouterr().err
    assert Path("a/iteration-01/references.npz").exists()


def test_another_policy_in_the_same_directory_is_refused(capsys):
    run(capsys, "policy.npz", *TINY, "--out", "a")
    exact.extending(1.2, NETWORK).save("policy.npz")
    assert "policy_sha256 is" in fail(capsys, "policy.npz", *TINY, "--out", "a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Which policy? Write e.g. spota assess policy.npz"),
        (("lqr",), "lqr: a controller, or code of your own, does not know its platform; add --env"),
        (("policy.npz", "--env", "cart-pole"), "The policy was made for 'catapult'"),
        (("nothing.npz", "--env", "catapult"), "neither a policy file, a run directory"),
        (("nothing.npz",), "nothing.npz is neither a controller"),
        (("lqr", "--env", "cartpole"), "did you mean 'cart-pole'?"),
        (("policy.npz", "--beta", "0"), "beta=0.0: must be positive"),
        (("policy.npz", "--preset", "paper"), "The paper has no settings for catapult"),
        (("policy.npz", "--set", "spota.growth=linear"), "growth belongs to the loop over candidates"),
        (("policy.npz", "--set", "candidate.iterations=3"), "exact.catapult has no settings"),
        (("policy.npz", "--against", "nothing.npz", "--env", "catapult"), "neither a policy file, a run directory"),
        (("policy.npz", "--against", "nothing.npz"), "nothing.npz is neither a controller"),
        (("policy.npz", "--against", "policy.npz"), "policy.npz was given more than once"),
        (("lqr", "--env", "cart-pole", "--against", "policy.npz"), "The policy was made for 'catapult'"),
        (("policy.npz", "--set", "n_r=3"), "write spota.n_r=3"),
        (("policy.npz", "--seed", "-1"), "a seed is a whole number"),
        (("policy.npz", "--resume", "a"), "--resume a: there is no run"),
        (("policy.npz", "--config", "none.toml"), "none.toml cannot be read"),
    ],
)
def test_mistakes_end_with_one_sentence_and_no_directory(capsys, tmp_path, arguments, message):
    assert message in fail(capsys, *arguments)
    assert [p.name for p in tmp_path.iterdir()] == ["policy.npz"]
