"""A device shows itself: one small page on loopback with the moving picture, fed while it runs."""

import http.server
import json
import threading
import time
from collections import deque
from importlib import resources
from string import Template
from typing import Any, NamedTuple

import numpy as np

from spota.deploy.emulator import Emulator
from spota.deploy.machine import Machine
from spota.deploy.phases import PHASES
from spota.deploy.physics import PureBody
from spota.show import animation
from spota.show.animation.html import scene
from spota.show.animation.recording import FRAMES_PER_SECOND, Recording, picture_of

EVENTS_PER_SECOND = 12
KEPT = 50
"""Frames that are shown: the last second."""
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Frame(NamedTuple):
    """One moment of the machine, as cheap to take as can be."""

    number: int
    values: tuple[float, ...]
    command: tuple[float, ...]
    phase: int
    controlled: bool
    fired: bool


class LivePage:
    """Call it after each tick; a thread of its own answers browsers on loopback."""

    def __init__(self, machine: Machine, caption: str, port: int = 0):
        """Listen on that port of 127.0.0.1; 0 takes a free one."""
        self._machine, self._caption = machine, caption
        self._stride = max(1, round(1 / (FRAMES_PER_SECOND * machine.env.dt)))
        self._frames: deque[Frame] = deque(maxlen=KEPT)
        self._frames.append(Frame(0, self._values(), (0.0,) * len(machine.env.actions), 0, False, False))
        handler = type("Handler", (_Handler,), {"live": self})
        try:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            raise ValueError(f"--page {port}: port {port} of 127.0.0.1 is taken; choose another one.") from error
        self._server.daemon_threads = True
        self.open = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where to look."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __call__(self, emulator: Emulator) -> None:
        """See a tick."""
        if emulator.ticks % self._stride == 0:
            device = emulator.device
            drive = device.drive
            command = tuple(drive.acting.tolist())
            controlled = device.controller is not None
            self._frames.append(Frame(emulator.ticks, self._values(), command, device.phase, controlled, drive.fired))

    def close(self) -> None:
        """Let everybody go."""
        self.open = False
        self._server.shutdown()
        self._server.server_close()

    def page(self) -> str:
        """The page, at rest until it hears more."""
        template = resources.files("spota.deploy").joinpath("live.html").read_text("utf-8")
        player = animation.fragment([self._recorded(list(self._frames))])
        return Template(template).substitute(title=self._machine.env.name, player=player)

    def news(self, after: int) -> tuple[int, str]:
        """What has happened since a frame: the newest one's number, and an event for the page."""
        frames = list(self._frames)
        last = frames[-1]
        if last.number <= after:
            return after, ""
        told = {"time": last.number * self._machine.env.dt, "words": _words(last), "command": last.command}
        document = {"scene": scene(self._recorded(frames)), **told}
        return last.number, f"data: {json.dumps(document, allow_nan=False)}\n\n"

    def _values(self) -> tuple[float, ...]:
        body = self._machine.body
        return tuple(body.state) if isinstance(body, PureBody) else tuple(self._machine.sensors.measured.tolist())

    def _recorded(self, frames: list[Frame]) -> Recording:
        """The last moments as a recording, two of them at least."""
        frames = frames if len(frames) > 1 else frames * 2
        env, body = self._machine.env, self._machine.body
        columns = list(np.array([frame.values for frame in frames]).T)
        which, tracks, sizes = "curves", dict(zip((s.name for s in env.observations), columns, strict=False)), {}
        if isinstance(body, PureBody) and env.name in animation.ANIMATED:
            which, geometry = picture_of(env.name)
            tracks, sizes = geometry(body.rebuilt(columns), body.xi)
        interval, n = self._stride * env.dt, len(frames)
        commands = np.array([frame.command for frame in frames])
        return Recording(
            env.name, self._caption, which, interval, interval * np.arange(n), tracks, sizes, env.actions, commands,
            np.zeros(n), np.zeros(n), env.max_return, False,
        )  # fmt: skip


def _words(frame: Frame) -> str:
    if not frame.controlled:
        return "no controller"
    return f"{PHASES[min(frame.phase, len(PHASES) - 1)]}{', held by its watchdog' if frame.fired else ''}"


class _Handler(http.server.BaseHTTPRequestHandler):
    live: LivePage

    def do_GET(self) -> None:
        """The page, or its frames."""
        if self.path == "/":
            body = self.live.page().encode()
            self._begin("text/html; charset=utf-8")
            self.wfile.write(body)
        elif self.path == "/frames":
            self._begin("text/event-stream")
            self._stream()
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        for name, value in {"Content-Type": kind, **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self) -> None:
        seen = 0
        try:
            while self.live.open:
                seen, event = self.live.news(seen)
                self.wfile.write(event.encode())
                self.wfile.flush()
                time.sleep(1 / EVENTS_PER_SECOND)
        except OSError:  # the reader has left
            return
