"""`spota domains`, `sweep`, `compare` and `explain` as a user meets them."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bowl import Bowl, Hold
from spota import envs, policies
from spota.analysis import evaluate
from spota.certify.procedure import block_directory
from spota.certify.references import find_references
from spota.cli import main
from spota.polopt import exact
from spota.runs.directory import Run
from spota.show import plots
from spota.text import figure


@pytest.fixture(autouse=True)
def _bowl(monkeypatch, tmp_path):
    monkeypatch.setitem(envs.PLATFORMS, "bowl", Bowl)
    monkeypatch.setitem(policies.CONTROLLERS, "hold", lambda _: Hold(jnp.float32(0.1)))
    monkeypatch.chdir(tmp_path)
    for i, name in enumerate(("runs/a", "runs/b")):
        policies.save(policies.fnn(jax.random.key(i), envs.make("bowl"), (4,)), tmp_path / name / "policy.npz")


def run(capsys, *arguments: str) -> str:
    main(arguments)
    return capsys.readouterr().out


def run_json(capsys, *arguments: str) -> dict:
    return json.loads(run(capsys, *arguments, "--json"))


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    return " ".join(told.err.split())


SWEEP = ("sweep", "runs/a", "hold", "--param", "strong", "--points", "5", "--rollouts", "8")


def test_a_sweep_leaves_a_table_a_picture_and_the_figures(capsys, tmp_path):
    text = run(capsys, *SWEEP)
    where = tmp_path / "runs" / "sweep-bowl-strong"
    assert {p.name for p in where.iterdir()} == {"sweep.png", "sweep.pdf", "sweep.json"}
    kept = json.loads((where / "sweep.json").read_text())
    assert kept["axes"][0]["values"] == [-1, -0.5, 0, 0.5, 1]
    assert kept["sources"] == {"a": "runs/a", "hold": "hold"}
    assert (kept["noise"], kept["others"], kept["rollouts"], kept["seed"]) == (False, "nominal", 8, 0)
    for mean in kept["policies"]["hold"]["mean"]:
        assert f"{figure(mean)} " in text
    assert "0 ◂" in text
    assert "100%" in text

    again = run_json(capsys, *SWEEP, "--out", "other")
    assert {k: v for k, v in again.items() if k != "files"} == kept
    assert again["files"] == ["other/sweep.png", "other/sweep.pdf", "other/sweep.json"]
    assert run_json(capsys, *SWEEP, "--seed", "1")["policies"] != kept["policies"]
    assert run_json(capsys, *SWEEP, "--others", "random")["others"] == "random"


def test_a_sweep_goes_where_it_is_told(capsys):
    far = run(capsys, "sweep", "runs/a", "--param", "action_delay", "--to", "4", "--rollouts", "2")
    assert "4 ·" in far  # outside the distribution
    both = ("sweep", "runs/a", "runs/b", "--param", "strong", "--param2", "weak", "--from2", "0.5", "--to2", "2")
    document = run_json(capsys, *both, "--points", "4", "--rollouts", "2")
    assert np.shape(document["policies"]["b"]["mean"]) == (4, 4)
    assert document["axes"][1]["values"] == [0.5, 1, 1.5, 2]
    assert "weak (kg) →" in run(capsys, *both, "--points", "4", "--rollouts", "2")


def test_the_pictures_show_every_policy():
    env, policies_ = Bowl(), {"a": Hold(jnp.float32(0.0)), "b": Hold(jnp.float32(0.5))}
    line = evaluate.sweep(jax.random.key(0), env, policies_, {"strong": np.linspace(-2, 2, 5)}, rollouts=8)
    axes = plots.sweep_figure(line).axes[0]
    assert axes.get_xlabel() == "where the bowl is [m]"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["distribution", "nominal", "a", "b"]  # type: ignore[union-attr]
    np.testing.assert_allclose(np.asarray(axes.get_lines()[2].get_ydata(), float), line.mean[1])
    both = {"strong": np.linspace(-1, 1, 5), "weak": [0.5, 1.0]}
    drawn = plots.sweep_figure(evaluate.sweep(jax.random.key(0), env, policies_, both, rollouts=4))
    assert [axes.get_title() for axes in drawn.axes[:2]] == ["a", "b"]
    np.testing.assert_array_equal(drawn.axes[0].collections[0].get_clim(), drawn.axes[1].collections[0].get_clim())


def test_a_policy_that_is_clipped_often_is_named_once(capsys):
    loud = policies.Linear(jnp.full((1, 1), 1000.0), policies.Contract.of(envs.make("bowl")))
    policies.save(loud, "loud.npz")
    for arguments in (("rollout", "bowl", "--policy", "loud.npz"), ("compare", "runs/a", "loud.npz", "hold")):
        main([*arguments, "--domains", "5"])
        told = " ".join(capsys.readouterr().err.split())
        assert told.count("lies outside [−1, 1]") == 1
        assert "of the steps an action of loud.npz" in told
        assert "(a from -1 to 1 m)" in told
        assert "scale them: action = a / 1." in told
    main(["rollout", "bowl", "--policy", "runs/a", "--domains", "5"])
    assert "outside" not in capsys.readouterr().err


def test_everyone_compares_on_the_same_domains(capsys, tmp_path):
    text = run(capsys, "domains", "bowl", "-n", "20", "-o", "set.json", "--seed", "3")
    assert "Wrote 20 domains of bowl to set.json" in text
    kept = json.loads((tmp_path / "set.json").read_text())
    assert (kept["env"], kept["seed"], kept["n"]) == ("bowl", 3, 20)
    compare = ("compare", "runs/a", "runs/b", "hold", "--rollouts", "2", "--seed", "3")
    drawn = run_json(capsys, *compare, "--domains", "20")
    given = run_json(capsys, *compare, "--on", "set.json")
    assert given["policies"] == drawn["policies"]
    assert given["differences"] == drawn["differences"]
    swept = run_json(capsys, "sweep", "runs/a", "--param", "idle", "--points", "2", "--on", "set.json")
    assert (swept["rollouts"], swept["others"]) == (20, "20 given domains")
    rolled = run_json(capsys, "rollout", "bowl", "--policy", "runs/a", "--on", "set.json")
    assert rolled["n"] == 20
    assert rolled["mean"] == pytest.approx(given["policies"]["a"]["mean"], abs=0.1)  # other start states
    assert run_json(capsys, "domains", "bowl", "-n", "5")["file"] == "runs/bowl-domains-0.json"


def test_a_comparison_in_tables_words_and_json(capsys, tmp_path):
    arguments = ("compare", "runs/a", "runs/b", "hold", "--domains", "20", "--rollouts", "2")
    document, text = run_json(capsys, *arguments), run(capsys, *arguments)
    kept = json.loads((tmp_path / "runs" / "compare-bowl" / "comparison.json").read_text())
    assert "spota compare" in (tmp_path / "runs" / "compare-bowl" / "comparison.html").read_text("utf-8")
    assert kept == {k: v for k, v in document.items() if k != "files"}
    for name, row in document["policies"].items():
        assert name in text
        for what in ("mean", "std", "worst_20_mean", "quantile_10"):
            assert f"{row[what]:.1f}" in text
    pairs = [(d["policy"], d["other"]) for d in document["differences"]]
    assert pairs == [("a", "b"), ("a", "hold"), ("b", "hold")]
    assert document["differences"][0]["words"] in text
    assert document["differences"][2]["words"] not in text  # the first against the others
    swapped = run_json(capsys, "compare", "hold", "runs/a", "--domains", "20", "--rollouts", "2")
    for name in ("hold", "a"):
        assert swapped["policies"][name] == document["policies"][name]
    assert run(capsys, "compare", "runs/a", "--domains", "20").count("a ") >= 1


@pytest.fixture
def spota_run(tmp_path):
    """What SPOTA leaves of an iteration on the catapult: a policy, and three references of one domain each."""
    env, key = envs.make("catapult"), jax.random.key(1)
    start = policies.fnn(key, env)
    references = find_references(key, env, exact.catapult, start, 1, 3)
    with Run(tmp_path / "runs" / "spota", {"env": "catapult"}) as kept:
        kept.block(f"{block_directory(1)}/references", references.to_arrays)
        policies.save(exact.extending(np.float64(1.2), start), kept.directory / "policy.npz")
    return kept.directory


def test_explain_knows_the_policies_of_a_run(capsys, spota_run):
    arguments = ("explain", str(spota_run), "--samples", "60")
    document = run_json(capsys, *arguments)
    assert document["information"]["policies"] == ["spota", "reference 1", "reference 2", "reference 3"]
    assert document["measure_first"] == ["planet"]
    assert document["indices"]["inputs"]["planet"]["total"] == pytest.approx(1.0)
    assert document["indices"]["inputs"]["start and noise"]["total"] == 0
    kept = json.loads((spota_run / "explanation.json").read_text())
    assert kept == {k: v for k, v in document.items() if k != "files"}
    text = run(capsys, *arguments)
    for part in ("planet", "Shares of the variance", "among 4 policies", "The worst domain found", "start and noise"):
        assert part in text
    (spota_run / block_directory(1) / "references.npz").write_bytes(b"torn")
    assert "references.npz is damaged" in fail(capsys, *arguments)


def test_explain_a_policy_alone(capsys, tmp_path):
    run(capsys, "domains", "bowl", "-n", "60", "-o", "set.json")
    document = run_json(capsys, "explain", "runs/a/policy.npz", "--samples", "60", "--on", "set.json", "--out", "told")
    assert document["information"] is None
    assert document["measure_first"][0] == "strong"
    assert "fixed" in document["worst"][0]["domain"]
    assert (tmp_path / "told" / "explanation.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep", "--param", "strong"), "No policy was given"),
        (("sweep", "lqr", "--param", "strong"), "add --env, e.g. --env cart-pole"),
        (("sweep", "runs/c", "--param", "strong"), "runs/c is neither a controller (pd, lqr, energy"),
        (("sweep", "runs/a", "runs/a", "--param", "strong"), "runs/a was given more than once"),
        (("sweep", "runs/a", "--param", "strnog"), "did you mean 'strong'?"),
        (("sweep", "runs/a", "--param", "strong", "--from", "1", "--to", "0"), "strong from 1 to 0 is no range"),
        (("sweep", "runs/a", "--param", "weak", "--from", "-1"), "weak = -1 kg in domain 0: must be positive"),
        (("sweep", "runs/a", "--param", "fixed"), "say from where to where"),
        (("sweep", "runs/a", "--param", "strong", "--param2", "strong"), "two different parameters"),
        (("sweep", "runs/a", "--param", "strong", "--to2", "1"), "name it with --param2"),
        (("sweep", "runs/a", "--param", "strong", "--points", "1"), "at least 2"),
        (("sweep", "runs/a", "--param", "strong", "--rollouts", "0"), "rollouts = 0"),
        (("sweep", "runs/a", "--param", "strong", "--on", "none.json"), "none.json cannot be read"),
        (("compare", "runs/a", "runs/cart"), "runs/a is for bowl, runs/cart is for cart-pole"),
        (("compare", "runs/a", "--env", "cart-pole"), "made for 'bowl'"),
        (("compare", "runs/a", "--domains", "0"), "at least 1"),
        (("compare", "runs/a", "--rollouts", "0"), "at least 1"),
        (("compare", "runs/a", "--seed", "-1"), "a seed is a whole number"),
        (("explain", "runs/a", "--samples", "9"), "9 domains are too few"),
        (("domains", "bwol"), "did you mean 'bowl'?"),
        (("domains", "bowl", "-n", "0"), "at least 1"),
        (("rollout", "bowl", "--policy", "runs/a", "--nominal", "--on", "set.json"), "contradict each other"),
    ],
)
def test_mistakes_end_with_one_sentence(capsys, tmp_path, arguments, message):
    cart_pole = envs.make("cart-pole")
    policies.save(policies.fnn(jax.random.key(0), cart_pole, (4,)), tmp_path / "runs" / "cart" / "policy.npz")
    assert message in fail(capsys, *arguments)
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"a", "b", "cart"}


def test_same_short_names_become_long_ones(capsys, tmp_path):
    policies.save(policies.fnn(jax.random.key(9), envs.make("bowl"), (4,)), tmp_path / "old" / "a" / "policy.npz")
    document = run_json(capsys, "compare", "runs/a", "old/a", "--domains", "20", "--rollouts", "2")
    assert list(document["policies"]) == ["runs/a", "old/a"]


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("sweep", ("--param2", "--from", "--no-noise", "360", "Example: spota sweep", "--on SET.json")),
        ("compare", ("--on SET.json", "worst fifth", "95 % intervals", "Example: spota compare")),
        ("explain", ("--samples", "Measure this first", "RUN_OR_POLICY")),
        ("domains", ("-n", "-o", "--on", "very same ones")),
    ],
)
def test_help_teaches(capsys, command, parts):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for part in parts:
        assert part in told
