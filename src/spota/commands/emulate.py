"""`spota emulate`: a device made of software, in a process and on a clock of its own."""

import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import tyro

from spota.commands.output import print_json, say, warn
from spota.commands.sources import OtherTable
from spota.deploy.addresses import parse
from spota.deploy.emulator import Emulator, drawn_domain, emulator
from spota.deploy.faults import Faults
from spota.deploy.live import LivePage
from spota.deploy.quarc_serving import QuarcServer
from spota.deploy.realtime import realtime as asked
from spota.deploy.serving import Hook, SerialWire, UdpWire, serve
from spota.deploy.wear import Wear
from spota.envs import make
from spota.sim import domain_set
from spota.sim.env import Platform

SWITCH = 0.0005
"""Seconds after which Python lets another thread run: less than a step."""


def emulate(
    env: Annotated[str, tyro.conf.Positional],
    /,
    listen: str = "udp://127.0.0.1:9095",
    seed: int = 0,
    nominal: bool = False,
    on: Annotated[Path | None, tyro.conf.arg(metavar="SET.json", help_behavior_hint="(default: none)")] = None,
    number: int = 0,
    domain: OtherTable = None,
    wear: Annotated[Wear, tyro.conf.arg(name="")] = Wear(),  # noqa: B008, frozen
    faults: Annotated[Faults, tyro.conf.arg(name="")] = Faults(),  # noqa: B008, frozen
    watchdog: bool = True,
    page: Annotated[int | None, tyro.conf.arg(metavar="PORT", help_behavior_hint="(default: no page)")] = None,
    anywhere: bool = False,
    realtime: bool = False,
    seconds: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="(default: until Ctrl-C)")] = None,
    json: bool = False,
) -> None:
    """Be a device: a machine from the table, in real time, with wear and faults that simulators leave out.

    It answers `spota deploy` and `spota trial`, to one controller at a time, and only on this machine.

    Args:
        env: The platform; a MuJoCo twin or one of your own is FILE.py:NAME, which executes that file.
        listen: udp://127.0.0.1:PORT, quarc://127.0.0.1:PORT (the authors' TCP protocol), serial://PORT, or serial://pty
            for a new pseudo-terminal. Port 0 takes a free one.
        seed: Which machine of the table, and which random numbers its sensors draw.
        nominal: The nominal machine instead.
        on: A machine from this file instead; `spota domains` writes one.
        number: Which machine of that file, from 0.
        domain: Draw it from another table: with a fit, it is a machine that could have made the recordings.
        wear: What simulators leave out of a machine.
        faults: What goes wrong on the line.
        watchdog: Set the command to zero after three steps without one.
        page: Show the machine on http://127.0.0.1:PORT; 0 takes a free port.
        anywhere: Let other machines connect; whoever reaches it can move it.
        realtime: Ask for SCHED_FIFO and locked memory, so that it keeps its time on a busy machine.
        seconds: Switch off after so long.
        json: Print one JSON document that says where it listens.
    """
    platform = make(env, domain=domain)
    machine = _domain_of(platform, on, number) if on else drawn_domain(platform, seed, nominal)
    made = emulator(platform, machine, wear, faults, seed=seed, watchdog=watchdog)
    which = "the nominal machine" if nominal else f"machine {seed}"
    about = f"number {number} of {on}" if on else f"{which} of {domain or 'the table'}"
    sys.setswitchinterval(SWITCH)
    live = LivePage(made.device.drive.machine, about, page) if page is not None else None
    try:
        with asked(realtime) as refused:
            for words in refused:
                warn(words)
            _live(made, listen, anywhere, live, about, seconds, json)
    finally:
        if live is not None:
            live.close()


def _live(
    made: Emulator, listen: str, anywhere: bool, live: LivePage | None, about: str, seconds: float | None, json: bool
) -> None:
    """Until a signal or the time ends it."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    if seconds is not None:
        timer = threading.Timer(seconds, over.set)
        timer.daemon = True
        timer.start()
    address = parse(listen)
    hook: Hook | None = live
    if address.scheme == "quarc":
        server = QuarcServer(made, address, anywhere)
        where, run, close = (
            f"quarc://{address.place}:{server.port}",
            lambda: server.serve(over.is_set, hook),
            server.close,
        )
    elif address.scheme in ("udp", "serial"):
        wire = UdpWire(address, anywhere) if address.scheme == "udp" else SerialWire(address)
        where = f"udp://{address.place}:{wire.port}" if address.scheme == "udp" else f"serial://{wire.port}"
        run, close = lambda: serve(made, wire, over.is_set, hook), wire.close
    else:
        raise ValueError(f"--listen {listen}: a device listens to udp://, quarc:// or serial://.")
    _say_where(made, where, live, about, json)
    try:
        stalls = run()
    finally:
        close()
    if stalls:
        say(f"This process came too late for {stalls} of {made.ticks + stalls} ticks; they were skipped.")


def _say_where(made: Emulator, where: str, live: LivePage | None, about: str, json: bool) -> None:
    name = made.device.introduction.platform
    if json:
        print_json({"env": name, "device": where, "page": live.url if live else None, "about": about})
    else:
        say(f"{name}, {about}, is at {where}{' and shows itself at ' + live.url if live else ''}; Ctrl-C ends it.")
    sys.stdout.flush()


def _domain_of(env: Platform, file: Path, number: int) -> dict[str, float]:
    domains = domain_set.load(file, env).domains
    size = next(iter(domains.values())).shape[0]
    if not 0 <= number < size:
        raise ValueError(f"--number {number}: {file} has machines 0 to {size - 1}.")
    return {name: float(column[number]) for name, column in domains.items()}
