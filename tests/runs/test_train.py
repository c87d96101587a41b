"""`spota train` with tiny settings: what it leaves, how it goes on, and what it says about mistakes."""

import json
import tomllib
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota import envs, policies
from spota.cli import main
from spota.envs.cart_pole import CartPole
from spota.polopt.rows import Score
from spota.polopt.solve import Solution
from spota.runs import plan, training
from spota.sim import rollout
from spota.stats.bounds import worst_mean

QUICK = ("--algo", "analytic", "--domains", "2", "--hidden", "8")
SETTINGS = ("--set", "iterations=4", "rollouts=2", "evaluate_every=2", "evaluation_rows=20")
FILES = {".config-as-made.toml", ".lock", "config.toml", "metrics.jsonl", "policy.npz", "result.json", "solution.npz"}


@dataclass(frozen=True, eq=False)
class Short(CartPole):
    """A twentieth of a second."""

    name = "short"
    max_steps = 25


@pytest.fixture(autouse=True)
def _short(monkeypatch, tmp_path):
    monkeypatch.setitem(envs.PLATFORMS, "short", Short)
    monkeypatch.chdir(tmp_path)


def train(capsys, *arguments: str):
    main(["train", "short", *arguments])
    return capsys.readouterr()


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["train", *arguments])
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    return " ".join(told.err.split())


def forbid(monkeypatch):
    monkeypatch.setattr(training, "solve", lambda *_: pytest.fail("trained again"))


def test_a_run_leaves_plain_files_goes_on_and_repeats(capsys, tmp_path, monkeypatch):
    told = train(capsys, *QUICK, *SETTINGS, "--seed", "3", "--out", "a", "--json")
    result, out = json.loads(told.out), tmp_path / "a"
    assert {p.name for p in out.iterdir()} == FILES
    assert json.loads((out / "result.json").read_text()) == {k: v for k, v in result.items() if k != "directory"}
    assert result["own_domains"]["mean"] >= result["start"]["mean"]
    far = result["unseen_domains"]
    assert far["n"] == 500
    assert far["worst_20_mean"] <= far["mean"] <= result["max_return"] == 25
    assert result["environment_steps"] == 4 * 2 * 2 * 25
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4]
    assert {"returns", "survival", "best", "seconds", "objective"} <= lines[0].keys()
    config = tomllib.loads((out / "config.toml").read_text())
    assert (config["seed"], config["hidden"], config["optimizer"]["iterations"]) == (3, [8], 4)
    assert policies.find(out, envs.make("short")).hidden == (8,)  # type: ignore[union-attr]

    repeated = json.loads(train(capsys, "--config", "a/config.toml", "--out", "b", "--json").out)
    for name in ("own_domains", "start", "unseen_domains"):
        assert repeated[name] == result[name]
    assert (out / "policy.npz").read_bytes() == (tmp_path / "b" / "policy.npz").read_bytes()

    forbid(monkeypatch)
    again = train(capsys, *QUICK, *SETTINGS, "--seed", "3", "--out", "a")
    assert "on 2 random domains" in again.out
    assert "On 500 random domains that it has never seen" in again.out
    assert "spota rollout short --policy a" in again.out
    assert "seed is 3 there, 4 now" in fail(capsys, "short", *QUICK, *SETTINGS, "--seed", "4", "--out", "a")

    (out / "solution.npz").write_bytes(b"torn")
    with pytest.raises(BaseException, match="trained again"):
        main(["train", "short", *QUICK, *SETTINGS, "--seed", "3", "--out", "a"])
    assert "solution.npz is not a finished block" in " ".join(capsys.readouterr().err.split())


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('algo = "udr"\npreset = "paper"\ndomains = 7\nseed = 1\n[optimizer]\niterations = 9\nlam = 0.9\n')
    flags = {"env": "short", "seed": 5, "domains": None, "optimizer": {"iterations": 11}}
    settings = training.resolve(file, flags)
    assert (settings.algo, settings.domains, settings.seed) == ("udr", 7, 5)
    solver = settings.optimizer
    assert (solver.iterations, solver.lam, solver.learning_rate, solver.fresh_domains) == (11, 0.9, 1e-4, True)


