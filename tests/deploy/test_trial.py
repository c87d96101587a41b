"""The paper's protocol: what is planned, what a spoiled trial costs, and that an interruption loses nothing."""

import json
import shutil

import numpy as np
import pytest

from spota.cli import main
from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.faults import Faults
from spota.deploy.mission import Mission
from spota.deploy.phases import PLACEMENT, RUN
from spota.deploy.rules import Rules
from spota.deploy.sources import deployable
from spota.deploy.supervisor import Cause
from spota.deploy.trial import Planned, Protocol, Rig, Tried, planned
from spota.deploy.trials import standings, threshold
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from spota.envs import make

BALL, CART = make("ball-balancer"), make("cart-pole")
SHORT = Protocol((0.0,), 1, 50)


def test_the_protocol_is_the_papers():
    ball, cart = Protocol.of(BALL), Protocol.of(CART)
    assert (len(ball.starts), ball.repetitions, ball.steps) == (8, 5, 2000)
    assert (cart.starts, cart.repetitions, cart.steps) == ((None,), 10, 4000)
    order = planned(ball, ["a", "b"], 0)
    assert len(order) == len(set(order)) == 80
    assert order != planned(ball, ["a", "b"], 1)
    firsts = [plan.policy for plan in order[:20]]
    assert 3 < firsts.count("a") < 17  # interleaved


def test_a_trial_that_the_device_spoils_is_made_again_and_told():
    """Each silence spoils one attempt; the fourth machine is fair."""
    pd = deployable("pd", "ball-balancer")
    domain, kept = drawn_domain(BALL, 0, nominal=True), []
    broken = [emulator(BALL, domain, faults=Faults(silence=1.0, during=RUN)) for _ in range(2)]
    links = iter([VirtualLink(made) for made in (*broken, emulator(BALL, domain))])
    rig = Rig(BALL, lambda: next(links), Rules(ramp=0.0))
    tried = rig.tried(Planned("pd", None, 0), pd, Protocol((None,), 1, 50), kept.append)
    assert len(tried.spoiled) == 2 and all("late frames" in words for words in tried.spoiled)
    assert tried.counts and tried.steps == 50 and len(kept) == 3
    again = Tried.from_arrays(tried.to_arrays())
    assert again == tried


def test_a_machine_that_spoils_every_attempt_costs_one_trial():
    lost = emulator(BALL, drawn_domain(BALL, 0, nominal=True), faults=Faults(loss=0.9, during=RUN))
    rig = Rig(BALL, lambda: VirtualLink(lost), Rules())
    tried = rig.tried(Planned("pd", None, 0), deployable("pd", "ball-balancer"), SHORT, lambda _: None)
    assert not tried.counts and len(tried.spoiled) == 3
    assert standings([tried])[0].trials == 0 and np.isnan(threshold([tried]))


def test_the_ball_is_placed_where_the_protocol_says():
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True), Wear(noise=False))
    pd = deployable("pd", "ball-balancer")
    ended = Mission(BALL, pd.controller, 5, Rules(), place=90.0, accuracy=0.01).session(VirtualLink(made)).run()
    assert ended.cause is Cause.FINISHED
    rows = np.flatnonzero(ended.ticks["phase"] == PLACEMENT)[-50:]
    x, y = ended.ticks.observation[rows, 2:4].mean(axis=0)
    assert np.hypot(x, y - 0.775 * 0.275 / 2) < 0.012


def test_the_rail_is_measured_and_the_pole_swung_up():
    domain = drawn_domain(CART, 2)
    made = emulator(CART, domain)
    lqr = deployable("lqr", "cart-pole")
    ended = Mission(CART, lqr.controller, 100, Rules()).session(VirtualLink(made)).run()
    assert ended.cause is Cause.FINISHED, ended.words
    assert ended.known["rail_length"] == pytest.approx(domain["rail_length"], abs=5e-3)
    assert abs(ended.ticks.observation[ended.ticks.answered[0], 1]) < np.deg2rad(8)
    delays = ended.ticks.delays()
    assert set(delays.tolist()) == {round(domain["action_delay"])}


def test_an_interrupted_protocol_goes_on_trial_by_trial(tmp_path, capsys):
    arguments = ["trial", "pd", "lqr", "--env", "ball-balancer", "--device", "emulator://ball-balancer?nominal=1"]
    arguments += ["--repetitions", "1", "--steps", "20", "--json", "--out", str(tmp_path / "t")]
    main(arguments)
    whole = json.loads(capsys.readouterr().out)
    assert len(whole["trials"]) == 16
    first = sorted((tmp_path / "t" / "trials").glob("trial-*.npz"))
    kept = {path.name: path.stat().st_mtime_ns for path in first[:15]}
    first[15].unlink()
    main(arguments)
    again = json.loads(capsys.readouterr().out)
    assert [t["returned"] for t in again["trials"][:15]] == [t["returned"] for t in whole["trials"][:15]]
    assert {p.name: p.stat().st_mtime_ns for p in first[:15]} == kept
    assert len(list((tmp_path / "t" / "trials").glob("recording-*.npz"))) >= 16
    shutil.rmtree(tmp_path / "t")
