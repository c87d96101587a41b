"""Loopback at 500 Hz: a device in its own process, and the loop of `spota deploy` with a network, for a minute."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np

from spota import policies
from spota.deploy.addresses import parse
from spota.deploy.aftermath import PERCENTILES, Aftermath, aftermath
from spota.deploy.connect import connected
from spota.deploy.inference import controller_of
from spota.deploy.mission import Mission, gentle
from spota.deploy.realtime import realtime
from spota.deploy.rules import Rules
from spota.envs import make

ENV = make("ball-balancer")
SECONDS = 60.0
RULES = replace(gentle(Rules()), danger=1e9, beyond=1e9)
"""Everything is judged and logged as usual, and nothing stops it: not this machine's load, nor a ball that rolls."""


def main(seconds: float = SECONDS) -> None:
    """Once as it is, and once with real-time priority for both processes."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"load: {busy:.1f} processes a core; {seconds:g} s at 500 Hz")
    for wanted in (False, True):
        device, address = _device(seconds, wanted)
        try:
            _report(wanted, *_deployed(address, seconds, wanted))
        finally:
            device.terminate()
            print(f"  the device: {(device.communicate()[1] or 'in time, always').strip()}")


def _device(seconds: float, wanted: bool) -> tuple[subprocess.Popen, str]:
    command = ["emulate", ENV.name, "--nominal", "--listen", "udp://127.0.0.1:0", "--json"]
    command += ["--seconds", str(seconds + 120), *(["--realtime"] if wanted else [])]
    process = subprocess.Popen(
        [sys.executable, "-m", "spota.cli", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = "".join(iter(process.stdout.readline, "}\n")) + "}"
    return process, json.loads(told)["device"]


def _deployed(device: str, seconds: float, wanted: bool) -> tuple[Aftermath, np.ndarray]:
    """What `spota deploy` tells of the run, and the delays of commands in whole steps."""
    policy = policies.fnn(jax.random.key(0), ENV, (32, 32))
    mission = Mission(ENV, controller_of(policy, policy.contract), round(seconds / ENV.dt), RULES)
    link = connected(parse(device), ENV, policy.contract)
    with realtime(wanted) as refused:
        for words in refused:
            print(words)
        ended = mission.session(link).run()
    return aftermath(ended, ENV, mission.steps, None), ended.ticks.delays()


def _report(wanted: bool, about: Aftermath, delays: np.ndarray) -> None:
    tail = ", ".join(f"{v:g}" for v in np.percentile(delays - delays.min(), PERCENTILES))
    own, age = (", ".join(f"{1e6 * share[f'p{p:g}']:.0f}" for p in PERCENTILES) for share in (about.work, about.age))
    name = "SCHED_FIFO" if wanted else "ordinary priority"
    print(f"{name}: {about.words} {about.steps} frames answered, {about.missed} skipped for newer ones")
    print(f"  commands within one period: {100 * about.in_time:.2f} %")
    print(f"  whole steps too late (50, 99, 99.9, 100 %): {tail}")
    print(f"  age of the data in µs (50, 99, 99.9, 100 %): {age}")
    share = 100 * about.work["p50"] / ENV.dt
    print(f"  our own work in µs (50, 99, 99.9, 100 %): {own}; {share:.1f} % of a period at the median")
