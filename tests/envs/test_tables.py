"""The tables of all platforms: the laws are the paper's, and every parameter matters."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from spota.envs import PLATFORMS, ball_balancer, cart_pole, catapult, make, qube
from spota.policies.lqr import lqr
from spota.policies.pd import pd
from spota.sim import rollout
from spota.sim.env import Env, Reactive

DRAWS = 100_000


def normal(mean, std):
    return stats.truncnorm(-3, 3, mean, std)


def uniform(low, high):
    return stats.uniform(low, high - low)


def integers(low, high):
    return stats.randint(low, high + 1)


# Written from tab_dom_param_QBB, tab_dom_param_QCP, tab_params_ill_exmpl and the Qube's nominal values.
LAWS = {
    "ball-balancer": (
        ball_balancer.NU,
        {
            "gravity": normal(9.81, 1.962),
            "ball_mass": normal(5e-3, 6e-4),
            "ball_radius": normal(1.96e-2, 3.93e-3),
            "plate_length": normal(0.275, 5.5e-2),
            "arm_radius": normal(2.54e-2, 3.08e-3),
            "gear_ratio": normal(70, 14),
            "gear_efficiency": uniform(0.6, 1.0),
            "motor_efficiency": uniform(0.49, 0.89),
            "load_inertia": normal(5.28e-5, 1.06e-5),
            "motor_inertia": normal(4.61e-7, 9.22e-8),
            "torque_constant": normal(7.7e-3, 1.52e-3),
            "motor_resistance": normal(2.6, 0.52),
            "motor_damping": uniform(3.75e-3, 0.15),
            "ball_friction": uniform(1.25e-3, 5.0e-2),
            "threshold_x_pos": uniform(8.84e-2, 0.353),
            "threshold_x_neg": uniform(-8.90e-2, -2.22e-3),
            "threshold_y_pos": uniform(7.25e-2, 0.290),
            "threshold_y_neg": uniform(-7.30e-2, -1.83e-2),
            "offset_x": uniform(-5, 5),
            "offset_y": uniform(-5, 5),
            "action_delay": integers(0, 30),
        },
    ),
    "cart-pole": (
        cart_pole.NU,
        {
            "gravity": normal(9.81, 1.962),
            "cart_mass": normal(0.38, 0.076),
            "pole_mass": normal(0.127, 2.54e-2),
            "pole_length": normal(0.089, 1.78e-2),
            "rail_length": normal(0.814, 0.163),
            "pinion_radius": normal(6.35e-3, 1.27e-3),
            "gear_ratio": 3.71,
            "gear_efficiency": uniform(0.8, 1.0),
            "motor_efficiency": uniform(0.8, 1.0),
            "motor_inertia": 3.9e-7,
            "torque_constant": normal(7.67e-3, 1.52e-3),
            "motor_resistance": normal(2.6, 0.52),
            "cart_damping": uniform(0, 5.4),
            "pole_damping": uniform(0, 2.4e-3),
            "action_delay": integers(0, 10),
        },
    ),
    "qube": (
        qube.NU,
        {
            "gravity": normal(9.81, 9.81 / 5),
            "motor_resistance": normal(8.4, 8.4 / 5),
            "torque_constant": normal(0.042, 0.042 / 5),
            "arm_mass": normal(0.095, 0.095 / 5),
            "arm_length": normal(0.085, 0.085 / 5),
            "pole_mass": normal(0.024, 0.024 / 5),
            "pole_length": normal(0.129, 0.129 / 5),
            "arm_damping": normal(5e-6, 1e-6),
            "pole_damping": normal(1e-6, 2e-7),
            "action_delay": integers(0, 10),
        },
    ),
    "catapult": (catapult.NU, {"planet": stats.bernoulli(0.7)}),
}
ROWS = [(table, name) for table, (_, laws) in LAWS.items() for name in laws]


@cache
def draws(table: str) -> dict[str, np.ndarray]:
    return {n: np.asarray(v, np.float64) for n, v in LAWS[table][0].sample(jax.random.key(7), DRAWS).items()}


@pytest.mark.parametrize("table", LAWS)
def test_a_table_has_all_its_rows_and_no_others(table):
    nu, laws = LAWS[table]
    assert set(nu) == set(laws)
    assert all(row.unit and row.meaning and row.symbol for row in nu.values())


@pytest.mark.parametrize(("table", "name"), ROWS)
def test_draws_have_the_moments_and_bounds_of_the_table(table, name):
    law, values = LAWS[table][1][name], draws(table)[name]
    if isinstance(law, float):
        assert values == pytest.approx(law)
        return
    mean, std, (low, high) = law.mean(), law.std(), law.support()
    rounding = 1e-6 * max(abs(low), abs(high))
    assert values.mean() == pytest.approx(mean, abs=5 * std / np.sqrt(DRAWS))
    assert values.std() == pytest.approx(std, rel=0.012)
    assert low - rounding <= values.min() <= low + 0.3 * std
    assert high - 0.3 * std <= values.max() <= high + rounding


@pytest.mark.parametrize(("table", "name"), [r for r in ROWS if not isinstance(LAWS[r[0]][1][r[1]], float)])
def test_draws_follow_the_whole_law(table, name):
    law, values = LAWS[table][1][name], draws(table)[name]
    points = law.ppf([0.05, 0.3, 0.5, 0.8, 0.95])
    np.testing.assert_allclose([(values <= p + 1e-6 * abs(p)).mean() for p in points], law.cdf(points), atol=0.008)


@pytest.mark.parametrize("table", LAWS)
def test_parameters_are_drawn_independently(table):
    moving = [values for values in draws(table).values() if values.std() > 0]
    correlation = np.atleast_2d(np.corrcoef(moving))
    assert np.abs(correlation - np.eye(len(moving))).max() < 5 / np.sqrt(DRAWS)


class Toward(eqx.Module):
    """A regulator that is sent to another place than the origin."""

    policy: Reactive
    target: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, observation):
        return self.policy(observation - jnp.asarray(self.target).reshape(-1, *(1,) * (observation.ndim - 1)))


class Push(eqx.Module):
    """Always the same action."""

    def __call__(self, observation):
        return jnp.full((1, *observation.shape[1:]), 0.7)


def driven(env: Env) -> Reactive:
    """A policy under which everything matters: noise crosses the dead bands, and carts come to the end of the rail."""
    if env.name == "ball-balancer":
        return pd(env)
    return Toward(lqr(env), (0.8, 0.0, 0.0, 0.0)) if env.name in ("cart-pole", "qube") else Push()


def variants(env: Env) -> dict[str, jax.Array]:
    """A base domain twice, then one domain per parameter in which that one differs by 20 %."""
    base = {name: row.nominal_value for name, row in env.domain.items()}
    nonzero = {"offset_x": 2.0, "offset_y": 2.0, "action_delay": 5.0}
    base |= {name: value for name, value in nonzero.items() if name in base}
    changed = {"planet": 0.0, **{name: 1.2 * value for name, value in base.items() if name != "planet"}}
    rows = [base, base, *({**base, name: changed[name]} for name in base)]
    return {name: jnp.asarray([row[name] for row in rows], jnp.float32) for name in base}


@cache
def trajectories(platform: str) -> list[np.ndarray]:
    """States, rewards and survival of all variants from the same random numbers, each [T, n]."""
    env = rollout.pure(make(platform))
    domains = variants(env)
    n = len(domains) + 2
    steps = rollout.watch(env, driven(env), domains, jax.random.split(jax.random.key(0), 1)[jnp.zeros(n, int)])
    return [np.asarray(leaf) for leaf in jax.tree.leaves((steps.state, steps.reward, steps.alive))]


def differ(platform: str, i: int) -> bool:
    return any((leaf[:, 0] != leaf[:, i]).any() for leaf in trajectories(platform))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_same_domain_has_the_same_trajectory(platform):
    assert not differ(platform, 1)


@pytest.mark.parametrize(("platform", "name"), [(p, name) for p in PLATFORMS for name in make(p).domain])
def test_no_parameter_is_dead(platform, name):
    assert differ(platform, 2 + list(make(platform).domain).index(name))


@pytest.mark.parametrize("platform", ["cart-pole", "cart-pole-swing-up"])
def test_a_longer_rail_lets_the_cart_go_further(platform):
    position = np.abs(trajectories(platform)[0]).max(0)
    longer = position[2 + list(make(platform).domain).index("rail_length")]
    assert position[0] == pytest.approx(0.814 / 2 - 0.05, abs=0.005)
    assert longer == pytest.approx(1.2 * 0.814 / 2 - 0.05, abs=0.005)
