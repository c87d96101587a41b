"""Every kind of run directory, each made once."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from run_directories import BOWL, CART_POLE, NASTY, assessed_run, spota_run, trained_run

from spota import policies
from spota.analysis import worst
from spota.analysis.standings import Difference, Standings
from spota.show.pages import evaluation
from spota.sim.rollout import Outcome


@pytest.fixture(scope="module", autouse=True)
def _few_rollouts():
    with pytest.MonkeyPatch.context() as patch:
        for name, few in {"DRAWN": 20, "POINTS": 3, "ROLLOUTS": 2, "EXPLAINED": 50}.items():
            patch.setattr(evaluation, name, few)
        patch.setattr(worst, "MEASURED", 5)
        yield


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def certified(place) -> Path:
    return spota_run(place / "certified", beta=1000.0)


@pytest.fixture(scope="session")
def refused(place) -> Path:
    return spota_run(place / "refused", beta=1e-3)


@pytest.fixture(scope="session")
def assessed(place) -> Path:
    return assessed_run(place / "assessed")


@pytest.fixture(scope="session")
def moving(place) -> Path:
    """A training on a platform that has a picture."""
    still = policies.Linear(jnp.zeros((1, 4)), policies.Contract.of(CART_POLE))
    return trained_run(place / "moving", CART_POLE, still)


@pytest.fixture(scope="session")
def trained(place) -> Path:
    """A training on a platform with several parameters, whose rollouts cost nothing."""
    return trained_run(place / "trained", BOWL, policies.fnn(jax.random.key(0), BOWL, (2,)))


def outcome(*returns: float) -> Outcome:
    return Outcome(np.array(returns)[:, None], np.array(returns)[:, None] > 0)


@pytest.fixture(scope="session")
def compared() -> Standings:
    outcomes = {"mine": outcome(1.0, 2.0, 4.0), NASTY: outcome(0.0, 1.0, 2.0)}
    return Standings("bowl", 5.0, True, outcomes, (Difference("mine", NASTY, 4 / 3, 0.5, 2.0, 0.95),))
