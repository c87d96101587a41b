"""A MuJoCo model as its own renderer draws it, off screen.

It sees through the model's first camera; without one, from the front, with room to move. The picture is drawn from a
copy of the machine's model and state, so that nothing it does can change a rollout. An OpenGL context belongs to one
thread: that which opens it draws, and closes it.
"""

import contextlib
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8, UInt32

from spota.envs.mujoco_machines import installed
from spota.envs.off_screen import off_screen, opengl
from spota.sim.host import Draw, HostDomains, Machines

if TYPE_CHECKING:
    from spota.envs.mujoco import MuJoCoEnv

WIDTH, HEIGHT = 400, 300
SHADOWS = 1024
"""Side of the map of shadows [px] at most: without a graphics card, MuJoCo's 4096 would take most of the time."""
GEOMS = 10_000
"""Shapes in a picture at most."""
AZIMUTH, ELEVATION, ROOM = 90.0, -10.0, 1.8
"""Of a model without a camera: from where it is seen [°], and how many times the size of what moves is in view."""
AMBIENT, DIFFUSE = 0.3, 0.6
"""Brightness of the light at the camera, for a model without a light of its own."""
SKY = (233, 237, 242)
"""Behind a model without a sky, which would be black."""


@contextlib.contextmanager
def pictured(env: "MuJoCoEnv", domains: HostDomains, seeds: UInt32[np.ndarray, "n"]) -> Iterator[tuple[Machines, Draw]]:
    """The machines, and what draws the first."""
    library = opengl()
    machines = env.open(domains, seeds)
    try:
        with off_screen(), _canvas(library, machines.sim) as canvas:
            yield machines, lambda: canvas.draw(machines.sim)
    finally:
        machines.close()


@contextlib.contextmanager
def _canvas(library: str, sim: Any) -> Iterator["Canvas"]:
    """A canvas in a context that is closed in any case."""
    context = importlib.import_module(f"mujoco.{library}").GLContext(WIDTH, HEIGHT)
    try:
        context.make_current()
        canvas = Canvas(sim.get_model(0), sim)
        try:
            yield canvas
        finally:
            canvas.close()
    finally:
        context.free()


class Canvas:
    """Where one model is drawn."""

    def __init__(self, model: Any, sim: Any):
        """In the OpenGL context of this moment; the model is its own, whose looks it may change."""
        mj = self._mujoco = installed()
        _prepare(model)
        self._model, self._data = model, sim.get_data(0, mj.MjData(model))
        self._context = mj.MjrContext(model, mj.mjtFontScale.mjFONTSCALE_100.value)
        mj.mjr_setBuffer(mj.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        self._scene, self._camera = mj.MjvScene(model, maxgeom=GEOMS), _camera(model, self._data)
        self._has_sky = bool((model.tex_type == mj.mjtTexture.mjTEXTURE_SKYBOX.value).any())

    def draw(self, sim: Any) -> UInt8[np.ndarray, "height width 3"]:
        """The first simulation as it stands."""
        mj, area = self._mujoco, self._mujoco.MjrRect(0, 0, WIDTH, HEIGHT)
        sim.get_data(0, self._data)
        everything = mj.mjtCatBit.mjCAT_ALL.value
        mj.mjv_updateScene(self._model, self._data, mj.MjvOption(), None, self._camera, everything, self._scene)
        mj.mjr_render(area, self._scene, self._context)
        pixels, depth = np.zeros((HEIGHT, WIDTH, 3), np.uint8), np.zeros((HEIGHT, WIDTH), np.float32)
        mj.mjr_readPixels(pixels, depth, area, self._context)
        if not self._has_sky:
            pixels[depth == 1] = SKY  # where nothing is
        return pixels[::-1]  # OpenGL begins at the bottom

    def close(self) -> None:
        """Free what the graphics library holds."""
        self._context.free()


def _prepare(model: Any) -> None:
    """A canvas of our size, shadows that a processor can draw, and light."""
    sight = model.vis
    sight.global_.offwidth, sight.global_.offheight = WIDTH, HEIGHT
    sight.quality.shadowsize = min(SHADOWS, sight.quality.shadowsize)
    if not model.nlight:
        sight.headlight.ambient[:], sight.headlight.diffuse[:] = AMBIENT, DIFFUSE


def _camera(model: Any, data: Any) -> Any:
    """The model's first one, or one that looks at what moves, where it starts."""
    mj = installed()
    camera = mj.MjvCamera()
    mj.mjv_defaultFreeCamera(model, camera)
    moves = (model.body_weldid[model.geom_bodyid] > 0) & (model.geom_rbound > 0)
    if model.ncam:
        camera.type, camera.fixedcamid = mj.mjtCamera.mjCAMERA_FIXED, 0
    elif moves.any():
        places, sizes = data.geom_xpos[moves], model.geom_rbound[moves, None]
        low, high = (places - sizes).min(axis=0), (places + sizes).max(axis=0)
        half = np.deg2rad(model.vis.global_.fovy) / 2
        camera.lookat[:], camera.distance = (low + high) / 2, ROOM * np.linalg.norm(high - low) / 2 / np.tan(half)
        camera.azimuth, camera.elevation = AZIMUTH, ELEVATION
    return camera
