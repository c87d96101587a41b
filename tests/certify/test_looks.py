"""Looks at a policy: references join while it is undecided, and a better policy refutes it."""

import dataclasses

import jax
import numpy as np
import pytest

from spota.certify.algorithm import spota
from spota.certify.assessment import assess_policy
from spota.certify.certificate import Certificate
from spota.certify.looks import may_be_refuted, more_references_help
from spota.certify.settings import Spota
from spota.envs import catapult, make
from spota.policies import fnn
from spota.polopt import exact
from spota.polopt.solver import solves_all
from spota.stats.spending import Trial

ENV = make("catapult")
KEY = jax.random.key(5)
NETWORK = fnn(KEY, ENV, (2,))
SMALL = Spota(n_c=30, n_r=5, n_G=4, n_J=1, max_iterations=1, n_b=50, performance_domains=2000, hidden=(2,))


class Memo:
    """Keeps blocks in a dictionary; a block may be said to have taken long."""

    def __init__(self, seconds: float | None = None):
        self.kept, self._seconds = {}, seconds

    def __call__(self, name, block):
        if name not in self.kept:
            self.kept[name] = block()
        slow = {} if self._seconds is None else {"seconds": np.array(self._seconds)}
        return {**self.kept[name], **slow}


@pytest.fixture(scope="module")
def undecided():
    """A threshold just below the first bound, so that more references help."""
    first = spota(KEY, ENV, exact.catapult, dataclasses.replace(SMALL, beta=1e-6)).certificate
    assert first.look == 1
    memo, settings = Memo(), dataclasses.replace(SMALL, beta=first.ucbog - 1e-3)
    return spota(KEY, ENV, exact.catapult, settings, memo=memo), memo, settings


def test_the_references_double_and_all_of_them_count(undecided):
    result, memo, settings = undecided
    looks = [Certificate.from_json(str(memo.kept[name]["json"])) for name in memo.kept if name.endswith("certificate")]
    assert [c.n_G for c in looks] == [4 * 2**i for i in range(len(looks))]
    assert len(looks) > 1
    assert [c.look for c in looks] == list(range(1, len(looks) + 1))
    assert [c.alpha for c in looks] == [Trial(look=c.look, looks=3).alpha(0.05) for c in looks]
    compared = [memo.kept[name]["gaps.final"] for name in memo.kept if name.endswith("comparison")]
    assert sum(len(gaps) for gaps in compared) == result.certificate.n_G
    ordinary = result.certificate.split.ordinary
    assert ordinary.n == result.certificate.n_G * settings.n_r


def test_what_joins_is_new(undecided):
    _, memo, _ = undecided
    returns = [memo.kept[f"iteration-01/{name}"]["gaps.raw"] for name in ("comparison", "look-2/comparison")]
    assert not np.array_equal(*returns)
    assert [name for name in memo.kept if name.endswith("performance")] == ["iteration-01/performance"]


def test_a_run_that_was_stopped_between_looks_ends_the_same(undecided):
    result, memo, settings = undecided
    resumed = Memo()
    until = list(memo.kept).index("iteration-01/look-2/references")
    resumed.kept = dict(list(memo.kept.items())[: until + 1])
    again = spota(KEY, ENV, exact.catapult, settings, memo=resumed)
    assert again.certificate == result.certificate
    assert list(resumed.kept) == list(memo.kept)


@pytest.mark.parametrize(("limit", "looks"), [(9.0, 1), (1000.0, 2)])
def test_no_look_begins_that_would_take_too_long(undecided, limit, looks):
    """The first look ends after 6 s, and the next would take 5 more."""
    _, memo, settings = undecided
    slow = Memo(seconds=1.0)
    slow.kept = dict(memo.kept)
    result = spota(KEY, ENV, exact.catapult, dataclasses.replace(settings, max_seconds=limit), memo=slow)
    assert min(result.certificate.look, 2) == looks


def test_a_certified_policy_is_looked_at_once():
    memo = Memo()
    result = spota(KEY, ENV, exact.catapult, dataclasses.replace(SMALL, beta=50.0), memo=memo)
    assert result.certificate.verdict == "certified"
    assert result.certificate.gap_at_least is None
    assert not [name for name in memo.kept if "look-" in name or "challenger" in name]


@pytest.mark.parametrize("extension", [0.5, 1.9])
def test_a_poor_policy_is_refuted_and_the_lower_bound_is_true(extension):
    poor = exact.extending(extension, NETWORK)
    found = assess_policy(KEY, ENV, poor, exact.catapult, dataclasses.replace(SMALL, beta=30.0)).certificate
    truth = catapult.expected_return(catapult.true_optimum()) - catapult.expected_return(extension)
    assert (found.verdict, found.look) == ("refuted", 1)
    assert found.gap_at_least is not None
    assert 30 < found.gap_at_least < truth < found.ucbog
    assert str(found).startswith("Refuted: it loses on average at least")


def staying(starts):
    """A candidate is one of the policies that it may start from, by what they earn on its domains."""

    @solves_all
    def solver(keys, env, domains, inits, watch=None):
        starts.append(exact.extension(inits))
        found = exact.catapult(keys, env, domains, inits, watch)
        return dataclasses.replace(found, policy=inits, score=found.start)

    return solver


@pytest.mark.parametrize(("poor", "better"), [(0.5, True), (float(catapult.true_optimum()), False)])
def test_a_reference_that_is_better_for_sure_is_where_the_next_candidate_may_start(poor, better):
    starts, memo = [], Memo()
    settings = dataclasses.replace(SMALL, beta=1e-3, max_iterations=2, trainings=2, looks=1)
    init = exact.extending(poor, NETWORK)
    spota(KEY, ENV, staying(starts), settings, reference_solver=exact.catapult, init=init, memo=memo)
    (_, first), (same, second) = starts
    np.testing.assert_allclose([first, same], poor, rtol=1e-5)
    assert np.isclose(second, poor, rtol=1e-5) != better
    assert catapult.expected_return(second) >= catapult.expected_return(first)
    candidate = memo.kept["iteration-02/candidate"]["policy.biases.1"]
    np.testing.assert_allclose(np.tanh(candidate) + 1, second, rtol=1e-4)


def test_references_that_cannot_settle_it_do_not_join(undecided):
    _, memo, _ = undecided
    c = Certificate.from_json(str(memo.kept["iteration-01/certificate"]["json"]))
    assert c.verdict == "undecided"
    assert not more_references_help(dataclasses.replace(c, verdict="refuted"))
    assert not more_references_help(dataclasses.replace(c, mean_gap=c.threshold + 1))
    assert more_references_help(dataclasses.replace(c, mean_gap=0.0))
    assert may_be_refuted(c)
    assert not may_be_refuted(dataclasses.replace(c, method="basic_pooled"))
    assert not may_be_refuted(dataclasses.replace(c, split=None))
