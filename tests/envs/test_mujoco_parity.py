"""A certificate for the same policy on our Cart-Pole and on its MuJoCo model: the same within what each leaves open."""

from pathlib import Path

import pytest

pytest.importorskip("mujoco")

import spota
from spota.polopt.ppo import PPO

EXAMPLE = f"{Path(__file__).parent.parent.parent / 'examples' / 'mujoco_cart_pole.py'}:env"
SETTINGS = {"n_c": 4, "n_r": 2, "n_G": 10, "n_J": 5, "looks": 1, "performance_domains": 500, "effort_references": 0}
SHORT = PPO(iterations=10, rollouts=4, evaluation_rollouts=2, evaluate_every=5, minibatches=25)


@pytest.mark.slow
def test_the_bound_of_the_regulator_is_the_same_on_both():
    regulator = spota.find("lqr", spota.make("cart-pole"))
    ours, theirs = (
        spota.assess(regulator, env, settings=SETTINGS, candidate=SHORT, reference=SHORT).certificate
        for env in ("cart-pole", EXAMPLE)
    )
    assert ours.mean_gap <= theirs.ucbog and theirs.mean_gap <= ours.ucbog  # ten references leave bounds far apart
    assert ours.performance is not None and theirs.performance is not None
    assert theirs.performance.mean == pytest.approx(ours.performance.mean, rel=0.01)
