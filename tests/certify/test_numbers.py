"""Numbers stay what they are: bounds, gaps and returns on the catapult for fixed seeds, as they were first measured."""

import jax
import pytest

from spota.certify.algorithm import spota
from spota.certify.settings import Spota
from spota.envs import make
from spota.polopt import exact

SETTINGS = Spota(n_c=5, n_r=2, n_G=6, n_J=2, n_b=100, max_iterations=1, looks=1, performance_domains=200, beta=1e4)
STORED = {
    0: (61.833278758973776, 10.759225209554037, 52.0562231931048, 21.39793586730957, 38.725547790527344),
    1: (30.711429019164285, 7.729892730712891, 20.934373453295308, 15.294740676879883, 14.043670654296875),
}
EARNED = {0: -30.935887241363524, 1: -31.12147388458252}


@pytest.mark.parametrize("seed", STORED)
def test_a_change_of_the_code_changes_no_number(seed):
    c = spota(jax.random.key(seed), make("catapult"), exact.catapult, SETTINGS).certificate
    assert c.split is not None and c.performance is not None
    found = (c.ucbog, c.mean_gap, c.split.ordinary.bound, c.intervals["basic_pooled"], c.intervals["bca_reference"])
    assert found == pytest.approx(STORED[seed], rel=1e-6)
    assert c.performance.mean == pytest.approx(EARNED[seed], rel=1e-6)
