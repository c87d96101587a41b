"""Every fault in every phase, on a virtual clock: carry on or stop safely, as docs/deploy.md says."""

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.faults import Faults
from spota.deploy.links import UnreachableError
from spota.deploy.phases import CALIBRATION, CHECKS, IDLE, PHASES, PLACEMENT, RUN, STOP
from spota.deploy.rules import Rules
from spota.deploy.supervisor import Cause
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from witness import (
    BALL,
    CART,
    CONTROLLERS,
    WATCHDOG,
    Witness,
    at_step,
    check_log,
    check_rest,
    lived,
    mission,
    with_phase,
)

DOCS = Path(__file__).parent.parent.parent / "docs" / "deploy.md"

CARRIES_ON = {
    "encoder": Wear(encoder=1.0, noise=False),
    "filter": Wear(filter=60.0, encoder=1.0, noise=False),
    "backlash": Wear(backlash=5e-4),
    "coulomb": Wear(coulomb=0.1),
    "jitter": Faults(jitter=5e-4),
    "duplicates": Faults(duplicates=0.5),
    "some loss": Faults(loss=0.01),
    "some reordering": Faults(reordering=0.01),
    "some corruption": Faults(corruption=0.01),
}
STOPS = {
    "loss": Faults(loss=0.7),
    "long jitter": Faults(jitter=0.05),
    "reordering": Faults(reordering=0.5),
    "corruption": Faults(corruption=0.7),
    "silence": Faults(silence=1.0),
    "hang": Faults(hang=1.0),
}
LATENESS = {Cause.LATE, Cause.OFTEN_LATE, Cause.OLD, Cause.JUMP}


@pytest.mark.parametrize("phase", [CHECKS, CALIBRATION, PLACEMENT, RUN], ids=lambda p: PHASES[p])
@pytest.mark.parametrize("fault", STOPS)
def test_bad_faults_stop_safely_in_every_phase(fault, phase):
    ended, witness = lived(with_phase(phase), STOPS[fault], phase)
    assert ended.cause in LATENESS, ended.words
    assert ended.phase == phase
    assert PHASES[phase] in ended.words and ended.cause.words in ended.words
    check_log(ended.ticks)
    check_rest(ended, witness)


@pytest.mark.parametrize("fault", STOPS)
def test_faults_while_stopping_change_neither_cause_nor_rest(fault):
    ended, witness = lived(BALL, STOPS[fault], STOP, steps=20)
    assert ended.cause is Cause.FINISHED
    check_log(ended.ticks)
    check_rest(ended, witness)


@pytest.mark.parametrize("fault", CARRIES_ON)
def test_what_is_bearable_is_borne(fault):
    ended, witness = lived(BALL, CARRIES_ON[fault], None, rules=Rules())
    assert ended.cause is Cause.FINISHED, ended.words
    assert ended.ticks.answered.size == 60
    check_log(ended.ticks)
    check_rest(ended, witness)


WORN = [fault for fault, what in CARRIES_ON.items() if isinstance(what, Wear)]  # in all phases at once
EVERYWHERE = [
    (fault, p) for fault in CARRIES_ON if fault not in WORN for p in (CHECKS, CALIBRATION, PLACEMENT, RUN, STOP)
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "phase"), [*((fault, None) for fault in WORN), *EVERYWHERE])
def test_what_is_bearable_is_borne_in_every_phase_of_the_cart(fault, phase):
    ended, witness = lived(CART, CARRIES_ON[fault], phase, rules=Rules(), steps=500)
    assert ended.cause is Cause.FINISHED, ended.words
    check_log(ended.ticks)
    check_rest(ended, witness)


@pytest.mark.parametrize("fault", {**STOPS, **CARRIES_ON})
def test_faults_before_the_first_command_are_outlived_or_refused(fault):
    """Idle: a hello is repeated, and whoever hears no answer goes away; nothing has moved."""
    try:
        ended, witness = lived(BALL, {**STOPS, **CARRIES_ON}[fault], IDLE, steps=20)
    except UnreachableError:
        assert fault in STOPS
        return
    assert ended.cause is Cause.FINISHED or (ended.cause in LATENESS and fault in STOPS), ended.words
    check_log(ended.ticks)
    check_rest(ended, witness)


@pytest.mark.parametrize(
    ("faults", "rules", "cause"),
    [
        (Faults(silence=0.1), Rules(), Cause.LATE),
        (Faults(loss=0.5), Rules(in_a_row=1000, jump=1000), Cause.OFTEN_LATE),
        (Faults(jitter=0.02), Rules(in_a_row=1000, of_last_500=400, jump=1000), Cause.OLD),
        (Faults(silence=0.1), Rules(in_a_row=1000, of_last_500=501), Cause.JUMP),
    ],
    ids=lambda value: value.name if isinstance(value, Cause) else "",
)
def test_each_rule_about_time_stops_by_itself(faults, rules, cause):
    ended, witness = lived(BALL, faults, RUN, rules=rules, steps=600)
    assert ended.cause is cause and cause.words in ended.words
    check_log(ended.ticks)
    check_rest(ended, witness)


