"""A certificate for a policy that exists already: where its references start from."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from halving import Halving
from spota.certify import line_up
from spota.certify.assessment import assess_policy
from spota.certify.comparison import _scores
from spota.certify.events import BlockStarted, Solving
from spota.certify.line_up import IMITATED, ITSELF, OURS, common
from spota.certify.settings import Spota
from spota.envs import catapult, make
from spota.envs.cart_pole import CartPole
from spota.policies import Architecture, Linear, fingerprint, fnn, lqr, new_network
from spota.polopt import exact
from spota.polopt.solve import Progress, Solution
from spota.polopt.solver import solves_all

ENV = make("catapult")
KEY = jax.random.key(3)
NETWORK = fnn(KEY, ENV, (2,))
POLICY = exact.extending(1.0, NETWORK)
MARS, VENUS = (exact.extending(catapult.sample_optimum(*planets), NETWORK) for planets in ((1, 0), (0, 1)))
SMALL = Spota(n_c=7, n_r=1, n_G=10, n_J=1, beta=1e-3, n_b=50, performance_domains=20, hidden=(2,),
              method="student_t_reference")  # fmt: skip


class ShortCartPole(CartPole):
    """A tenth of a second."""

    max_steps = 50


SHORT = ShortCartPole()


class Memo:
    """Keeps what it was given, like a run directory."""

    def __init__(self):
        self.kept = {}

    def __call__(self, name, block):
        if name not in self.kept:
            self.kept[name] = {k: np.array(v) for k, v in block().items()}
        return self.kept[name]


@solves_all
def stay(keys, env, domains, inits, watch=None):
    """The weakest solver of all: a reference is its start."""
    del env, domains
    P = keys.shape[0]
    if watch is not None:
        watch(Progress(1, 1, np.zeros(P), np.zeros(P), np.zeros(P), inits, 1, {}))
    score, curve = _scores(jnp.zeros(P), jnp.ones(P)), jnp.zeros((P, 1))
    return Solution(inits, score, score, curve, curve, jnp.zeros(1), jnp.zeros(P, bool))


def earned(policy, planet) -> np.ndarray:
    return catapult.mean_return(exact.extension(policy), planet)


def test_an_existing_network_is_assessed_from_itself():
    found = assess_policy(KEY, ENV, POLICY, exact.catapult, SMALL)
    assert found.imitation is None
    assert found.certificate.n_c is None
    assert found.certificate.policy_sha256 == fingerprint(POLICY)
    gap = catapult.expected_return(catapult.true_optimum()) - catapult.expected_return(1.0)
    assert found.certificate.ucbog > gap
    assert found.certificate.starts == {ITSELF: 10}
    assert found.certificate.performance is not None
    assert found.certificate.performance.mean == pytest.approx(catapult.expected_return(1.0), rel=0.3)


def test_each_reference_starts_from_the_best_for_its_own_domains():
    """So that the gap is at least what known policies earn more, however weak the solver is."""
    memo = Memo()
    found = assess_policy(KEY, ENV, POLICY, stay, SMALL, against={"mars": MARS, "venus": VENUS}, memo=memo)
    planet = memo.kept["iteration-01/references"]["domain.planet"]
    venus = int(planet.sum())
    assert 0 < venus < 10
    assert found.certificate.starts == {ITSELF: 0, "mars": 10 - venus, "venus": venus}
    best = np.maximum.reduce([earned(p, planet) for p in (POLICY, MARS, VENUS)])
    np.testing.assert_allclose(found.comparison.gaps.raw, best - earned(POLICY, planet), atol=1e-4)
    assert found.comparison.improvement == pytest.approx(0, abs=1e-4)  # over their starts


def test_a_candidate_of_our_own_is_trained_on_other_domains():
    memo, heard = Memo(), []
    found = assess_policy(
        KEY, ENV, POLICY, stay, SMALL, candidate_solver=exact.catapult, memo=memo, listener=heard.append
    )
    kept = {name.removeprefix("iteration-01/"): arrays for name, arrays in memo.kept.items()}
    own, planet = kept["candidate"]["domain.planet"], kept["references"]["domain.planet"]
    assert own.shape == (7,)
    theta = catapult.sample_optimum(7 - own.sum(), own.sum())
    better = catapult.mean_return(theta, planet) > earned(POLICY, planet)
    assert found.certificate.starts == {ITSELF: int((~better).sum()), OURS: int(better.sum())}
    assert better.any()
    blocks = [e.block for e in heard if isinstance(e, BlockStarted)]
    assert blocks == ["candidate", "starts", "references", "comparison", "performance", "certificate"]
    again = assess_policy(
        KEY, ENV, POLICY, stay, SMALL, candidate_solver=lambda *_: pytest.fail("trained again"), memo=memo
    )
    assert again.certificate == found.certificate


def test_references_of_a_narrow_policy_are_as_wide_as_ours():
    """A wider network finds more, so that a narrow policy is compared with wide ones; it starts them as it is."""
    settings, memo = dataclasses.replace(SMALL, hidden=(6,)), Memo()
    found = assess_policy(KEY, ENV, POLICY, stay, settings, memo=memo)
    assert memo.kept["iteration-01/references"]["policy.biases.0"].shape == (10, 6)
    np.testing.assert_allclose(found.comparison.gaps.raw, 0, atol=1e-4)


def test_longer_references_start_where_the_usual_ones_did():
    memo, settings = Memo(), dataclasses.replace(SMALL, effort_references=4)
    found = assess_policy(KEY, ENV, POLICY, Halving(1), settings, against={"mars": MARS, "venus": VENUS}, memo=memo)
    planet = memo.kept["iteration-01/references"]["domain.planet"][:4].astype(np.float64)
    starts = [max((POLICY, MARS, VENUS), key=lambda p, at=at: earned(p, at).item()) for at in planet]
    theta = np.array([exact.extension(start) for start in starts])
    want = Halving(3).earned(theta, planet) - Halving(1).earned(theta, planet)
    assert found.certificate.effort_gain == pytest.approx(want.mean(), abs=1e-3)


@pytest.fixture
def quick_imitation(monkeypatch):
    imitate = line_up.imitate
    monkeypatch.setattr(line_up, "imitate", lambda *a: imitate(*a, rounds=1, steps=50, domains=2))


@pytest.mark.usefixtures("quick_imitation")
def test_a_controller_is_assessed_from_its_imitation():
    events, memo = [], Memo()
    settings = dataclasses.replace(SMALL, hidden=(4,), performance_domains=0)
    found = assess_policy(KEY, SHORT, lqr(SHORT), stay, settings, memo=memo, listener=events.append)
    assert found.imitation is not None
    assert found.certificate.max_return == 50
    assert found.certificate.starts == {IMITATED: 10}
    assert found.certificate.policy_sha256 == fingerprint(lqr(SHORT))
    assert {e.block for e in events if isinstance(e, Solving)} == {"references"}
    again = assess_policy(KEY, SHORT, lqr(SHORT), stay, settings, memo=memo)
    assert again.certificate == found.certificate


@pytest.mark.usefixtures("quick_imitation")
def test_a_known_policy_of_another_size_is_imitated():
    memo = Memo()
    large = exact.extending(1.2, fnn(KEY, ENV, (5, 5)))
    found = assess_policy(KEY, ENV, POLICY, stay, SMALL, against={"large": large, "mars": MARS}, memo=memo)
    assert "iteration-01/imitation-1" in memo.kept
    assert "iteration-01/imitation-2" not in memo.kept
    assert memo.kept["iteration-01/references"]["policy.biases.0"].shape == (10, 2)
    assert sum(found.certificate.starts.values()) == 10


@pytest.mark.usefixtures("quick_imitation")
def test_an_imitation_that_is_much_worse_is_named(monkeypatch):
    imitate = line_up.imitate

    def poor(*arguments):
        copy = imitate(*arguments)
        return dataclasses.replace(copy, returns=copy.original_returns - 100.0)

    monkeypatch.setattr(line_up, "imitate", poor)
    still = Linear(jnp.zeros((1, 1)), NETWORK.contract)
    assert "10 references started from a network that imitates" in str(
        assess_policy(KEY, ENV, still, stay, SMALL).certificate
    )
    known = assess_policy(KEY, ENV, POLICY, stay, SMALL, against={"a rule": still}).certificate
    assert "References could start from a rule only as a network that imitates it" in str(known)


def test_policies_of_another_platform_are_refused():
    with pytest.raises(ValueError, match="The policy was made for 'catapult'"):
        assess_policy(KEY, SHORT, POLICY, stay, SMALL)
    with pytest.raises(ValueError, match="The policy was made for 'cart-pole'"):
        assess_policy(KEY, ENV, POLICY, stay, SMALL, against={"other": fnn(KEY, SHORT, (2,))})


class Filtered(eqx.Module):
    """Someone's own policy with memory: it acts on a low-pass of the observation."""

    gain: float = 0.5

    def start(self, n):
        return jnp.zeros(n)

    def step(self, state, observation):
        state = 0.5 * state + 0.5 * observation[0]
        return state, self.gain * state[None]


