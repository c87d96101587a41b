import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from spota.envs import catapult, make
from spota.envs.catapult import MAX_EXTENSION, CatapultParams
from spota.sim import rollout

SIGMA = 0.15


class Extend(eqx.Module):
    """Always the same extension."""

    theta: jax.Array

    def __call__(self, observation):
        return jnp.broadcast_to(2 * self.theta / MAX_EXTENSION - 1, (1, *observation.shape[1:]))


def draws(n, size, seed=0):
    """How many of n domains are Venus, again and again."""
    return np.random.default_rng(seed).binomial(n, 0.7, size)


def test_optimum_and_its_return_are_the_known_ones():
    assert catapult.true_optimum() == pytest.approx(1.2454075775, abs=1e-9)
    assert catapult.expected_return(catapult.true_optimum()) == pytest.approx(-30.1377726751, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "bias"), [(1, 30.137773), (5, 5.572591), (10, 2.755024), (30, 0.911347), (100, 0.272668)]
)
def test_simulation_optimization_bias_is_the_known_one(n, bias):
    assert catapult.simulation_optimization_bias(n) == pytest.approx(bias, abs=1e-6)


def test_gaps_are_the_known_ones():
    assert catapult.expected_gap(SIGMA) == pytest.approx(3.573176, abs=1e-6)
    assert catapult.expected_estimated_gap(30, SIGMA) == pytest.approx(4.484523, abs=1e-6)


@pytest.mark.parametrize("n_venus", [0, 1, 7, 10])
def test_the_sample_optimum_beats_a_search(n_venus):
    found = optimize.minimize_scalar(
        lambda theta: -catapult.mean_return(theta, n_venus / 10), (0.4, 1.6), options={"xtol": 1e-12}
    )
    assert catapult.sample_optimum(10 - n_venus, n_venus) == pytest.approx(found.x, abs=1e-6)


def test_one_planet_alone_asks_for_its_own_pre_extension():
    assert catapult.sample_optimum(3, 0) == 0.5
    assert catapult.sample_optimum(0, 3) == 1.5


def test_the_bias_is_what_repeated_optimization_shows():
    n = 10
    n_venus = draws(n, 200_000)
    best = catapult.mean_return(catapult.sample_optimum(n - n_venus, n_venus), n_venus / n)
    measured = best - catapult.expected_return(catapult.true_optimum())
    assert catapult.simulation_optimization_bias(n) == pytest.approx(
        measured.mean(), abs=4 * measured.std() / np.sqrt(measured.size)
    )


def test_the_estimated_gap_is_what_repeated_comparison_shows():
    n = 30
    n_venus = draws(n, 200_000)
    theta = catapult.true_optimum() + SIGMA * np.random.default_rng(1).standard_normal(n_venus.size)
    share = n_venus / n
    gap = catapult.mean_return(catapult.sample_optimum(n - n_venus, n_venus), share) - catapult.mean_return(
        theta, share
    )
    assert catapult.expected_estimated_gap(n, SIGMA) == pytest.approx(gap.mean(), abs=4 * gap.std() / np.sqrt(gap.size))


def test_the_bias_shrinks_with_every_domain():
    bias = [catapult.simulation_optimization_bias(n) for n in range(1, 60)]
    assert np.all(np.diff(bias) < 0)
    assert bias[-1] > 0


def test_no_domains_have_no_bias():
    with pytest.raises(ValueError, match="at least one"):
        catapult.simulation_optimization_bias(0)


def test_everything_follows_from_the_planet():
    mars, venus = CatapultParams(0.0), CatapultParams(1.0)
    assert [mars.g, mars.k, mars.x] == pytest.approx([3.71, 1000, 0.5])
    assert [venus.g, venus.k, venus.x] == pytest.approx([8.87, 3000, 1.5])


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.2454, 2.0])
def test_a_rollout_is_one_shot(theta):
    env = make("catapult")
    domains = env.domain.grid("planet", [0.0, 1.0])
    outcome = rollout.returns(env, Extend(jnp.float32(theta)), domains, jax.random.split(jax.random.key(0), (2, 1)))
    heights = [1000 * (theta - 0.5) ** 2 / (2 * 3.71), 3000 * (theta - 1.5) ** 2 / (2 * 8.87)]
    np.testing.assert_allclose(outcome.returns[:, 0], np.negative(heights), rtol=1e-5, atol=1e-5)
    assert outcome.survived.all()
    assert (outcome.returns <= env.max_return).all()


def test_rollouts_on_drawn_planets_approach_the_expected_return():
    env = make("catapult")
    domains, keys = env.domain.sample(jax.random.key(0), 20_000), jax.random.split(jax.random.key(1), (20_000, 1))
    returns = rollout.returns(env, Extend(jnp.float32(1.3)), domains, keys).returns
    assert returns.mean() == pytest.approx(
        catapult.expected_return(1.3), abs=4 * float(returns.std()) / np.sqrt(20_000)
    )


def test_the_observation_does_not_tell_the_planet():
    env = make("catapult")
    seen = [env.observe(env.start(jax.random.key(0), xi), xi) for xi in map(CatapultParams, (0.0, 1.0))]
    assert seen[0] == seen[1] == (0,)
