"""A policy over the line and in the simulator: the same machines, the same start states, the same returns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from spota import policies
from spota.certify.certificate import Performance
from spota.deploy.emulator import drawn_domain
from spota.deploy.episode import episode
from spota.deploy.inference import controller_of
from spota.deploy.sources import deployable
from spota.envs import make
from spota.experiments.transfer_table import OnTheTable, on_the_table
from spota.policies.contract import Contract
from spota.sim import rollout

OURS = {"ball-balancer": (7005, 7011), "cart-pole": (7008,), "qube": (7001, 7002)}
"""Machines of each table, with short and long delays; the first one loses its ball."""


def both(name: str, numbers: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns of LQR without sensor noise, over the line and in the simulator."""
    env = make(name, noise=False)
    policy = policies.lqr(env)
    domains, controller = [drawn_domain(env, n) for n in numbers], controller_of(policy, Contract.of(env))
    line = [episode(env, controller, domain, n) for domain, n in zip(domains, numbers, strict=True)]
    columns = {name: jnp.asarray([domain[name] for domain in domains], jnp.float32) for name in domains[0]}
    keys = jax.vmap(jax.random.key)(jnp.asarray(numbers))[:, None]
    outcome = rollout.returns(env, policy, columns, keys)
    assert outcome.survived[0, 0] == (name != "ball-balancer")
    return np.array(line), outcome.returns[:, 0]


@pytest.mark.parametrize("name", ["ball-balancer", "cart-pole", pytest.param("qube", marks=pytest.mark.slow)])
def test_without_noise_the_line_changes_nothing(name):
    """Delay, dead band, start, failure and reward are the simulator's; what is left is float32 against float64."""
    line, simulated = both(name, OURS[name])
    assert line == pytest.approx(simulated, abs=0.1)


@pytest.mark.slow
def test_with_noise_the_differences_are_centred():
    found = on_the_table(deployable("lqr", "cart-pole"), machines=30)
    mean, error = found.difference
    assert abs(mean) < 4 * error and error < 5
    assert found.interval is None and "no certificate" in str(found)


def performance(mean: float, lower: float) -> Performance:
    worst = {"worst_share": 0.2, "worst_mean": 0.0, "worst_lower": 0.0}
    return Performance(20_000, 0.95, mean, lower, **worst, survived=1.0, low=0.0, high=2500.0)


def paired() -> tuple[np.ndarray, np.ndarray]:
    """Returns on twenty machines that differ much, over a line that takes about two."""
    random = np.random.default_rng(0)
    simulated = random.normal(2380, 70, 20)
    return simulated + random.normal(-2, 3, 20), simulated


def test_what_the_line_changes_is_known_from_pairs():
    """Against scipy's interval of a mean difference."""
    line, simulated = paired()
    wanted = stats.ttest_1samp(line - simulated, 0).confidence_interval(0.95)
    found = OnTheTable(line, simulated, performance(2405.0, 2400.0))
    assert found.interval == pytest.approx((2405 + wanted.low, 2405 + wanted.high))
    assert found.difference[1] < 1 < stats.sem(line) / 10  # what machines differ by does not count


@pytest.mark.parametrize(("lower", "holds"), [(2400.0, True), (2403.0, None), (2405.0, False)])
def test_the_certificate_is_asked_with_an_interval(lower, holds):
    found = OnTheTable(*paired(), performance(2405.0, lower))
    assert found.holds is holds
    assert {True: "which holds", None: "both agree", False: "does NOT hold"}[holds] in str(found)
    assert found.to_dict()["holds"] is holds
