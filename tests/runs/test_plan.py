"""What decides a run of SPOTA: presets, then a file, then flags; and what is said about mistakes."""

from dataclasses import replace
from typing import Any

import pytest
import tomli_w

from spota.certify.settings import Spota
from spota.envs import make
from spota.polopt import MANY_DOMAINS, default_solver, exact, reference_solver
from spota.polopt.analytic import Analytic
from spota.polopt.epopt import EPOpt
from spota.polopt.ppo import PPO
from spota.runs import config, plan
from spota.runs.plan import Plan, resolve

CART = make("cart-pole")
BALL = make("ball-balancer")


def resolved(*assignments: str, file=None, tables=None, **flags) -> Plan:
    flags = {"env": None if file else "cart-pole", **flags}
    return resolve(file, flags, [("--set", config.from_flags(assignments)), ("the flags", tables or {})])


def test_the_default_is_tuned_with_the_platforms_threshold():
    found = resolved()
    assert (found.algo, found.preset, found.solver, found.seed) == ("spota", "tuned", "default", 0)
    sizes: dict[str, Any] = {"n_c": 5 * MANY_DOMAINS, "n_r": 20, "n_J": 10}
    sizes |= {"hidden": (32, 32), "gain": 1.0, "first_gain": 4.0, "trainings": 2}
    assert found.spota == Spota(beta=60.0, **sizes)
    assert found.spota.method == "split"
    assert found.candidate == default_solver(CART)
    assert found.reference == reference_solver(CART)
    assert resolved(env="ball-balancer").spota == Spota(beta=50.0, **{**sizes, "n_r": 100})
    swing_up = resolved(env="cart-pole-swing-up")
    assert swing_up.candidate == default_solver(make("cart-pole-swing-up"))
    assert resolved(solver="ppo").spota == Spota(beta=60.0, n_J=50)  # it would pay for every domain


@pytest.mark.parametrize("name", ["cart-pole-swing-up", "qube-swing-up"])
def test_what_tames_gradients_in_a_swing_up_tames_those_of_references_too(name):
    found = resolved(env=name)
    same = ("horizon", "outlier", "cut", "barrier", "learning_rate", "rows")
    assert [getattr(found.reference, s) for s in same] == [getattr(found.candidate, s) for s in same]


@pytest.mark.parametrize(
    ("env", "beta"), [("qube", 62.5), ("cart-pole-swing-up", 1230.25), ("qube-swing-up", 100.0), ("catapult", 9.512966)]
)
def test_elsewhere_the_threshold_is_a_share_of_what_can_be_earned(env, beta):
    assert resolved(env=env).spota.beta == pytest.approx(beta, rel=1e-3)


def test_the_papers_preset_has_its_numbers_and_its_interval():
    found = resolved(preset="paper")
    assert found.spota == Spota.paper("cart-pole")
    assert found.spota.method == "basic_pooled"
    assert found.candidate == default_solver(CART)
    ppo = resolved(preset="paper", solver="ppo")
    assert ppo.candidate == ppo.reference == PPO.paper()
    assert resolved(preset="paper", solver="analytic").reference == Analytic()
    assert isinstance(resolved(solver="epopt").candidate, EPOpt)


@pytest.mark.parametrize("solver", ["default", "ppo", "epopt"])
def test_candidates_learn_around_their_domains_and_references_on_theirs(solver):
    found = resolved(solver=solver)
    assert (found.candidate.smoothing, found.reference.smoothing) == (1.0, 0.0)


def test_the_quick_preset_is_smaller_and_still_has_enough_references():
    quick, tuned = resolved(preset="quick"), resolved()
    assert quick.spota.max_iterations <= 3
    assert quick.spota.n_G >= 10  # below, every interval is a guess
    assert quick.spota.method == tuned.spota.method
    assert quick.spota.beta == tuned.spota.beta
    assert quick.candidate.iterations < tuned.candidate.iterations
    assert quick.spota.n_G < tuned.spota.n_G
    assert quick.reference.iterations == tuned.reference.iterations  # weak references would make the bound too small


def test_the_catapult_is_solved_by_its_closed_form():
    found = resolved(env="catapult", preset="quick")
    assert found.candidate is found.reference is exact.catapult
    assert found.table()["candidate"] == "spota.polopt.exact.catapult"
    assert resolved(env="catapult").spota.n_r == resolved().spota.n_r  # a closed form does not pay for domains


def test_later_layers_win(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'env = "cart-pole"\npreset = "paper"\nseed = 4\nsolver = "ppo"\n'
        "[spota]\nn_c = 7\nn_r = 2\nbeta = 40.0\n[candidate]\niterations = 9\nlam = 0.9\n"
    )
    found = resolved("spota.n_c=8", "candidate.iterations=11", file=file, tables=plan.flag_tables(30.0, 2.0, (8,)))
    assert (found.preset, found.seed, found.spota.n_c, found.spota.n_r) == ("paper", 4, 8, 2)
    assert (found.spota.beta, found.spota.max_seconds, found.spota.hidden) == (30.0, 120.0, (8,))
    assert found.candidate == replace(PPO.paper(), iterations=11, lam=0.9)
    assert found.reference == PPO.paper()
    assert resolved(file=file, seed=5).seed == 5


