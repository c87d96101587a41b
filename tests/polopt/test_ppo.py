"""PPO on probes with known answers, and its pieces against other libraries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jaxtyping import Array, Key
from one_device import on_one_device

from point_mass import PointMass
from spota.envs import make
from spota.policies import fnn
from spota.polopt.epopt import EPOpt
from spota.polopt.experience import Actor, explore
from spota.polopt.ppo import PPO, judged, normalised, shuffled
from spota.polopt.rows import all_rows
from spota.sim.domain import DomainDistribution, Parameter
from spota.sim.effects import Effects, ObservationNoise
from spota.sim.env import Env, Scalar, Signal
from spota.sim.marginals import Constant

GAMMA = 0.6
SETTING = PPO(iterations=300, rollouts=8, learning_rate=1e-2, gamma=GAMMA, lam=0.9, epochs=4, minibatches=1)
NU = DomainDistribution(
    lifetime=Parameter(Constant(99.0), "steps", "steps until failure"),
    always=Parameter(Constant(0.0), "-", "reward in every step"),
    late=Parameter(Constant(0.0), "-", "reward from the second step on"),
    by_sign=Parameter(Constant(0.0), "-", "reward a unit of the observed sign"),
    by_action=Parameter(Constant(0.0), "-", "reward for an action of the observed sign"),
    shows_age=Parameter(Constant(0.0), "-", "whether the age is observed"),
)
PROBES = {
    "one": {"lifetime": 1.0, "always": 1.0},
    "late": {"lifetime": 2.0, "late": 1.0, "shows_age": 1.0},
    "sign": {"lifetime": 1.0, "by_sign": 1.0},
    "action": {"lifetime": 1.0, "by_action": 1.0},
    "truncated": {"always": 1.0},
    "terminated": {"lifetime": 4.0, "always": 1.0, "shows_age": 1.0},
}


class ProbeState(eqx.Module):
    """A sign that never changes, and the number of steps so far."""

    sign: Scalar
    age: Scalar


@dataclass(frozen=True, eq=False)
class Probe(Env):
    """Each domain is another probe, so that all of them train as one program."""

    domain: DomainDistribution = NU
    effects: Effects = Effects()  # noqa: RUF009, frozen

    name = "probe"
    dt = 1.0
    max_steps = 4
    max_reward = 1.0
    observations = (Signal("sign", "-", -1.0, 1.0), Signal("age", "-", -4.0, 4.0))
    actions = (Signal("u", "-", -1.0, 1.0),)

    def params(self, domain: Mapping[str, Any]) -> Any:
        return dict(domain)

    def start(self, key: Key[Array, ""], xi: Any) -> ProbeState:
        del xi
        return ProbeState(jnp.where(jax.random.bernoulli(key), 1.0, -1.0), jnp.zeros(()))

    def observe(self, state: ProbeState, xi: Any) -> tuple[Scalar, ...]:
        return state.sign, xi["shows_age"] * state.age

    def reward(self, state: ProbeState, action: tuple[Scalar, ...], xi: Any) -> Scalar:
        late = jnp.where(state.age > 0.5, xi["late"], 0.0)
        return xi["always"] + late + xi["by_sign"] * state.sign + xi["by_action"] * state.sign * action[0]

    def step(self, state: ProbeState, action: tuple[Scalar, ...], xi: Any) -> ProbeState:
        del action, xi
        return ProbeState(state.sign, state.age + 1)

    def danger(self, state: ProbeState, xi: Any) -> tuple[Scalar, ...]:
        return (state.age / (xi["lifetime"] - 0.5),)


@pytest.fixture(scope="module")
def trained():
    """All probes after training: name → (critic, policy); values are in rewards."""
    env = Probe()
    update = on_one_device(lambda k, d, s: SETTING.update(env, d, k, s))

    def one(key, domains):
        k_begin, k_update = jax.random.split(key)
        state = SETTING.begin(k_begin, env, fnn(k_begin, env, (16,)))
        keys = jax.random.split(k_update, SETTING.iterations)
        return jax.lax.scan(lambda s, k: (update(k, domains, s)[0], None), state, keys)[0]

    columns = {**env.domain.nominal(4)}
    domains = {n: jnp.stack([jnp.full(4, p.get(n, float(c[0]))) for p in PROBES.values()]) for n, c in columns.items()}
    states = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), len(PROBES)), domains)
    found = [jax.tree.map(lambda x, i=i: x[i], states.nets) for i in range(len(PROBES))]
    return {name: (nets.critic, nets.actor.policy) for name, nets in zip(PROBES, found, strict=True)}


def value(trained, probe: str, sign: float, age: float = 0.0) -> float:
    """The critic works in units of 1/(1 − γ) rewards."""
    return float(trained[probe][0](jnp.array([sign, age]))) / (1 - GAMMA)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
class TestProbes:
    def test_value_must_be_one(self, trained, sign):
        assert value(trained, "one", sign) == pytest.approx(1, abs=0.03)

    def test_value_must_be_discounted(self, trained, sign):
        assert value(trained, "late", sign, 1.0) == pytest.approx(1, abs=0.05)
        assert value(trained, "late", sign, 0.0) == pytest.approx(GAMMA, abs=0.05)

    def test_value_must_follow_the_observation(self, trained, sign):
        assert value(trained, "sign", sign) == pytest.approx(sign, abs=0.05)

    def test_advantage_must_pick_the_better_action(self, trained, sign):
        action = float(trained["action"][1](jnp.array([sign, 0.0]))[0])
        assert action * sign > 0.8

    def test_truncation_bootstraps(self, trained, sign):
        assert value(trained, "truncated", sign) == pytest.approx(1 / (1 - GAMMA), abs=0.1)

    def test_termination_does_not(self, trained, sign):
        for age in range(4):
            want = sum(GAMMA**k for k in range(4 - age))
            assert value(trained, "terminated", sign, float(age)) == pytest.approx(want, abs=0.1)


def test_the_critic_sees_no_noise_and_the_policy_does():
    noisy = PointMass(effects=Effects(noise=ObservationNoise((0.5, 0.5))))
    rows = all_rows(noisy.domain.nominal(2), jax.random.key(0), 10)
    state = SETTING.begin(jax.random.key(1), noisy, fnn(jax.random.key(2), noisy, (8,)))
    seen = explore(noisy, rows, state.nets.actor)
    moved = seen.ideals[0, 0] + noisy.dt * seen.ideals[1, 1]
    np.testing.assert_allclose(seen.ideals[1, 0], moved, rtol=1e-5)  # the law of motion holds without noise only
    assert np.std(seen.observations - seen.ideals) == pytest.approx(0.5, rel=0.1)
    batch = on_one_device(lambda s, e: judged(SETTING, noisy, s.nets, e))(state, seen)
    blind = on_one_device(lambda s, e: judged(SETTING, noisy, s.nets, e))(
        state, replace(seen, observations=seen.ideals)
    )
    np.testing.assert_array_equal(batch.targets, blind.targets)
    np.testing.assert_array_equal(batch.advantages, blind.advantages)


def test_likelihood_is_the_normal_density():
    env = make("ball-balancer")
    actor = Actor(fnn(jax.random.key(0), env), jnp.array([-0.5, 0.3]))
    observation, action = jax.random.normal(jax.random.key(1), (8, 5)), jax.random.normal(jax.random.key(2), (2, 5))
    mean, std = np.asarray(actor.policy(observation)), np.exp([[-0.5], [0.3]])
    want = scipy.stats.norm.logpdf(np.asarray(action), mean, std).sum(axis=0)
    np.testing.assert_allclose(actor.log_likelihood(observation, action), want, rtol=1e-4)


def test_advantages_are_normalised_over_the_steps_that_were_taken():
    alive = jnp.arange(20)[:, None] < jnp.array([20, 7, 1])[None]
    raw = 5 + 3 * jax.random.normal(jax.random.key(0), (20, 3))
    result = np.asarray(on_one_device(normalised)(raw, alive))
    taken = result[np.asarray(alive)]
    assert taken.mean() == pytest.approx(0, abs=1e-5)
    assert taken.std() == pytest.approx(1, rel=1e-4)
    assert (result[~np.asarray(alive)] == 0).all()


@pytest.mark.parametrize("steps", [1, 5, 2500])
def test_every_pass_takes_every_step_once_in_an_order_of_its_own(steps):
    orders = np.asarray(shuffled(jax.random.key(0), 200, steps))
    assert (np.sort(orders, axis=1) == np.arange(steps)).all()
    if steps > 1:
        assert orders.mean(axis=0) == pytest.approx((steps - 1) / 2, abs=0.15 * steps)  # no step has a favourite place
        assert len({tuple(order) for order in orders}) > 60


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"iterations": 0}, "iterations = 0: must be at least 1"),
        ({"rollouts": 0}, "rollouts = 0: must be at least 1"),
        ({"epochs": 0}, "at least 1"),
        ({"minibatches": 0}, "at least 1"),
        ({"lam": 1.1}, "λ"),
        ({"gamma": 1.0}, "γ"),
        ({"learning_rate": 0.0}, "positive"),
        ({"initial_std": -1.0}, "positive"),
        ({"learning_rate": float("nan")}, "positive"),
        ({"evaluate_every": 0}, "at least 1"),
        ({"smoothing": -0.1}, "cannot be negative"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        PPO(**setting)


def test_minibatches_that_do_not_divide_the_episode_are_met_with_some_that_do():
    with pytest.raises(ValueError, match="minibatches = 30 does not divide the 2500 steps of cart-pole; write 25"):
        PPO(minibatches=30).check(make("cart-pole"))


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.5])
def test_epopt_refuses_shares_that_are_none(epsilon):
    with pytest.raises(ValueError, match="0 excluded"):
        EPOpt(epsilon=epsilon)


def test_the_papers_table():
    paper = PPO.paper()
    assert (paper.iterations, paper.rollouts, paper.learning_rate) == (400, 10, 1e-4)
    assert (paper.gamma, paper.lam) == (0.999, 0.95)
