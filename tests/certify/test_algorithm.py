"""SPOTA on the catapult, where every optimum has a closed form: what it finds can be checked against the truth."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.certify import comparison, looks, settings
from spota.certify.algorithm import spota
from spota.certify.candidates import find_candidate
from spota.certify.comparison import Comparison, _scores, compare, returns_of_each
from spota.certify.events import Assessed, BlockFinished, BlockStarted, Solving
from spota.certify.procedure import Keys, Procedure, compute
from spota.certify.references import find_references, repeated
from spota.certify.settings import Spota
from spota.envs import catapult, make
from spota.envs.cart_pole import CartPole
from spota.policies import Architecture, fingerprint, fnn, lqr
from spota.polopt import exact
from spota.polopt.solve import Progress, Solution
from spota.polopt.solver import solves_all
from spota.sim import rollout
from spota.stats.bootstrap import student_t
from spota.stats.spending import Trial
from spota.stats.split import split_upper

ENV = make("catapult")
KEY = jax.random.key(3)
NETWORK = fnn(KEY, ENV, (2,))
SMALL = Spota(n_c=5, n_r=1, n_G=10, n_J=1, beta=1e-3, max_iterations=2, growth="constant", n_b=200,
              performance_domains=50, hidden=(2,), method="student_t_reference", rejection="first",
              looks=1)  # fmt: skip


class ShortCartPole(CartPole):
    """A tenth of a second."""

    max_steps = 50


SHORT = ShortCartPole()


def gap_of(policy) -> float:
    theta = exact.extension(policy)
    return float(catapult.expected_return(catapult.true_optimum()) - catapult.expected_return(theta))


class Memo:
    """Keeps what it was given, like a run directory."""

    def __init__(self):
        self.kept, self.computed = {}, []

    def __call__(self, name, block):
        if name not in self.kept:
            self.computed.append(name)
            self.kept[name] = {k: np.array(v) for k, v in block().items()}
        return self.kept[name]


@pytest.fixture(scope="module")
def first():
    """A run of two iterations, what it stored and what it said."""
    memo, events = Memo(), []
    return spota(KEY, ENV, exact.catapult, SMALL, memo=memo, listener=events.append), memo, events


@pytest.fixture(scope="module")
def scattered():
    """Twenty references that were moved at random instead of trained: half of them lose."""
    return find_references(KEY, ENV, perturb, NETWORK, 2, 20)


@pytest.fixture(scope="module")
def whole(scattered):
    return compare(KEY, ENV, NETWORK, scattered, 2, chunk=20)


@solves_all
def stay(keys, env, domains, inits, watch=None):
    """No solver at all: every policy is its start."""
    del env, domains, watch
    P = keys.shape[0]
    score, curve = _scores(jnp.zeros(P), jnp.ones(P)), jnp.zeros((P, 1))
    return Solution(inits, score, score, curve, curve, jnp.zeros(1), jnp.zeros(P, bool))


@solves_all
def perturb(keys, env, domains, inits, watch=None):
    """No solver at all: every reference is its start, moved at random."""
    del env, domains
    if watch is not None:
        zeros = np.zeros(keys.shape[0])
        watch(Progress(1, 1, zeros, zeros, zeros, inits, 1, {}))
    moved = jax.vmap(lambda k, p: jax.tree.map(lambda x: x + 0.3 * jax.random.normal(k, x.shape), p))(keys, inits)
    P = keys.shape[0]
    score = _scores(jnp.zeros(P), jnp.ones(P))
    curve = jnp.zeros((P, 1))
    return Solution(moved, score, score, curve, curve, jnp.zeros(1), jnp.zeros(P, bool))


def test_the_candidate_is_the_closed_form_on_its_domains():
    found = find_candidate(KEY, ENV, exact.catapult, 7, NETWORK).solved
    venus = float(found.domains["planet"].sum())
    assert exact.extension(found.policy) == pytest.approx(catapult.sample_optimum(7 - venus, venus), abs=1e-6)
    assert found.solution.curve.shape == (2,)
    assert found.solution.score.returns == pytest.approx(found.solution.curve[-1])


def test_the_best_of_several_trainings_is_the_candidate_and_the_others_are_rivals():
    """All have the same domains; `guessed` moves each at random, and says what it earns there."""

    @solves_all
    def guessed(keys, env, domains, inits, watch=None):
        found, at = perturb(keys, env, domains, inits, watch), np.asarray(domains["planet"])
        assert (at == at[0]).all()
        returns = catapult.mean_return(exact.extension(found.policy)[:, None], at).mean(axis=1)
        return eqx.tree_at(lambda s: s.score.returns, found, jnp.asarray(returns))

    found = find_candidate(KEY, ENV, guessed, 7, architecture=Architecture((2,)), trainings=4)
    planet = np.asarray(found.solved.domains["planet"])
    earned = [catapult.mean_return(exact.extension(p), planet).mean() for p in (found.policy, *found.rivals.values())]
    assert list(found.rivals) == ["rival 1", "rival 2", "rival 3"]
    assert earned == sorted(earned, reverse=True)
    assert earned[0] > earned[-1]
    assert found.solved.solution.score.returns == pytest.approx(earned[0], rel=1e-5)


def test_references_of_a_run_start_from_a_rival_where_it_is_better():
    """References stay what they start from: gaps are then what the better of two trainings earns more."""
    settings = dataclasses.replace(SMALL, trainings=2, max_iterations=1, rejection="reference")
    memo = Memo()
    found = spota(KEY, ENV, perturb, settings, reference_solver=stay, memo=memo)
    starts = found.certificate.starts
    assert sum(starts.values()) == 10
    assert set(starts) == {"the candidate", "rival 1"}
    planet = memo.kept["iteration-01/references"]["domain.planet"]
    earned = memo.kept["iteration-01/starts"]["earned"]
    assert earned.shape == (2, 10)
    assert starts["rival 1"] == int((earned[1] > earned[0]).sum()) > 0
    mine = catapult.mean_return(exact.extension(found.policy), planet).mean(axis=1)
    np.testing.assert_allclose(earned[0], mine, rtol=1e-4)
    gaps = Comparison.from_arrays(memo.kept["iteration-01/comparison"]).gaps.raw
    np.testing.assert_allclose(gaps[:, 0], np.maximum(earned[1] - earned[0], 0.0), atol=1e-3)
    again = spota(KEY, ENV, lambda *_: pytest.fail("trained again"), settings, memo=memo, reference_solver=stay)
    assert again.certificate == found.certificate


@pytest.mark.slow
def test_a_candidate_can_start_from_an_imitation_of_the_platforms_controller(monkeypatch):
    """The imitation is a block of its own, the solver starts from it, and it does what LQR does."""
    monkeypatch.setattr("spota.policies.start.ROUNDS", 1)
    monkeypatch.setattr("spota.policies.imitate.TRIED", 4)
    memo, starts, events = Memo(), [], []

    @solves_all
    def noting(keys, env, domains, inits, watch=None):
        starts.append(inits)
        return perturb(keys, env, domains, inits, watch)

    few = dataclasses.replace(SMALL, n_G=3, max_iterations=1, performance_domains=0, hidden=(8,), start="controller")
    spota(KEY, SHORT, noting, few, memo=memo, listener=events.append)
    assert next(iter(memo.kept)) == "iteration-01/imitation"
    kept = memo.kept["iteration-01/imitation"]
    np.testing.assert_array_equal(starts[0].weights[0][0], kept["weights.0"])
    assert isinstance(events[1], Solving)
    assert (events[1].block, events[1].progress.iteration) == ("imitation", 1)
    seen = 0.05 * jax.random.normal(KEY, (4, 300))
    first = jax.tree.map(lambda x: x[0], starts[0])
    assert float(jnp.corrcoef(first(seen)[0], jnp.clip(lqr(SHORT)(seen), -1, 1)[0])[0, 1]) > 0.9


def test_references_are_many_and_each_is_best_on_its_own_domains():
    found = find_references(KEY, ENV, exact.catapult, NETWORK, 3, 6)
    venus = np.asarray(found.domains["planet"]).sum(axis=1)
    np.testing.assert_allclose(exact.extension(found.policy), catapult.sample_optimum(3 - venus, venus), atol=1e-6)
    assert len(set(map(tuple, np.asarray(found.domains["planet"])))) > 1


def test_gaps_are_the_closed_forms_own():
    references = find_references(KEY, ENV, exact.catapult, NETWORK, 3, 6)
    theta = 1.3
    compared = compare(KEY, ENV, exact.extending(theta, NETWORK), references, 1)
    planet, best = np.asarray(references.domains["planet"]), exact.extension(references.policy)
    want = catapult.mean_return(best[:, None], planet) - catapult.mean_return(theta, planet)
    np.testing.assert_allclose(compared.gaps.raw, want, atol=1e-4)
    lost = want < 0
    assert lost.any()
    others = catapult.mean_return(best[:, None, None], planet[None]) - catapult.mean_return(theta, planet)[None]
    first = [next((g for g in others[:, k, i] if g > want[k, i]), want[k, i]) for k, i in np.argwhere(lost)]
    np.testing.assert_allclose(compared.gaps.final[lost], np.maximum(first, 0), atol=1e-4)
    np.testing.assert_allclose(compared.improvement, want.mean(axis=1), atol=1e-4)


def test_worse_by_a_known_amount_is_a_bound_larger_by_that_amount():
    """J is known, so the extension that is worse than θ* by 5 and by 25 is too."""
    curvature = 2 * catapult.expected_gap(1.0)
    references = find_references(KEY, ENV, exact.catapult, NETWORK, 1, 400)
    bounds = {}
    for loss in (5.0, 25.0):
        policy = exact.extending(catapult.true_optimum() + np.sqrt(2 * loss / curvature), NETWORK)
        assert gap_of(policy) == pytest.approx(loss, rel=1e-3)
        bounds[loss] = float(student_t(KEY, compare(KEY, ENV, policy, references, 1).gaps.final))
        assert bounds[loss] >= loss
    assert bounds[25.0] - bounds[5.0] == pytest.approx(20, rel=0.35)  # 400 planets drawn, 1.6 standard errors


def test_the_certificate_covers_the_true_gap():
    """With exact references the study says: practically always, because the bias is on the safe side."""
    settings = dataclasses.replace(SMALL, max_iterations=1, performance_domains=0)
    for seed in range(8):
        result = spota(jax.random.key(seed), ENV, exact.catapult, settings)
        assert result.certificate.ucbog >= gap_of(result.policy)


@pytest.mark.parametrize("chunk", [1, 10])
def test_chunks_give_the_same_gaps(scattered, whole, chunk):
    cut = compare(KEY, ENV, NETWORK, scattered, 2, chunk=chunk)
    assert (np.asarray(whole.gaps.raw) < 0).any() and (np.asarray(whole.gaps.raw) > 0).any()
    np.testing.assert_allclose(cut.gaps.raw, whole.gaps.raw, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(cut.gaps.final, whole.gaps.final, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(cut.best_known, whole.best_known, rtol=1e-5, atol=1e-4)


def test_policies_side_by_side_earn_what_each_earns_alone():
    three = find_references(KEY, SHORT, perturb, fnn(KEY, SHORT, (4,)), 2, 3)
    keys = jax.random.split(KEY, (3, 2, 5))
    together = returns_of_each(SHORT, three.policy, three.domains, keys, chunk=2)
    for k in range(3):
        one = jax.tree.map(lambda x, k=k: x[k], three.policy)
        alone = rollout.returns(SHORT, one, {n: c[k] for n, c in three.domains.items()}, keys[k]).returns
        np.testing.assert_allclose(together[k], alone, rtol=1e-5)
    assert np.std(together) > 0


def test_a_reference_that_is_the_candidate_has_no_gap(scattered):
    same = eqx.tree_at(lambda r: r.solution.policy, scattered, repeated(NETWORK, 20))
    np.testing.assert_allclose(compare(KEY, ENV, NETWORK, same, 2).gaps.raw, 0, atol=1e-4)


def test_best_replaces_by_no_less_than_first(scattered, whole):
    best = compare(KEY, ENV, NETWORK, scattered, 2, "best").gaps.final
    assert (best >= whole.gaps.final).all()
    assert (best > whole.gaps.final).any()


@pytest.mark.parametrize("rule", ["first", "reference"])
def test_a_lost_reference_is_replaced_by_the_best_known_policy_for_its_domains(scattered, rule):
    found = compare(KEY, ENV, NETWORK, scattered, 2, rule)
    theta, planet = exact.extension(scattered.policy), np.asarray(scattered.domains["planet"])
    candidate = catapult.mean_return(exact.extension(NETWORK), planet).mean(axis=1)
    everyone = np.stack([catapult.mean_return(t, planet).mean(axis=1) for t in theta])
    own, best = np.diagonal(everyone), np.maximum(everyone.max(axis=0), candidate)
    lost = own < candidate
    assert 0 < lost.sum() < 20
    np.testing.assert_allclose(found.best_known.mean(axis=(1, 2)), np.where(lost, best, own), rtol=1e-4)
    if rule == "reference":
        np.testing.assert_allclose(found.gaps.final.mean(axis=1), np.where(lost, best, own) - candidate, atol=2e-3)


def test_domains_that_others_must_show_come_in_few_numbers():
    """Each number is a program that is compiled; what fills up is a domain that was asked for."""
    everywhere = np.ones((20, 5), bool)
    sizes = set()
    for n in range(1, 101):
        asked = everywhere & (np.arange(100).reshape(20, 5) < n)
        k, i = comparison._filled_up(asked)
        assert {*zip(k, i, strict=True)} == {*zip(*np.nonzero(asked), strict=True)}
        sizes.add(k.size)
    assert len(sizes) <= comparison.FILLINGS
    assert max(sizes) - 100 < 100 / comparison.FILLINGS


def test_nobody_runs_elsewhere_where_no_reference_lost(monkeypatch):
    monkeypatch.setattr("spota.certify.comparison._cross_returns", lambda *_: pytest.fail("not needed"))
    best = find_references(KEY, ENV, exact.catapult, NETWORK, 3, 6)
    theta = catapult.true_optimum()
    found = compare(KEY, ENV, exact.extending(theta, NETWORK), best, 1, "reference")
    assert (np.asarray(found.gaps.raw) < 0).any()
    np.testing.assert_array_equal(found.best_known, found.reference_returns)
    np.testing.assert_array_equal(found.gaps.final, found.gaps.raw)


def test_improvement_is_over_the_start(scattered):
    far = exact.extending(1.4, NETWORK)
    compared = compare(KEY, ENV, NETWORK, scattered, 2, starts=repeated(far, 20))
    planet = np.asarray(scattered.domains["planet"])
    want = np.asarray(compared.reference_returns).mean(axis=(1, 2)) - catapult.mean_return(1.4, planet).mean(axis=1)
    np.testing.assert_allclose(compared.improvement, want, rtol=1e-4, atol=1e-3)
    assert not np.allclose(compared.improvement, compared.gaps.raw.mean(axis=1))


def test_not_certified_ends_with_the_lowest_bound(first):
    result, _, _ = first
    assert result.reason == "max_iterations"
    assert not result.certificate.certified
    assert str(result.certificate).startswith("Undecided")
    assert result.certificate.ucbog == min(c.ucbog for c in result.history)
    assert result.history[result.iteration - 1] == result.certificate
    assert result.certificate.policy_sha256 == fingerprint(result.policy)
    assert result.certificate.seed == 3


def test_certified_ends_at_once():
    result = spota(KEY, ENV, exact.catapult, dataclasses.replace(SMALL, beta=1000.0))
    assert result.reason == "certified"
    assert result.iteration == len(result.history) == 1


def test_a_memo_replays_to_the_last_bit(first):
    result, memo, _ = first
    again = spota(KEY, ENV, exact.catapult, SMALL, memo=memo)
    assert [name.split("/")[1] for name in memo.computed] == 2 * [
        "candidate", "references", "comparison", "performance", "certificate",
    ]  # fmt: skip
    assert again.history == result.history
    assert fingerprint(again.policy) == fingerprint(result.policy)


@pytest.mark.parametrize("kept", range(0, 10, 3))
def test_a_run_that_was_stopped_ends_the_same(first, kept):
    result, memo, _ = first
    resumed = Memo()
    resumed.kept = dict(list(memo.kept.items())[:kept])
    again = spota(KEY, ENV, exact.catapult, SMALL, memo=resumed)
    assert again.history == result.history
    for name, arrays in memo.kept.items():
        for key in arrays.keys() - {"seconds"}:
            np.testing.assert_array_equal(arrays[key], resumed.kept[name][key], err_msg=f"{name} {key}")


def test_comparisons_come_back_from_their_arrays(first):
    _, memo, _ = first
    again = Comparison.from_arrays(memo.kept["iteration-01/comparison"])
    for name, array in again.to_arrays().items():
        np.testing.assert_array_equal(array, memo.kept["iteration-01/comparison"][name])


def test_progress_tells_every_block(first):
    _, _, events = first
    started = [e.block for e in events if isinstance(e, BlockStarted) and e.iteration == 1]
    assert started == ["candidate", "references", "comparison", "performance", "certificate"]
    assert all(not e.replayed for e in events if isinstance(e, BlockFinished))
    assessed = [e for e in events if isinstance(e, Assessed)]
    assert assessed[-1].best.ucbog == min(e.certificate.ucbog for e in assessed)
    assert fingerprint(assessed[-1].policy) == assessed[-1].best.policy_sha256


def test_no_two_uses_share_a_key():
    run = Procedure(KEY, ENV, exact.catapult, perturb, SMALL, settings.linear_growth, compute)
    words = {tuple(map(int, jax.random.key_data(k))) for i in (1, 2, 3) for k in run.keys(i)}
    assert len(words) == 3 * len(Keys._fields)


def test_iterations_draw_other_domains(first):
    _, memo, _ = first
    a, b = (memo.kept[f"iteration-0{i}/references"]["domain.planet"] for i in (1, 2))
    assert (a != b).any()
    assert (memo.kept["iteration-01/candidate"]["domain.planet"] != a[:5, 0]).any()


def test_sizes_follow_the_sequence():
    growth = {"linear": [5, 10, 15], "doubling": [5, 10, 20], "constant": [5, 5, 5]}
    for name, want in growth.items():
        assert [settings.GROWTHS[name](5, k) for k in (1, 2, 3)] == want


def test_a_sequence_of_ones_own_decides_the_sizes():
    result = spota(KEY, ENV, exact.catapult, SMALL, sequence=lambda n_0, k: n_0 + (n_0 > 1) * k)
    assert [(c.n_c, c.n_r) for c in result.history] == [(6, 1), (7, 1)]


def test_a_falling_sequence_is_refused():
    with pytest.raises(ValueError, match="never fall"):
        spota(KEY, ENV, exact.catapult, SMALL, sequence=lambda n_0, k: n_0 + 5 - 5 * k)


def test_no_iteration_begins_after_the_time_is_up():
    result = spota(KEY, ENV, exact.catapult, dataclasses.replace(SMALL, max_seconds=1e-9))
    assert result.reason == "max_seconds"
    assert len(result.history) == 1


def test_time_before_an_interruption_counts(first):
    _, memo, _ = first
    slow, block = Memo(), "iteration-01/references"
    slow.kept = {**memo.kept, block: {**memo.kept[block], "seconds": np.array(3600.0)}}
    settings = dataclasses.replace(SMALL, max_seconds=3000.0)
    result = spota(KEY, ENV, exact.catapult, settings, memo=slow)
    assert result.reason == "max_seconds"
    assert result.seconds > 3600


def remembering(starts):
    @solves_all
    def solver(keys, env, domains, inits, watch=None):
        starts.append(exact.extension(inits))
        return exact.catapult(keys, env, domains, inits, watch)

    return solver


@pytest.mark.parametrize("warm", [True, False])
def test_references_start_from_the_candidate_and_a_warm_candidate_from_the_last(warm):
    starts, memo = [], Memo()
    spota(KEY, ENV, remembering(starts), dataclasses.replace(SMALL, warm_start=warm), memo=memo)
    candidate_1, references_1, candidate_2, _ = starts
    found = memo.kept["iteration-01/candidate"]
    theta = np.tanh(found["policy.biases.1"]) + 1
    np.testing.assert_allclose(references_1, np.repeat(theta, 10), atol=1e-6)
    assert np.allclose(candidate_2, theta, atol=1e-6) == warm
    assert not np.allclose(candidate_1, theta, atol=1e-3)


def test_references_may_have_an_optimizer_of_their_own():
    candidates, references = [], []
    spota(KEY, ENV, remembering(candidates), SMALL, reference_solver=remembering(references))
    assert [starts.size for starts in candidates] == [1, 1]
    assert [starts.size for starts in references] == [10, 10]


def test_alpha_is_spent_over_the_iterations():
    result = spota(KEY, ENV, exact.catapult, dataclasses.replace(SMALL, spend_alpha="cubes"))
    assert [c.alpha for c in result.history] == [Trial(k, 2).alpha(0.05) for k in (1, 2)]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_G": 0}, "n_G=0: must be at least 1"),
        ({"looks": 0}, "looks=0: must be at least 1"),
        ({"beta": -1.0}, "beta=-1.0: must be positive"),
        ({"alpha": 95.0}, "write alpha=0.05"),
        ({"method": "bassic_pooled"}, "did you mean method='basic_pooled'"),
        ({"rejection": "worst"}, "'first', 'best'"),
        ({"growth": "expo"}, "'linear'"),
        ({"spend_alpha": "cube"}, "did you mean spend_alpha='cubes'"),
        ({"performance_domains": 0}, "write performance_domains=20000, or method='studentized_reference'"),
        ({"max_seconds": 0.0}, "max_seconds=0.0"),
        ({"worst_share": 0.0}, "worst_share=0.0"),
        ({"chunk": 0}, "chunk=0"),
        ({"effort_references": 1}, "one alone has no spread; write a number from 2 to 20, or 0"),
        ({"effort_references": 21}, "these are some of the n_G = 20 references"),
        ({"effort_factor": 1}, "effort_factor=1: must be at least 2; write effort_factor=2"),
    ],
)
def test_settings_that_cannot_work_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        Spota(**setting)


def test_the_papers_settings():
    ball, cart = Spota.paper("ball-balancer"), Spota.paper("cart-pole", max_iterations=3)
    assert (ball.beta, ball.n_J, cart.beta, cart.n_J, cart.max_iterations) == (50, 120, 60, 50, 3)
    assert (cart.n_c, cart.n_r, cart.n_G, cart.n_b, cart.alpha, cart.method) == (5, 1, 20, 1000, 0.05, "basic_pooled")
    with pytest.raises(ValueError, match="'ball-balancer', 'cart-pole'"):
        Spota.paper("qube")


def test_our_procedure_is_the_default_and_the_papers_stays():
    ours, papers = Spota(), Spota.paper("cart-pole")
    assert (ours.method, ours.rejection, ours.spend_alpha, ours.performance_domains) == (
        "split", "reference", "cubes", 20_000,
    )  # fmt: skip
    assert (papers.method, papers.rejection, papers.spend_alpha, papers.performance_domains) == (
        "basic_pooled", "first", "none", 2000,
    )  # fmt: skip


def test_the_split_of_a_run_is_about_single_returns_on_domains_of_its_own():
    memo = Memo()
    settings = dataclasses.replace(SMALL, method="split", performance_domains=300, max_iterations=1, n_r=3)
    c = spota(KEY, ENV, exact.catapult, settings, memo=memo).certificate
    unseen, compared = memo.kept["iteration-01/performance"], memo.kept["iteration-01/comparison"]
    assert (unseen["returns"].size, unseen["pilot"].size) == (300, looks.PILOT)
    level, floor = np.quantile(np.asarray(unseen["pilot"], np.float64), [0.05, 0.01], method="lower")
    want = split_upper(
        compared["candidate_returns"], compared["best_known"], unseen["returns"], level,
        ENV.min_return, ENV.max_return, 0.05, floor=floor,
    )  # fmt: skip
    assert c.split == want
    assert c.ucbog == want.bound >= c.mean_gap


def test_the_closed_form_is_refused_elsewhere():
    with pytest.raises(ValueError, match="catapult's"):
        spota(KEY, SHORT, exact.catapult, SMALL)