@pytest.mark.parametrize("algo", ["default", "ppo", "epopt"])
def test_training_on_the_nominal_domain_stays_on_it(algo):
    random, nominal = (
        training.resolve(None, {"env": "cart-pole", "algo": algo, "nominal": n}).optimizer for n in (False, True)
    )
    assert (random.smoothing, nominal.smoothing) == (1.0, 0.0)


def interrupt_after_one(_optimizer, _key, _env, _domains, init, watch):
    best = jax.tree.map(lambda x: x[None], init)
    watch(training.Progress(1, 4, np.ones(1), np.ones(1), np.ones(1), best, 100, {"finite": np.ones(1)}))
    raise KeyboardInterrupt


def test_ctrl_c_keeps_the_best_policy_so_far_and_leaves_nothing_half_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "solve", interrupt_after_one)
    with pytest.raises(SystemExit) as stop:
        main(["train", "short", *QUICK, *SETTINGS, "--out", "a"])
    assert stop.value.code == 130
    told = " ".join(capsys.readouterr().err.split())
    assert "a has config.toml, metrics.jsonl, policy.npz: the policy is the best so far" in told
    assert "To go on: spota train --resume a" in told
    assert {p.name for p in (tmp_path / "a").iterdir()} == {
        ".config-as-made.toml",
        ".lock",
        "config.toml",
        "metrics.jsonl",
        "policy.npz",
    }
    assert policies.load(tmp_path / "a" / "policy.npz")


def diverge(_optimizer, _key, _env, _domains, init, _report):
    score = Score(jnp.float32(20.0), jnp.float32(1.0))
    return Solution(init, score, score, jnp.full(1, 20.0), jnp.ones(1), jnp.zeros(1), jnp.array(True))


def test_a_diverged_run_warns_and_keeps_its_best_policy(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "solve", diverge)
    told = train(capsys, *QUICK, *SETTINGS, "--out", "a", "--json")
    result = json.loads(told.out)
    assert result["diverged"]
    assert ["diverged" in w for w in result["warnings"]] == [True, False, False]
    assert "warning: The training diverged" in told.err
    assert "nothing better than its start" in " ".join(told.err.split())
    assert policies.load(tmp_path / "a" / "policy.npz")


def test_default_directories_are_new(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "solve", interrupt_after_one)
    monkeypatch.setattr("time.strftime", lambda _: "now")
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["train", "short", *QUICK, *SETTINGS])
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"short-analytic-now", "short-analytic-now-2"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cartpole", *QUICK), "did you mean 'cart-pole'?"),
        (("short", "--algo", "ppo", "--domains", "0"), "at least 1 domain"),
        (("short", "--algo", "ppo", "--seed", "-1"), "a seed is a whole number"),
        (("short", "--algo", "ppo", "--hidden", "0"), "hidden"),
        (("short", "--algo", "ppo", "--set", "iteratons=3"), "did you mean 'iterations'?"),
        (("short", "--algo", "ppo", "--set", "iterations=many"), "a whole number is needed"),
        (("short", "--algo", "ppo", "--set", "iterations=0"), "at least 1"),
        (("short", "--algo", "ppo", "--set", "iterations"), "NAME=VALUE"),
        (("short", "--algo", "udr", "--nominal"), "write --algo ppo"),
        (("short", "--algo", "analytic", "--preset", "paper"), "leave out --preset"),
        (("short", "--algo", "ppo", "--config", "none.toml"), "none.toml cannot be read"),
    ],
)
def test_mistakes_end_with_one_sentence_and_no_directory(capsys, tmp_path, arguments, message):
    assert message in fail(capsys, *arguments)
    assert not list(tmp_path.iterdir())


def test_a_file_with_mistakes_is_named(capsys, tmp_path):
    (tmp_path / "mine.toml").write_text("domans = 3\n")
    assert "mine.toml: Training has no setting 'domans'; did you mean 'domains'?" in fail(
        capsys, "short", *QUICK, "--config", "mine.toml"
    )
    (tmp_path / "mine.toml").write_text("optimizer = 3\n")
    assert "write a table [optimizer]" in fail(capsys, "short", *QUICK, "--config", "mine.toml")


def test_a_file_where_the_directory_should_be(capsys, tmp_path):
    (tmp_path / "a").write_text("")
    assert "a file stands where a directory is needed" in fail(capsys, "short", *QUICK, *SETTINGS, "--out", "a/b")


