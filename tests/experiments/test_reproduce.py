"""`spota reproduce convergence` and `sweeps` with tiny settings."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from bowl import Bowl
from spota import envs, policies
from spota.analysis.evaluate import Axis, Sweep, span
from spota.certify import candidates, looks
from spota.cli import main
from spota.experiments import convergence, sweeps
from spota.experiments.convergence import Convergence
from spota.experiments.sweeps import Panel, Size, kept
from spota.runs import plan, training
from spota.runs.certifying import run_spota
from spota.runs.plan import Plan
from spota.runs.training import Training

TINY = {
    "n_c": 5,
    "n_r": 1,
    "n_G": 3,
    "n_J": 1,
    "n_b": 50,
    "max_iterations": 2,
    "performance_domains": 0,
    "method": "basic_pooled",
    "growth": "constant",
}


def tiny_plans(seed: int, quick: bool, runs: int | None) -> list[Plan]:
    """The second run accepts any loss, so it ends after one iteration."""
    del quick
    thresholds = (1e-9, 1e6)[: runs or 2]
    heads = [plan.resolve(None, {"env": "catapult", "seed": seed + i}) for i in range(len(thresholds))]
    return [replace(h, spota=replace(h.spota, beta=b, **TINY)) for h, b in zip(heads, thresholds, strict=True)]


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.setitem(envs.PLATFORMS, "bowl", Bowl)
    monkeypatch.setattr(convergence, "plans", tiny_plans)
    monkeypatch.chdir(tmp_path)


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *arguments])
    assert stop.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def test_convergence_averages_over_the_runs_and_goes_on(capsys, tmp_path, monkeypatch):
    main(["reproduce", "convergence", "--seed", "3", "--out", "a", "--json"])
    first = json.loads(capsys.readouterr().out)
    (found,) = first["platforms"]
    long, short = found["runs"]
    assert (long["seed"], short["seed"]) == (3, 4)
    one, two = found["iterations"]
    bounds = [long["history"][0]["ucbog"], short["history"][0]["ucbog"]]
    assert (one["bounded"], two["bounded"]) == (2, 1)
    assert (one["n_c"], two["n_r"]) == (5, 1)
    assert one["mean"] == pytest.approx(np.mean(bounds))
    assert one["std"] == pytest.approx(np.std(bounds))
    assert two["mean"] == long["history"][1]["ucbog"]
    with np.load("a/catapult-seed-3/iteration-02/comparison.npz") as block:
        assert two["median_gap"] == long["history"][1]["median_gap"] == np.median(block["gaps.final"])
    names = {p.name for p in (tmp_path / "a").iterdir()}
    pictures = {"convergence-catapult.png", "convergence-catapult.pdf"}
    assert names == {"catapult-seed-3", "catapult-seed-4", "convergence.json", *pictures}

    monkeypatch.setattr(candidates, "find_candidate", lambda *_, **__: pytest.fail("trained again"))
    main(["reproduce", "convergence", "--seed", "3", "--out", "a"])
    told = capsys.readouterr()
    assert "SPOTA would have ended" in " ".join(told.out.split())
    assert "training 2 of 2: catapult, spota, seed 4" in told.err
    assert json.loads((tmp_path / "a" / "convergence.json").read_text())["platforms"] == first["platforms"]


def test_convergence_says_where_runs_would_have_ended_and_how_often_a_bound_rose():
    plans = tuple(tiny_plans(3, False, None))
    result = run_spota(plans[0], envs.make("catapult"))
    threshold = Convergence(plans, (result, result), ([], [])).threshold

    def convergence_of(*runs: list[float]) -> Convergence:
        histories = [tuple(replace(result.history[0], ucbog=b * threshold) for b in bounds) for bounds in runs]
        gaps = tuple([b * np.array([[1.0, 2.0, 96.0]]) for b in bounds] for bounds in runs)
        return Convergence(plans, tuple(replace(result, history=h) for h in histories), gaps)

    found = convergence_of([3.0, 0.5, 2.0], [4.0, 2.0, 1.0])
    assert str(found) == (
        "catapult: SPOTA would have ended 2 of 2 runs, in iteration 2 to 3. "
        "From one iteration to the next the bound rose 1 of 4 times. "
        "The largest 2 % of all gaps carry 31 % of the total."
    )
    assert [i.certified for i in found.iterations] == [0, 1, 1]
    assert found.iterations[0].mean == pytest.approx(3.5 * threshold)
    assert [i.median_gap for i in found.iterations] == [7.0, 2.5, 3.0]
    assert "ended 0 of 2 runs. From" in str(convergence_of([3.0], [2.0]))


def test_an_interrupted_study_says_how_to_go_on(capsys, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(looks, "references_from", stop)
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "convergence", "--runs", "1"])
    assert end.value.code == 130
    where = "runs/reproduce-convergence"
    assert f"the same command with --out {where} goes on" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / where / "catapult-seed-0" / "iteration-01" / "candidate.npz").exists()


def test_a_run_without_a_bound_is_counted_but_not_averaged():
    plans = tuple(tiny_plans(3, False, None))
    result = run_spota(plans[0], envs.make("catapult"))
    one, two = result.history
    lost = replace(one, ucbog=float("inf"))
    halves = (
        replace(result, history=(replace(one, ucbog=4.0), replace(two, ucbog=float("inf")))),
        replace(result, history=(lost,)),
    )
    found = Convergence(plans, halves, ([np.array([1.0]), np.array([2.0])], [np.array([3.0])]))
    first, second = found.iterations
    assert (first.bounded, first.mean) == (1, 4.0)
    assert second.bounded == 0
    assert np.isnan(second.mean)
    np.testing.assert_array_equal(found.ucbog, [[4, np.nan], [np.nan, np.nan]])
    assert (first.median_gap, second.median_gap) == (2.0, 2.0)
    assert np.isnan(first.earned)


def tiny_trainings(seed: int, quick: bool) -> dict[str, Plan | Training]:
    del quick
    few = {"iterations": 1, "rollouts": 2, "epochs": 1, "minibatches": 1, "evaluation_rollouts": 1}
    flags = {"env": "bowl", "algo": "ppo", "nominal": True, "domains": 2, "hidden": (4,), "seed": seed}
    one = training.resolve(None, {**flags, "optimizer": few})
    return {sweeps.directory_name("bowl", algo): one for algo in sweeps.NAMES}


@pytest.fixture
def bowl_sweeps(monkeypatch):
    monkeypatch.setattr(sweeps, "trainings", tiny_trainings)
    monkeypatch.setattr(sweeps, "PANELS", (Panel("bowl", "action_delay", 0.0, 4.0),))
    monkeypatch.setattr(sweeps, "QUICK", Size(points=3, rollouts=4))


def give(tmp_path, *names: str) -> None:
    for i, name in enumerate(names):
        policies.save(
            policies.fnn(jax.random.key(i), envs.make("bowl"), (4,)), tmp_path / "given" / name / "policy.npz"
        )


@pytest.mark.usefixtures("bowl_sweeps")
@pytest.mark.slow
def test_sweeps_train_what_is_missing_and_tell_where_the_return_is_kept(capsys, tmp_path):
    give(tmp_path, "bowl-epopt", "bowl-spota")
    certificate = {"ucbog": 46.42, "threshold": 50.0, "verdict": "certified"}
    (tmp_path / "given" / "bowl-spota" / "certificate.json").write_text(json.dumps(certificate))
    main(["reproduce", "sweeps", "--quick", "--policies", "given"])
    told = capsys.readouterr()
    out = tmp_path / "runs" / "reproduce-sweeps-quick"
    assert {p.name for p in out.iterdir()} == {"bowl-ppo", "sweeps.png", "sweeps.pdf", "sweeps.json"}
    assert "training 1 of 1: bowl, ppo" in told.err
    kept_there = json.loads((out / "sweeps.json").read_text())
    (panel,) = kept_there["panels"]
    assert list(panel["policies"]) == ["nominal PPO", "EPOpt", "SPOTA"]
    assert (panel["noise"], panel["others"], panel["rollouts"]) == (False, "nominal", 4)
    assert panel["axes"][0]["values"] == [0, 2, 4]  # beyond the platform's longest delay
    assert kept_there["certificates"] == {"bowl": certificate}
    assert "SPOTA on bowl: UCBOG 46.4, threshold 50." in told.out
    for k in panel["kept"].values():
        assert k["nominal"] == panel["policies"][k["policy"]]["mean"][0]


@pytest.mark.usefixtures("bowl_sweeps")
def test_mistakes_are_told(capsys, tmp_path):
    assert "no policy.npz in any of bowl-ppo" in fail(capsys, "sweeps", "--policies", "nowhere")
    give(tmp_path, "bowl-ppo")
    (tmp_path / "given" / "bowl-ppo" / "config.toml").write_text("")
    assert "spota train --resume given/bowl-ppo" in fail(capsys, "sweeps", "--policies", "given")
    assert "it is for spota reproduce convergence" in fail(capsys, "sweeps", "--runs", "2")
    assert "it is for spota reproduce sweeps" in fail(capsys, "coverage", "--policies", "given")


def sweep_of(*means: list[float]) -> Sweep:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    returns = np.array(means)[..., None]
    axis = Axis("mass", "kg", "", 3.1, (2.0, 4.0), values)
    names = tuple(f"p{i}" for i in range(len(means)))
    return Sweep("x", (axis,), names, "nominal", False, 100.0, returns, np.ones(returns.shape, bool))


def test_a_return_is_kept_up_to_the_first_value_where_it_is_lost():
    found = kept(sweep_of([95.0, 80.0, 100.0, 90.0, 89.0], [50.0] * 5, [0.0, 1.0, 9.0, 1.0, 9.0]))
    assert [(k.nominal, k.low, k.high) for k in found] == [(100, 3, 4), (50, 1, 5), (9, 3, 3)]
    assert [str(k) for k in found] == ["from 3 to 4 kg", "everywhere, 1 to 5 kg", "nowhere but at 3 kg"]


@pytest.mark.parametrize("points", [Size().points, sweeps.QUICK.points])
def test_the_papers_panels_have_the_nominal_value_among_their_points(points):
    for panel in sweeps.PANELS:
        env = envs.make(panel.env)
        values = span(env, panel.parameter, points, panel.low, panel.high)
        assert values.size == points
        nominal = env.domain[panel.parameter].nominal_value
        assert np.abs(values - nominal).min() < 1e-9


def test_the_papers_trainings(monkeypatch):
    monkeypatch.undo()
    full, quick = sweeps.trainings(1), sweeps.trainings(1, quick=True)
    assert list(full) == [f"{env}-{a}" for env in ("ball-balancer", "cart-pole") for a in ("ppo", "epopt", "spota")]
    assert [w.nominal for w in full.values() if isinstance(w, Training)] == [True, False, True, False]
    for name, work in quick.items():
        more = full[name]
        if isinstance(work, Training) and isinstance(more, Training):
            assert work.optimizer.iterations < more.optimizer.iterations
        else:
            assert (work.preset, more.preset) == ("quick", "tuned")
    runs = convergence.plans(seed=2)
    assert [(p.env, p.preset) for p in runs] == [("ball-balancer", "paper"), ("cart-pole", "paper")] * 5
    assert [p.seed for p in runs[::2]] == [2, 3, 4, 5, 6]
    assert {(p.spota.beta, p.spota.max_iterations) for p in runs} == {(convergence.UNREACHED, convergence.ITERATIONS)}
    assert [(p.env, p.preset) for p in convergence.plans(quick=True)] == [("cart-pole", "quick")] * 2
    with pytest.raises(ValueError, match="at least 1 run"):
        convergence.plans(runs=0)
