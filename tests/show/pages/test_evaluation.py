"""What is computed for a page, and kept beside it."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from run_directories import BOWL, CATAPULT, copied, words_of

from spota import policies
from spota.files.atomic import plain
from spota.show.animation import Recording
from spota.show.pages import evaluation, read, write
from spota.show.pages.failures import Failures
from spota.sim.env import Signal

NONE = Failures(2, 0, 1.0, 0.5, True, ())


def test_figures_are_computed_once_a_policy(refused, tmp_path, monkeypatch):
    run = copied(refused, tmp_path / "run", "evaluation")
    done = []

    def quickly(env, policy, name, full, level, *_):
        del env, policy
        done.append(full)
        return evaluation.Evaluation(name, full, level, (1.0, 2.0), NONE, (), (), (), None)

    monkeypatch.setattr(evaluation, "compute", quickly)
    first = write(run, full=False).read_bytes()
    assert write(run, full=False).read_bytes() == first
    assert done == [False]
    write(run)
    write(run, full=False)  # what is there already is shown
    assert done == [False, True]
    (run / "evaluation.json").write_text("{")
    write(run)
    assert done == [False, True, True]


def test_failures_are_counted_again_for_another_level(refused, tmp_path):
    whole = read(copied(refused, tmp_path / "run", "evaluation"))
    kept = whole.kept
    assert kept is not None and kept.certificate is not None and kept.certificate.split is not None
    for level in (kept.certificate.split.level, -1.0):
        split = dataclasses.replace(kept.certificate.split, level=level)
        again = dataclasses.replace(kept, certificate=dataclasses.replace(kept.certificate, split=split))
        found = evaluation.evaluate_run(dataclasses.replace(whole, iterations=(again,)), full=False)
        assert found.level == found.failures.level == level


def test_what_is_kept_is_what_was_computed(trained):
    (trained / evaluation.FILE).unlink(missing_ok=True)
    found, again = (evaluation.evaluate_run(read(trained), BOWL) for _ in range(2))
    assert (again.returns, again.sweeps, again.explanation) == (found.returns, found.sweeps, found.explanation)
    assert again.failures == found.failures


def test_recordings_survive_json():
    time, track = np.arange(4) / 50, np.sin(np.arange(4.0))
    signal = Signal("V", "V", -5.0, 5.0)
    one = Recording("cart-pole", "nominal", "rail", 0.02, time, {"x": track}, {"rail": 0.8}, (signal,),
                    track[:, None], track, track, 50.0, True)  # fmt: skip
    whole = evaluation.Evaluation("abc", False, None, (1.0,), NONE, (), (one,), (), None)
    again = evaluation.Evaluation.from_dict(json.loads(json.dumps(plain(whole.to_dict())))).failing[0]
    assert (again.outcome, again.signals, again.sizes) == (one.outcome, one.signals, one.sizes)
    np.testing.assert_array_equal(again.commands, one.commands)
    np.testing.assert_array_equal(again.tracks["x"], track)


def test_every_random_parameter_is_swept_and_the_strong_one_comes_first(trained):
    text = words_of(write(trained, BOWL))
    names = [name for name in BOWL.domain if name != "fixed"]
    swept = text.split("What each parameter does")[1].split("Which parameter costs the return")[0]
    assert all(name in swept for name in names)
    assert "fixed" not in swept
    assert min(names, key=swept.index) == "strong"
    assert "Most of the spread comes from strong" in text
    assert "gained if nominal" in text


def test_another_policy_than_the_certified_one_is_not_shown(refused, tmp_path):
    run = copied(refused, tmp_path / "swapped", "evaluation")
    policies.save(policies.fnn(jax.random.key(9), CATAPULT, (2,)), run / "policy.npz")
    assert "is another policy than the one that the certificate speaks of" in words_of(write(run))
    assert not (run / "evaluation.json").exists()


def test_a_platform_of_ones_own_is_asked_for(refused):
    told = read(refused)
    own = dataclasses.replace(told, config={**told.config, "platform": {"effects": "mine"}})
    with pytest.raises(evaluation.NoPolicyError, match=r"spota\.show\.pages\.write\(directory, env\)"):
        evaluation.find_policy(own)
    assert evaluation.find_policy(own, CATAPULT)[0] is CATAPULT
