"""The paper's real-world experiment, emulated: its machines, its figure, and the whole command in small."""

import functools
import json

import jax
import numpy as np
import pytest

from spota import policies
from spota.cli import main
from spota.commands import reproduce_transfer
from spota.deploy.trial import Planned, Protocol, Tried
from spota.envs import make
from spota.experiments import transfer
from spota.experiments.transfer_figure import transfer_figure
from spota.experiments.transfer_table import on_the_table

BALL = make("ball-balancer")


def test_the_fitted_machine_is_the_recorded_one_and_outside_the_papers_table():
    fitted = next(machine for machine in transfer.MACHINES if machine.fitted)
    machine = fitted.made(0).device.drive.machine
    assert machine.domain["pole_length"] > make("cart-pole").domain["pole_length"].marginal.support[1]
    assert machine.domain["cart_friction"] > 0 and "cart_friction" not in fitted.known
    assert machine.domain["gear_ratio"] == pytest.approx(3.71)  # what nobody fitted is nominal


def test_machines_of_the_table_are_those_of_their_numbers():
    first = next(machine for machine in transfer.MACHINES if machine.env == "cart-pole")
    domain = first.made(0).device.drive.machine.domain
    assert set(domain) == set(make("cart-pole").domain) and not first.known


def trial(policy: str, returned: float, solved: bool, number: int = 0) -> Tried:
    return Tried(Planned(policy, None, number), returned, 100, solved, "", ())


def test_the_figure_has_every_trial_in_its_policys_column():
    names = ["nominal PPO", "EPOpt", "SPOTA"]
    tried = [trial("nominal PPO", 10.0, False), trial("EPOpt", 80.0, True), trial("SPOTA", 90.0, True)]
    spoiled = trial("SPOTA", float("nan"), False, 1)
    figure = transfer_figure({"cart-pole": {"table 1": [*tried, spoiled], "worn": tried}}, names)
    (axes,) = figure.axes
    assert [label.get_text().replace("\n", ", ") for label in axes.get_xticklabels()] == [
        "nominal PPO, solved 0 of 2", "EPOpt, solved 2 of 2", "SPOTA, solved 2 of 2",
    ]  # fmt: skip
    marks = np.concatenate([np.asarray(points.get_offsets()) for points in axes.collections])
    marks = marks[np.isfinite(marks).all(axis=1)]
    assert sorted((round(x), y) for x, y in marks) == [(1, 10), (1, 10), (2, 80), (2, 80), (3, 90), (3, 90)]
    lines = [np.asarray(line.get_ydata())[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert lines == [80.0]  # the lowest return with which the task was solved


@pytest.mark.slow
def test_the_command_makes_trials_and_a_figure_and_goes_on(tmp_path, monkeypatch, capsys):
    """One machine, one start and fifty steps; the second time everything is there already."""
    weak, good = policies.fnn(jax.random.key(0), BALL, (4,)), policies.lqr(BALL)
    for algo, policy in {"ppo": weak, "epopt": good, "spota": good}.items():
        policies.save(policy, tmp_path / "given" / f"ball-balancer-{algo}" / "policy.npz")
    monkeypatch.setattr(transfer, "MACHINES", transfer.MACHINES[:1])
    monkeypatch.setattr(transfer, "protocol_of", lambda *_: Protocol((None,), 2, 50))
    monkeypatch.setattr(reproduce_transfer, "on_the_table", functools.partial(on_the_table, machines=2))
    arguments = [
        "reproduce",
        "transfer",
        "--policies",
        str(tmp_path / "given"),
        "--out",
        str(tmp_path / "out"),
        "--json",
    ]
    main(arguments)
    told = json.loads(capsys.readouterr().out)
    machine = told["platforms"]["ball-balancer"]["machines"]["table 1"]
    assert [row["policy"] for row in machine["standings"]] == ["nominal PPO", "EPOpt", "SPOTA"]
    assert [row["trials"] for row in machine["standings"]] == [2, 2, 2]
    assert (
        len(told["table"]["ball-balancer"]["line"]) == 2 and "no certificate" in told["table"]["ball-balancer"]["words"]
    )
    assert (tmp_path / "out" / "transfer.png").stat().st_size > 10_000
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("trial-*.npz")}
    assert len(before) == 6
    main(arguments)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("trial-*.npz")} == before
    policies.save(good, tmp_path / "given" / "ball-balancer-ppo" / "policy.npz")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(arguments)
    assert "other settings" in capsys.readouterr().err  # trials of another policy are not taken for these