def test_references_have_the_memory_of_the_policy():
    usual = Architecture((4, 4))
    stack, units, plain = (new_network(KEY, SHORT, a) for a in (
        Architecture((6, 2), 3), Architecture((4, 4), recurrent=5), Architecture((3, 3)),
    ))  # fmt: skip
    assert common((stack,), usual) == Architecture((6, 4), 3)
    assert common((units, stack), usual) == Architecture((6, 4), recurrent=5)
    assert common((plain, stack), usual) == Architecture((6, 4), 3)  # who is known to remember is to be met
    assert common((plain,), usual) == usual
    assert common((plain,), Architecture((4, 4), 2)) == Architecture((4, 4), 2)
    assert common((lqr(SHORT),), usual) == usual
    assert common((Filtered(),), usual) == Architecture((4, 4), line_up.USUAL_MEMORY)


@pytest.mark.usefixtures("quick_imitation")
@pytest.mark.slow
def test_a_policy_with_a_memory_of_its_own_is_assessed_by_references_with_memory():
    memo = Memo()
    settings = dataclasses.replace(SMALL, hidden=(4,), performance_domains=0, memory=2)
    known = new_network(KEY, SHORT, Architecture((3,), 2))
    found = assess_policy(KEY, SHORT, Filtered(), stay, settings, against={"known": known}, memo=memo)
    assert sum(found.certificate.starts.values()) == 10 and set(found.certificate.starts) == {IMITATED, "known"}
    assert memo.kept["iteration-01/references"]["policy.weights.0"].shape == (10, 4, 4 + 5)
    assert "has a memory" not in str(found.certificate)


@pytest.mark.usefixtures("quick_imitation")
@pytest.mark.slow
def test_references_that_cannot_remember_are_a_doubt():
    def forgetful(*arguments):
        return stay(*arguments)

    forgetful.solves_all, forgetful.with_memory = True, False
    settings = dataclasses.replace(SMALL, hidden=(4,), performance_domains=0)
    known = new_network(KEY, SHORT, Architecture((3,), 2))
    found = assess_policy(KEY, SHORT, known, forgetful, settings)
    assert "The policy has a memory, and its references have none" in str(found.certificate)
