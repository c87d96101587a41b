"""The devices of the docs, asked by our host: hello, frames, commands, watchdog, a second controller."""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spota.deploy import frames
from spota.deploy.addresses import Address
from spota.deploy.links import UdpLink

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PATIENCE = 20.0


@pytest.fixture(params=["c", "python"])
def device(request, tmp_path):
    command = [sys.executable, str(EXAMPLES / "device.py")]
    if request.param == "c":
        if shutil.which("cc") is None:
            pytest.skip("no C compiler")
        command = [str(tmp_path / "device")]
        source = str(EXAMPLES / "device.c")
        subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", *command, source, "-lm"], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, str(port)])
    yield Address("udp", "127.0.0.1", port)
    process.kill()
    process.wait()


def test_the_device_of_the_docs_speaks_our_frames(device):
    link = UdpLink(device)
    assert link.introduction.platform == "cart-pole-swing-up" and link.introduction.watchdog == 0.006
    with pytest.raises(ValueError, match="has a controller already"):
        UdpLink(device)
    deadline = time.monotonic() + PATIENCE
    while link.inbox.values[0] < 0.01 and time.monotonic() < deadline:
        assert link.receive(PATIENCE)
        link.send(np.array([4.0]), 4)
    assert link.inbox.values[0] >= 0.01 and link.inbox.echo > 0 and link.inbox.damaged == 0
    bad = bytearray(frames.Outbox(frames.COMMAND, 1).write(2**31 - 1, 0, 0, np.array([8.0])))
    bad[-1] ^= 1
    link._socket.send(bad)
    while not link.inbox.flags & frames.WATCHDOG and time.monotonic() < deadline:
        assert link.receive(PATIENCE)  # and nothing is sent
    assert link.inbox.flags & frames.WATCHDOG
    echoed = link.inbox.echo
    link.close()
    again = UdpLink(device)
    again.close()
    assert echoed < 2**31 - 1  # the damaged command did nothing
