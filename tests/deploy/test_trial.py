"""The paper's protocol: what is planned, what a spoiled trial costs, and that an interruption loses nothing."""

import json

import numpy as np
import pytest

from spota.cli import main
from spota.deploy import trial
from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.faults import Faults
from spota.deploy.links import UnreachableError
from spota.deploy.mission import Mission
from spota.deploy.phases import PLACEMENT
from spota.deploy.rules import Rules
from spota.deploy.sources import deployable
from spota.deploy.supervisor import Cause
from spota.deploy.trial import Planned, Protocol, Rig, Tried, planned
from spota.deploy.trials import make_trials, standings, threshold
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from spota.envs import make
from spota.runs.directory import Run

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


@pytest.mark.slow
def test_a_trial_that_the_device_spoils_is_made_again_and_told():
    """Each silence spoils one attempt; the fourth machine is fair."""
    pd = deployable("pd", "ball-balancer")
    domain, kept = drawn_domain(BALL, 0, nominal=True), []
    broken = [emulator(BALL, domain, faults=Faults(silence=1.0, during="run")) for _ in range(2)]
    links = iter([VirtualLink(made) for made in (*broken, emulator(BALL, domain))])
    rig = Rig(BALL, lambda: next(links), Rules(ramp=0.0))
    tried = rig.tried(Planned("pd", None, 0), pd, Protocol((None,), 1, 50), kept.append)
    assert len(tried.spoiled) == 2 and all("late frames" in words for words in tried.spoiled)
    assert tried.counts and tried.steps == 50 and len(kept) == 3
    again = Tried.from_arrays(tried.to_arrays())
    assert again == tried


def test_a_machine_that_spoils_every_attempt_costs_one_trial():
    lost = emulator(BALL, drawn_domain(BALL, 0, nominal=True), faults=Faults(loss=0.9, during="run"))
    rig = Rig(BALL, lambda: VirtualLink(lost), Rules())
    tried = rig.tried(Planned("pd", None, 0), deployable("pd", "ball-balancer"), SHORT, lambda _: None)
    assert not tried.counts and len(tried.spoiled) == 3
    assert standings([tried])[0].trials == 0 and np.isnan(threshold([tried]))


def test_a_device_that_is_gone_ends_the_protocol_and_spoils_nothing(tmp_path, monkeypatch):
    """The cable is pulled after the first trial: the second is not written down, and made when the device is back."""
    monkeypatch.setattr(trial, "AGAIN", 0.0)
    made, there = emulator(BALL, drawn_domain(BALL, 0, nominal=True)), [True]

    def connect() -> VirtualLink:
        if not there[0]:
            raise UnreachableError("udp://127.0.0.1:9 does not answer")
        return VirtualLink(made)

    rig, policies = Rig(BALL, connect, Rules()), {"pd": deployable("pd", "ball-balancer")}
    protocol = Protocol((None,), 2, 20)
    with pytest.raises(ValueError, match="does not answer"), Run(tmp_path / "t", {}) as run:
        make_trials(run, rig, policies, protocol, seed=0, tell=lambda *_: there.__setitem__(0, False))
    assert len(list((tmp_path / "t" / "trials").glob("trial-*.npz"))) == 1
    there[0] = True
    with Run(tmp_path / "t", {}) as run:
        found = make_trials(run, rig, policies, protocol, seed=0)
    assert [t.counts for t in found] == [True, True] and not any(t.spoiled for t in found)


@pytest.mark.slow
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


def test_an_interrupted_protocol_goes_on_trial_by_trial(tmp_path):
    """Ctrl-C in the third trial; the second process makes what is missing, and reads the rest."""
    protocol, config = Protocol((None,), 2, 20), {"env": BALL.name}
    policies = {name: deployable(name, "ball-balancer") for name in ("pd", "lqr")}
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    rig, told = Rig(BALL, lambda: VirtualLink(made), Rules()), []

    def interrupt(number: int, of: int, tried: Tried) -> None:
        told.append((number, of, tried))
        if number == 1 and len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Run(tmp_path / "t", config) as run:
        make_trials(run, rig, policies, protocol, seed=0, tell=interrupt)
    assert len(list((tmp_path / "t" / "trials").glob("trial-*.npz"))) == 2
    with Run(tmp_path / "t", config) as run:
        found = make_trials(run, rig, policies, protocol, seed=0, tell=interrupt)
    assert found[:2] == [tried for _, _, tried in told[:2]]
    assert [t.planned for t in found] == planned(protocol, ["pd", "lqr"], 0)
    assert len(list((tmp_path / "t" / "trials").glob("recording-*.npz"))) == 4
    assert {s.policy: s.trials for s in standings(found)} == {"pd": 2, "lqr": 2}


def test_the_command_makes_the_trials_of_its_protocol(tmp_path, capsys):
    arguments = ["trial", "energy", "--env", "qube-swing-up", "--device", "emulator://qube-swing-up?nominal=1"]
    main([*arguments, "--repetitions", "2", "--steps", "20", "--json", "--out", str(tmp_path / "t")])
    told = json.loads(capsys.readouterr().out)
    assert [t["steps"] for t in told["trials"]] == [20, 20]
    assert told["standings"][0]["trials"] == 2
