"""Loopback at 500 Hz: a device in its own process, and a host that answers each frame with a network, for a minute."""

import json
import os
import subprocess
import sys

import jax
import numpy as np

from spota import policies
from spota.deploy.addresses import parse
from spota.deploy.aftermath import PERCENTILES
from spota.deploy.inference import controller_of
from spota.deploy.links import UdpLink
from spota.deploy.phases import RUN
from spota.deploy.realtime import realtime, undisturbed
from spota.envs import make

SECONDS = 60.0


def main(seconds: float = SECONDS) -> None:
    """Once as it is, and once with real-time priority for both processes."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"load: {busy:.1f} processes a core; {seconds:g} s at 500 Hz")
    for wanted in (False, True):
        device = _device(seconds)
        try:
            _report(wanted, *_answered(str(device[1]), seconds, wanted, device[0].pid))
        finally:
            device[0].terminate()
            device[0].wait()


def _device(seconds: float) -> tuple[subprocess.Popen, str]:
    command = ["emulate", "cart-pole", "--listen", "udp://127.0.0.1:0", "--json", "--seconds", str(seconds + 120)]
    process = subprocess.Popen([sys.executable, "-m", "spota.cli", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = "".join(iter(process.stdout.readline, "}\n")) + "}"
    return process, json.loads(told)["device"]


def _answered(device: str, seconds: float, wanted: bool, pid: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of frames that came, delays of commands in steps, and our work [s]."""
    env = make("cart-pole")
    policy = policies.fnn(jax.random.key(0), env, (16, 16))
    act, into = controller_of(policy, policy.contract), np.zeros(1)
    link, rows = UdpLink(parse(device)), round(1.2 * seconds * 500)
    seqs, delays, work = np.zeros(rows, np.int64), np.full(rows, -1), np.zeros(rows)
    answered: dict[int, int] = {}
    with realtime(wanted) as refused, undisturbed():
        for words in refused:
            print(words)
        if wanted and not refused:
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(49))
        link.begin()
        end, n = link.now() + round(1e9 * seconds), 0
        while link.now() < end and n < rows:
            if not link.receive(0.1):
                continue
            begun = link.now()
            act(link.inbox.values, into)
            answered[link.send(into, RUN)] = link.inbox.seq
            seqs[n], work[n] = link.inbox.seq, (link.now() - begun) / 1e9
            if link.inbox.echo in answered:
                delays[n] = link.inbox.seq - answered.pop(link.inbox.echo) - 1
            n += 1
    link.close()
    return seqs[:n], delays[:n], work[:n]


def _report(wanted: bool, seqs: np.ndarray, delays: np.ndarray, work: np.ndarray) -> None:
    steps = int(seqs[-1] - seqs[0]) + 1
    domain_delay = int(delays[delays >= 0].min())
    within = float((delays == domain_delay).sum() / steps)
    late = delays[delays >= 0] - domain_delay
    tail = ", ".join(f"{v:g}" for v in np.percentile(late, PERCENTILES))
    own = ", ".join(f"{1e6 * v:.0f}" for v in np.percentile(work, PERCENTILES))
    name = "SCHED_FIFO" if wanted else "ordinary priority"
    print(f"{name}: {steps} steps of the device, {100 * within:.2f} % of the commands within one period")
    print(f"  whole steps too late (50, 99, 99.9, 100 %): {tail}")
    print(f"  our own work in µs (50, 99, 99.9, 100 %): {own}; {100 * np.median(work) / 0.002:.1f} % of a period")
