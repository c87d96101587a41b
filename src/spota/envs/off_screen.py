"""Drawing without a screen: the environment variables that pygame and MuJoCo want, and which OpenGL works here.

An OpenGL library that is broken can end the process that tries it. So another process tries, once.
"""

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Iterator

from spota.sim.host import NoPictureError

QUIET = {
    "SDL_VIDEODRIVER": "dummy",  # no window
    "SDL_AUDIODRIVER": "dummy",
    "SDL_NO_SIGNAL_HANDLERS": "1",  # or pygame would swallow SIGTERM
    "PYGAME_HIDE_SUPPORT_PROMPT": "1",  # or it would greet on standard output
}
LIBRARIES = {"darwin": ("cgl",), "win32": ("glfw",)}
"""Modules of `mujoco` with an OpenGL context, by platform; on others those of Linux."""
LINUX = ("egl", "osmesa", "glfw")
ALSO = {"glx": "glfw", "wgl": "glfw"}
"""Other names that MUJOCO_GL may have for them."""
ON, OFF = ("", "1", "on", "true", "enable", "enabled"), ("0", "off", "false", "disable", "disabled")
"""What MUJOCO_GL may say beside the name of a library."""
PATIENCE = 60.0
"""Seconds that a library has to open a context."""
TRIAL = """
import importlib, sys
import mujoco
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(64, 64)
context.make_current()
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), mujoco.mjtFontScale.mjFONTSCALE_100.value)
"""


@contextlib.contextmanager
def off_screen() -> Iterator[None]:
    """Nothing opens a window in here, or greets; afterwards the variables are as they were."""
    wanted = dict(QUIET)
    if "mujoco" in sys.modules:
        with contextlib.suppress(NoPictureError):
            wanted["MUJOCO_GL"] = opengl()
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def opengl() -> str:
    """The first of MuJoCo's OpenGL libraries that works here, or the one that MUJOCO_GL names."""
    named = os.environ.get("MUJOCO_GL", "").lower().strip()
    if named in OFF:
        raise NoPictureError(f"MUJOCO_GL={named} says that MuJoCo shall not draw")
    tried = LIBRARIES.get(sys.platform, LINUX) if named in ON else (ALSO.get(named, named),)
    found = _first_that_works(tried)
    if found is None:
        raise NoPictureError(
            f"no OpenGL works here without a screen ({', '.join(tried)}); on Debian and Ubuntu, type: apt install "
            "libegl1 libgl1-mesa-dri"
        )
    return found


@functools.cache
def _first_that_works(libraries: tuple[str, ...]) -> str | None:
    return next(filter(_works, libraries), None)


def _works(library: str) -> bool:
    """Whether another process can open a context with it."""
    try:
        found = subprocess.run(
            [sys.executable, "-c", TRIAL, library],
            env={**os.environ, "MUJOCO_GL": library},
            capture_output=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return False
    return found.returncode == 0
