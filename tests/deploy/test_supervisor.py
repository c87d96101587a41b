"""The supervisor: every event in every phase, and the counts of late frames against a list that is counted by hand."""

import itertools
import random

import pytest

from spota.deploy.phases import CALIBRATION, CHECKS, IDLE, PLACEMENT, RUN, STOP
from spota.deploy.rules import Rules
from spota.deploy.supervisor import Cause, Event, Situation, after

RULES = Rules()
ACTIVE = (CHECKS, CALIBRATION, PLACEMENT, RUN)
STOPPING = {
    Event.OLD: Cause.OLD,
    Event.JUMP: Cause.JUMP,
    Event.RANGE: Cause.RANGE,
    Event.NOT_FINITE: Cause.NOT_FINITE,
    Event.DANGER: Cause.DANGER,
    Event.LOST: Cause.LOST,
    Event.ERROR: Cause.ERROR,
    Event.INTERRUPTED: Cause.INTERRUPTED,
    Event.TERMINATED: Cause.TERMINATED,
}


@pytest.mark.parametrize(("phase", "event"), list(itertools.product(ACTIVE, Event)))
def test_every_event_in_every_phase(phase, event):
    """As the table of docs/deploy.md says."""
    now = after(Situation(phase), event, RULES)
    if event in STOPPING:
        assert (now.phase, now.cause) == (STOP, STOPPING[event])
    elif event is Event.FAILED:
        assert now.phase == STOP and now.cause is not None and now.cause.code
    elif event is Event.DONE:
        assert (now.phase, now.cause) == ((STOP, Cause.FINISHED) if phase == RUN else (phase + 1, None))
    else:
        assert (now.phase, now.cause) == (phase, None)
        assert now.in_a_row == (event is Event.LATE)


@pytest.mark.parametrize("event", list(Event))
def test_a_stop_goes_on_until_the_safe_command_was_sent_often_enough_and_keeps_its_cause(event):
    now, sent = Situation(STOP, cause=Cause.DANGER), 0
    while now.phase == STOP:
        now, sent = after(now, event, RULES), sent + 1
    assert now.cause is Cause.DANGER and now.phase == IDLE
    assert sent == (1 if event is Event.LOST else RULES.repeats)
    assert after(now, event, RULES) == now


def test_late_frames_are_counted_as_a_list_would():
    """Random ticks, skipped frames among them, against two lines of Python."""
    source, rules = random.Random(0), Rules(in_a_row=4, of_last_500=40)
    for _ in range(60):
        share = source.random() ** 2 * 0.4
        now, past = Situation(RUN), []
        for _ in range(900):
            late, missed = source.random() < share, source.choice([0] * 20 + [1, 2, 5])
            now = after(now, Event.LATE if late else Event.FRAME, rules, missed)
            past += [1] * (missed + late)
            row = next((i for i, x in enumerate(reversed(past)) if not x), len(past))
            past += [] if late else [0]
            often = sum(past[-500:]) >= 40
            assert (now.phase == STOP) == (row >= 4 or often)
            if now.phase == STOP:
                assert now.cause is (Cause.LATE if row >= 4 else Cause.OFTEN_LATE)
                break


def test_causes_have_codes_of_their_own():
    codes = [cause.code for cause in Cause]
    assert len(set(codes)) == len(codes) and Cause.FINISHED.code == 0
    assert 2 not in codes  # which means that something was refused before it began


@pytest.mark.parametrize("wrong", [{"in_a_row": 0}, {"oldest": 0.0}, {"limit": 1.5}, {"ramp": -1.0}, {"hold": -1}])
def test_rules_that_rule_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Rules(**wrong)
