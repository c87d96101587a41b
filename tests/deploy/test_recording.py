"""What a run leaves behind is a recording that the fit reads: names, units, times, and what the machine did."""

import numpy as np
import pytest

from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.mission import Mission
from spota.deploy.recording import write_recording
from spota.deploy.rules import Rules
from spota.deploy.sources import deployable
from spota.deploy.virtual import VirtualLink
from spota.envs import make
from spota.fit.recording_file import read


def test_a_log_is_read_as_a_recording_of_the_machine(tmp_path):
    env = make("ball-balancer")
    made = emulator(env, drawn_domain(env, 0, nominal=True))
    pd = deployable("pd", env.name)
    ended = Mission(env, pd.controller, 1100, Rules(), checking=0.1).session(VirtualLink(made)).run()
    path = write_recording(tmp_path / "r.npz", ended.ticks, env.name, "a test")
    recording = read(path, env)
    assert recording.seconds == pytest.approx(1110 * env.dt, abs=0.02)
    rows = ended.ticks["phase"] >= 2
    assert recording.positions == pytest.approx(ended.ticks.observation[rows][:, :4])
    assert recording.commands == pytest.approx(ended.ticks.sent[rows])
    assert np.diff(recording.time) == pytest.approx(env.dt)