def test_the_policy_is_compared_with_the_platforms_own_controller(capsys, tmp_path):
    """Untrained, it is worse; the figures are those of the two policies on the same domains with the same keys."""
    told = train(capsys, *QUICK, *SETTINGS[:1], "iterations=1", "learning_rate=1e-9", *SETTINGS[2:], "--out", "a")
    assert "The platform's own controller lqr earns" in told.out
    assert "more than the policy" in told.out
    assert "warning: The policy is worse than the platform's own controller" in told.err
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    found, env = result["controller"], envs.make("short")
    *_, k_unseen, k_rollouts = jax.random.split(jax.random.key(0), 5)
    unseen, keys = env.domain.sample(k_unseen, 500), jax.random.split(k_rollouts, (500, 1))
    mine, theirs = (
        np.asarray(rollout.returns(env, policy, unseen, keys).returns[:, 0], np.float64)
        for policy in (policies.find("a", env), policies.lqr(env))
    )
    assert (found["name"], found["verdict"], found["n"]) == ("lqr", "worse", 500)
    assert found["mean"] == pytest.approx(theirs.mean(), rel=1e-6)
    assert found["gain"] == pytest.approx((mine - theirs).mean(), rel=1e-6)
    assert found["gain"] < -2 * found["gain_standard_error"] < 0
    assert any("own controller" in w for w in result["warnings"])


def test_a_platform_without_a_controller_has_nothing_to_be_compared_with():
    settings = training.resolve(None, {"env": "catapult", "algo": "ppo"})
    assert envs.make(settings.env).controller is None
    with pytest.raises(ValueError, match="catapult has no classical controller"):
        training.resolve(None, {"env": "catapult", "algo": "ppo", "start": "controller"})


@pytest.mark.parametrize(
    ("env", "start"),
    [
        ("ball-balancer", "new"),
        ("cart-pole", "new"),
        ("cart-pole-swing-up", "controller"),
        ("qube", "controller"),
        ("qube-swing-up", "controller"),
    ],
)
def test_what_a_platform_starts_from(env, start):
    assert training.resolve(None, {"env": env}).start == start
    assert training.resolve(None, {"env": env, "start": "new"}).start == "new"
    assert plan.resolve(None, {"env": env}).spota.start == start


@pytest.fixture
def _quick_imitation(monkeypatch):
    monkeypatch.setattr("spota.policies.start.ROUNDS", 2)
    monkeypatch.setattr("spota.policies.imitate.TRIED", 8)


@pytest.mark.usefixtures("_quick_imitation")
@pytest.mark.slow
def test_a_start_from_the_controller_is_kept_repeats_and_is_improved_on(capsys, tmp_path, monkeypatch):
    longer = ("iterations=20", *SETTINGS[2:5], "evaluation_rows=40")
    from_lqr = (*QUICK, "--start", "controller", "--set", *longer)
    result = json.loads(train(capsys, *from_lqr, "--out", "a", "--json").out)
    assert result["start_from"] == "controller"
    fresh = json.loads(train(capsys, *QUICK, *SETTINGS, "--out", "new", "--json").out)
    assert result["start"]["mean"] > fresh["start"]["mean"]
    assert result["own_domains"]["mean"] > result["start"]["mean"]
    lines = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    assert [line["block"] for line in lines] == ["imitation"] * 2 + ["solution"] * 20

    repeated = json.loads(train(capsys, "--config", "a/config.toml", "--out", "b", "--json").out)
    assert repeated["start"] == result["start"]
    assert (tmp_path / "a" / "policy.npz").read_bytes() == (tmp_path / "b" / "policy.npz").read_bytes()

    (tmp_path / "b" / "solution.npz").unlink()
    monkeypatch.setattr(training, "first_policy", lambda *_: pytest.fail("imitated again"))
    main(["train", "--resume", "b"])
    assert (tmp_path / "a" / "policy.npz").read_bytes() == (tmp_path / "b" / "policy.npz").read_bytes()


def test_the_worst_fifth():
    assert worst_mean(np.array([5.0, 1.0, 4.0, 2.0, 3.0, 9.0, 9.0, 9.0, 9.0, 9.0]), 0.2) == 1.5
    assert worst_mean(np.array([3.0]), 0.2) == 3.0


def test_help_teaches_the_settings(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for part in ("--set iterations=200 learning_rate=1e-3", "minibatches", "barrier_start", "[optimizer]", "--nominal"):
        assert part in told
