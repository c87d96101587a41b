"""The study of machines that are known: what it counts, and that a stop loses nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oscillator import ENV, recording

from spota.experiments import recorded_machines
from spota.experiments.recorded_machines import Ranked, asked, calibration, pairs, ranked
from spota.fit.fitting import Settings
from spota.runs.directory import Run

KEY = jax.random.key(3)


@pytest.fixture(autouse=True)
def as_fast_as_the_spring(monkeypatch):
    monkeypatch.setattr(recorded_machines, "RATE", 1 / ENV.dt)


def machine(i: int, ranks: list[float], spread: tuple[float, float] = (0.1, 0.9), divergences: int = 0) -> Ranked:
    return Ranked(i, ("a", "b"), np.array(ranks), np.array(spread), 1.004, divergences, 500.0, 0.5, 1.0)


def test_uniform_ranks_are_calibrated_and_others_are_not():
    even = (np.arange(100) + 0.5) / 100
    found = calibration([machine(i, [rank, 0.5]) for i, rank in enumerate(even)])
    assert found["machines"] == 100 and found["well_sampled"] == 100
    assert list(found["identifiable"]) == ["a"]
    assert found["identifiable"]["a"]["coverage_90"] == pytest.approx(0.9)
    assert found["identifiable"]["a"]["uniform_p"] > 0.9
    sure = calibration([machine(i, [0.01 if i % 2 else 0.99, 0.5], divergences=i % 2) for i in range(100)])
    assert sure["identifiable"]["a"]["coverage_90"] == 0 and sure["identifiable"]["a"]["uniform_p"] < 1e-6
    assert sure["well_sampled"] == 50
    low = calibration([machine(i, [0.5, rank]) for i, rank in enumerate(0.8 + even / 5)])["together"]["b"]
    assert (low["below"], low["above"]) == (0.0, pytest.approx(0.25))


def test_machines_of_the_study_are_no_larger_than_the_table_by_chance():
    """Of what recordings leave open, the truth stands where the table has it: too many large ones would be a tilt."""
    machines = pairs(KEY, ENV.domain, 7)
    drawn = ENV.domain.sample(KEY, 4)
    for name, row in ENV.domain.items():
        x, middle = np.asarray(machines[name], float), sum(row.marginal.support) / 2
        assert x.size == 7 and np.array_equal(x[::2], np.asarray(drawn[name], float))
        np.testing.assert_allclose(x[:6].reshape(3, 2).mean(axis=1), middle, rtol=1e-6)
        assert row.marginal.support[0] <= x.min() and x.max() <= row.marginal.support[1]


def test_a_stop_loses_no_machine(tmp_path, monkeypatch):
    """Machines that were asked are read, and the rest gets the answers that it would have got."""
    hanging, calls = (0.0, 0.0), []
    monkeypatch.setattr(recorded_machines, "_answer", lambda key, *_: calls.append(1) or _by(key))
    with Run(tmp_path / "whole", {"n": 3}) as run:
        whole = list(asked(KEY, ENV, hanging, "stiffness", 3, run))
    assert len(calls) == 9 and {one.kind for one in whole} == {
        "of the table", "stiffness +3 std", "stiffness −3 std",
    }  # fmt: skip
    with Run(tmp_path / "stopped", {"n": 3}) as run:
        some = asked(KEY, ENV, hanging, "stiffness", 3, run)
        first = [next(some) for _ in range(4)]
    with Run(tmp_path / "stopped", {"n": 3}) as run:
        rest = list(asked(KEY, ENV, hanging, "stiffness", 3, run))
    assert len(calls) == 9 + 4 + 5 and rest == whole and first == whole[:4]


def _by(key: jax.Array) -> dict:
    return {"answer": np.array("covered"), "p_value": float(jax.random.uniform(key)), "seconds": 0.0}


def test_recorded_machines_do_what_ours_do(monkeypatch):
    """Against the reckoning in plain NumPy, for a chirp of its own."""
    machine = {"mass": 1.0, "stiffness": 40.0, "damping": 0.6, "colour": 0.5, "action_delay": 1.0}
    domains = {name: jnp.array([x]) for name, x in machine.items()}
    ours = recording("a")
    monkeypatch.setattr(recorded_machines, "chirp", lambda _: ours.commands)
    (found,) = recorded_machines.recorded(KEY, ENV, domains, (0.0, 0.0))
    assert np.abs(found.positions[:-1, 0] - ours.positions[1 : len(found.time), 0]).max() < 5 * 2e-3 * np.sqrt(2)
    np.testing.assert_allclose(found.commands[:-1, 0], ours.commands[1 : len(found.time), 0])


@pytest.mark.slow
def test_ranks_are_between_zero_and_one_and_of_every_parameter(tmp_path):
    with Run(tmp_path / "a", {}) as run:
        found = list(ranked(KEY, ENV, (0.0, 0.0), 2, run, Settings(warm_up=60, draws=40)))
    assert [one.machine for one in found] == [0, 1] and found[0].names == tuple(ENV.domain)
    for one in found:
        assert ((one.ranks >= 0) & (one.ranks <= 1)).all() and one.spread[0] < 0.5 < one.spread[3]