def test_a_phase_that_cannot_do_its_work_says_why():
    """A device of another rate, a cart that is stuck, and a ball that does not come to its place in time."""
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    made.period = 2_400_000
    slow = mission(BALL, place=None).session(VirtualLink(made)).run()
    assert slow.cause is Cause.CHECKS and "every 2.4 ms, and promised 2 ms" in slow.words
    stuck, witness = lived(CART, Wear(coulomb=20.0, noise=False), None)
    assert stuck.cause is Cause.CALIBRATION and "is the cart stuck?" in stuck.words
    check_rest(stuck, witness)
    late, witness = lived(BALL, Wear(), PLACEMENT, patience=0.2)
    assert late.cause is Cause.PLACEMENT and "did not come within 30 mm" in late.words
    check_rest(late, witness)
    assert [ended.cause.code for ended in (slow, stuck, late)] == [30, 31, 32]


def test_the_docs_have_every_exit_code():
    """The table of docs/deploy.md against the causes."""
    section = DOCS.read_text().split("## What stops it")[1].split("\n\n| on the line")[0]
    rows = [row.split("|") for row in section.splitlines() if row.startswith("| ")]
    codes = [int(code) for row in rows for code in row[-2].split(",") if code.strip().isdigit()]
    assert sorted(codes) == sorted([2, *(cause.code for cause in Cause if cause is not Cause.FINISHED)])


@pytest.mark.parametrize(
    "fault", [Faults(silence=60.0), Faults(hang=60.0), Faults(loss=1.0)], ids=lambda f: str(f.loss)
)
def test_a_device_that_never_answers_is_refused_before_anything_moves(fault):
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True), faults=fault)
    made.advance(10_000_000)
    if fault.loss or fault.hang:
        with pytest.raises(ValueError, match="does not answer"):
            VirtualLink(made)
    else:  # a hello is heard before the silence begins, but no frame follows
        assert mission(BALL).session(VirtualLink(made)).run().cause is Cause.LATE


def test_a_noisy_sensor_alone_is_no_danger():
    """One frame in ten shows the ball beyond the plate's edge, as noise may; five in a row are believed."""
    for share, cause in ((1, Cause.FINISHED), (5, Cause.DANGER)):
        made = emulator(BALL, drawn_domain(BALL, 0, nominal=True), Wear(noise=False))
        machine, seen = made.device.drive.machine, []

        def flicker(observation, into, machine=machine, seen=seen, share=share):
            into[:] = 0.0
            seen.append(observation)
            machine.sensors._offset[2] = 0.16 - machine._ideal[2] if len(seen) % 10 < share else 0.0

        ended = mission(BALL, flicker, place=None).session(VirtualLink(made)).run()
        assert ended.cause is cause, ended.words
        assert (ended.ticks["danger"][ended.ticks.answered] > 1).any()


def test_danger_stops_before_the_ball_falls():
    push = lambda _, into: into.__setitem__(slice(None), 3.0)  # noqa: E731
    ended, witness = lived(BALL, Wear(noise=False), None, controller=push, place=None, steps=2000)
    assert ended.cause is Cause.DANGER and 0.95 < ended.ticks["danger"][ended.ticks.answered[-1]] < 1.1
    check_rest(ended, witness)


def test_a_host_that_is_held_up_skips_frames_and_stops_if_it_was_too_long():
    for seconds, cause in ((0.006, Cause.FINISHED), (0.3, Cause.JUMP)):
        made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
        witness, link = Witness(made), VirtualLink(made)
        stall = at_step(30, lambda _, link=link, seconds=seconds: link.sleep(seconds))
        ended = mission(BALL, stall, place=None).session(link).run()
        made.advance(link.now() + 2 * WATCHDOG)
        assert ended.cause is cause, ended.words
        assert ended.ticks["missed"].sum() > 0  # and none of them was made up for
        check_log(ended.ticks)
        check_rest(ended, witness)


def test_the_command_grows_from_zero_and_stays_within_our_own_limit():
    rules = Rules(ramp=0.1, limit=0.2)
    push = lambda _, into: into.__setitem__(slice(None), [5.0, -5.0])  # noqa: E731
    ended, _ = lived(BALL, Wear(noise=False), None, controller=push, place=None, rules=rules)
    sent = ended.ticks.sent[ended.ticks.answered]
    assert sent[0].tolist() == [0.0, 0.0]
    assert sent[25].tolist() == pytest.approx([0.5, -0.5], rel=1e-6)  # half of the ramp, 20 % of 5 V
    assert sent[55].tolist() == [1.0, -1.0]


@pytest.mark.slow
def test_the_loop_keeps_no_memory_and_collects_no_garbage():
    """Between two moments of a run, a thousand ticks apart, almost nothing is left behind."""
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    own, kept, collecting = CONTROLLERS[BALL.name], [], []

    def act(observation: np.ndarray, into: np.ndarray) -> None:
        own(observation, into)
        if tracemalloc.is_tracing():
            kept.append(tracemalloc.get_traced_memory()[0])
            collecting.append(gc.isenabled())

    session = mission(BALL, act, steps=1300).session(VirtualLink(made))
    tracemalloc.start()
    ended = session.run()
    tracemalloc.stop()
    assert ended.cause is Cause.FINISHED
    assert kept[-1] - kept[-1001] < 60_000  # a thousand numbers in these two lists, and nothing else
    assert not any(collecting) and gc.isenabled()


def test_a_second_controller_is_refused_and_the_first_goes_on():
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    first = VirtualLink(made, "first")
    with pytest.raises(ValueError, match="has a controller already"):
        VirtualLink(made, "second")
    assert first.receive(0.01)
