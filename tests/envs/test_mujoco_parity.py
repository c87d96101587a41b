"""A certificate of the same policy on our Cart-Pole, as a MuJoCo model and in Gymnasium: within their intervals."""

from itertools import permutations
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")

import quanser_gym
import spota
from spota.polopt.ppo import PPO

EXAMPLE = f"{Path(__file__).parent.parent.parent / 'examples' / 'mujoco_cart_pole.py'}:env"
SETTINGS = {"n_c": 4, "n_r": 2, "n_G": 10, "n_J": 5, "looks": 1, "performance_domains": 500, "effort_references": 0}
SHORT = PPO(iterations=10, rollouts=4, evaluation_rollouts=2, evaluate_every=5, minibatches=25)


@pytest.mark.slow
def test_the_certificates_of_the_regulator_agree_within_their_intervals():
    """Ten references of two domains leave bounds far apart; but no gap is one that another certificate excludes."""
    regulator = spota.find("lqr", spota.make("cart-pole"))
    found = [
        spota.assess(regulator, env, settings=SETTINGS, candidate=SHORT, reference=SHORT).certificate
        for env in ("cart-pole", EXAMPLE, quanser_gym.many())
    ]
    for one, other in permutations(found, 2):
        assert one.performance is not None and other.performance is not None
        assert one.mean_gap <= other.ucbog, (one, other)
        assert one.performance.mean == pytest.approx(other.performance.mean, rel=0.01)
