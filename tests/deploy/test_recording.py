"""What a run leaves behind is a recording that the fit reads: names, units, times, and what the machine did."""

import numpy as np
import pytest

from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.log import Ticks
from spota.deploy.mission import Mission
from spota.deploy.phases import CALIBRATION, PLACEMENT, RUN
from spota.deploy.recording import free_rows, write_recording
from spota.deploy.rules import Rules
from spota.deploy.session import Ended
from spota.deploy.sources import deployable
from spota.deploy.supervisor import Cause
from spota.deploy.virtual import VirtualLink
from spota.envs import make
from spota.envs.cart_pole import RAIL_MARGIN
from spota.fit.recording_file import read
from spota.policies.contract import Contract


@pytest.mark.slow
def test_what_no_simulator_knows_is_left_out_of_the_recording(tmp_path):
    """The Cart-Pole's calibration pushes against the ends of its rail: the log has it, the recording has not."""
    env = make("cart-pole")
    made = emulator(env, drawn_domain(env, 0, nominal=True))
    lqr = deployable("lqr", env.name)
    ended = Mission(env, lqr.controller, 200, Rules(), checking=0.1).session(VirtualLink(made)).run()
    end = ended.known["rail_length"] / 2 - RAIL_MARGIN
    rows = free_rows(ended, env)
    assert (ended.ticks["phase"][rows] >= PLACEMENT).all() and (np.diff(rows) == 1).all()
    assert np.abs(ended.ticks.observation[rows, 0]).max() < end
    path = write_recording(tmp_path / "r.npz", ended, env, "a test")
    assert read(path, env).time.size == rows.size
    with np.load(path) as whole:
        assert np.abs(whole["log_observation"][:, 0]).max() > end
        assert (whole["log_phase"] == CALIBRATION).sum() > 1000


def test_the_longest_free_motion_is_kept():
    """Two touches and a pole that spins before it comes to rest, written by hand."""
    env = make("cart-pole")
    x, angle = np.zeros(100), np.linspace(0, 0, 100)
    x[[10, 70]] = 1.0
    angle[:30] = np.linspace(-30, 0, 30)  # beyond 20 rad until row 10
    seen = np.stack([x, (angle + np.pi) % (2 * np.pi) - np.pi, 0 * x, 0 * x], axis=1)
    columns = {"arrived": np.ones(100, bool), "phase": np.full(100, RUN)}
    ticks = Ticks(Contract.of(env), seen, x[:, None], x[:, None], columns)
    known = {name: row.nominal_value for name, row in env.domain.items()}
    ended = Ended(Cause.FINISHED, RUN, "", ticks, known=known)
    assert free_rows(ended, env).tolist() == list(range(11, 70))


def test_a_log_is_read_as_a_recording_of_the_machine(tmp_path):
    env = make("ball-balancer")
    made = emulator(env, drawn_domain(env, 0, nominal=True))
    pd = deployable("pd", env.name)
    ended = Mission(env, pd.controller, 1100, Rules(), checking=0.1).session(VirtualLink(made)).run()
    path = write_recording(tmp_path / "r.npz", ended, env, "a test")
    recording = read(path, env)
    assert recording.seconds == pytest.approx(1110 * env.dt, abs=0.02)
    rows = ended.ticks["phase"] >= PLACEMENT
    assert recording.positions == pytest.approx(ended.ticks.observation[rows][:, :4])
    assert recording.commands == pytest.approx(ended.ticks.sent[rows])
    assert np.diff(recording.time) == pytest.approx(env.dt)