@pytest.mark.parametrize("env", ["cart-pole", "catapult"])
@pytest.mark.parametrize("algo", ["spota", "assess"])
def test_a_plan_survives_its_config_file(tmp_path, env, algo):
    changes = ("spota.n_G=11", "spota.hidden=[8]") + (("reference.iterations=3",) if env == "cart-pole" else ())
    known = {"against": ("runs/a", "pd"), "against_sha256": ("c", "d")}
    told = {"policy": "lqr", "policy_sha256": "ab", **known} if algo == "assess" else {}
    found = resolved(*changes, env=env, algo=algo, preset="quick", seed=9, **told)
    file = tmp_path / "config.toml"
    file.write_text(tomli_w.dumps(found.table()))
    assert resolved(file=file) == found


@pytest.mark.parametrize("preset", ["tuned", "quick", "paper"])
def test_references_of_a_policy_from_anywhere_may_start_from_a_whole_training_of_our_own(preset):
    found = resolved(env="ball-balancer", algo="assess", policy="pd", preset=preset)
    assert (found.candidate, found.reference) == (default_solver(BALL), reference_solver(BALL))
    assert found.spota.n_c == MANY_DOMAINS
    ppo = resolved(algo="assess", policy="lqr", solver="ppo", preset=preset).reference
    assert ppo.iterations == config.solvers("ppo", CART, "paper" if preset == "paper" else "tuned")[1].iterations


def test_the_papers_assessment_keeps_its_interval_and_its_sizes():
    found = resolved(algo="assess", policy="lqr", preset="paper").spota
    assert (found.method, found.n_r, found.n_G, found.effort_references) == ("basic_pooled", 1, 20, 0)


def test_an_assessment_has_a_candidate_of_its_own_and_no_loop():
    found = resolved(algo="assess", policy="lqr")
    assert (found.spota.n_r, resolved(algo="assess", solver="ppo").spota.n_r) == (20, plan.ASSESSED_ON)
    assert found.spota.n_c == MANY_DOMAINS
    assert found.candidate == resolved().candidate  # as strong as that of a training
    assert resolved(algo="assess", policy="lqr", solver="ppo").candidate == found.candidate
    assert resolved("candidate.iterations=7", "spota.n_c=9", algo="assess").candidate.iterations == 7
    assert not set(plan.LOOP_ONLY) & found.table()["spota"].keys()
    with pytest.raises(ValueError, match="--set: max_iterations belongs to the loop over candidates"):
        resolved("spota.max_iterations=3", algo="assess")


def test_a_solver_of_ones_own_trains_the_candidate_of_an_assessment_too():
    mine = PPO(iterations=3)
    found = plan.complete(Plan("cart-pole", algo="assess"), CART, [("here", {"reference": mine})])
    assert found.candidate is found.reference is mine
    assert found.spota.n_c == Spota().n_c
    both = {"reference": mine, "candidate": Analytic(iterations=4)}
    assert plan.complete(Plan("cart-pole", algo="assess"), CART, [("here", both)]).candidate.iterations == 4


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("n_c=10", "--set: there is no table 'n_c'; write spota.n_c=10."),
        ("iterations=10", "write candidate.iterations=10"),
        ("candidat.iterations=10", "did you mean 'candidate'"),
        ("zzz.x=1", "there are: spota, candidate, reference"),
        ("spota.n_x=1", r"--set \[spota\]: Spota has no setting 'n_x'; did you mean"),
        ("spota.n_g=1", "has no setting 'n_g'; did you mean 'n_G'"),
        ("spota.n_c=many", "n_c = 'many': a whole number is needed"),
        ("spota.n_c=0", "n_c=0: must be at least 1"),
        ("spota=3", r"--set \[spota\] = 3: write a table"),
        ("reference.iterations=0", "iterations = 0: must be at least 1"),
        ("reference.warm_up=0", "warm_up = 0: must be at least 1; write e.g. warm_up=20"),
        ("reference.cut=-1", "cut = -1.0: must be positive; leave it out to have none"),
        ("spota.beta=-1.0", "beta=-1.0: must be positive"),
        ("spota.effort_references=21", "effort_references=21: these are some of the n_G = 20 references"),
        ("spota.hidden=[]", "give the sizes of the hidden layers"),
        ("spota.method=basic_poled", "did you mean method='basic_pooled'"),
    ],
)
def test_settings_that_do_not_exist_or_cannot_work_are_named(assignment, message):
    with pytest.raises(ValueError, match=message):
        resolved(assignment)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"env": "cartpole"}, "did you mean 'cart-pole'"),
        ({"env": "qube", "preset": "paper"}, "The paper has no settings for qube; leave out --preset"),
        ({"solver": "pppo"}, "There is no solver 'pppo'; did you mean 'ppo'"),
        ({"solver": "udr"}, "There is no solver 'udr'"),
        ({"seed": -1}, "a seed is a whole number"),
        ({"preset": "quik"}, "preset = 'quik' is not a choice; did you mean 'quick'?"),
    ],
)
def test_flags_that_cannot_work_are_named(flags, message):
    with pytest.raises(ValueError, match=message):
        resolved(**flags)


def test_a_closed_form_has_no_settings():
    with pytest.raises(ValueError, match="exact.catapult has no settings"):
        resolved("candidate.iterations=3", env="catapult")


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("inf"), float("nan")])
def test_a_budget_is_positive(minutes):
    with pytest.raises(ValueError, match="give a positive number of minutes"):
        plan.flag_tables(None, minutes)


def test_files_from_python_with_objects_of_its_own_are_refused_elsewhere(tmp_path):
    file = tmp_path / "config.toml"
    for text in ('env = "cart-pole"\nsolver = "own"\n', 'env = "cart-pole"\n[platform]\neffects = "x"\n'):
        file.write_text(text)
        with pytest.raises(ValueError, match="config.toml was written from Python"):
            resolved(file=file)
