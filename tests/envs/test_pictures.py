"""Pictures of Gymnasium's environments and of MuJoCo models, and what is said where there can be none."""

import dataclasses
import importlib.util
import os
import signal
import sys

import jax
import numpy as np
import pytest

gym = pytest.importorskip("gymnasium")
pytest.importorskip("mujoco")

import spota  # noqa: E402
from spota.envs import make, off_screen  # noqa: E402
from spota.envs.gymnasium import GymnasiumEnv, set_attributes  # noqa: E402
from spota.show.animation import record  # noqa: E402
from spota.show.animation.film import decoded, film  # noqa: E402
from spota.sim import rollout  # noqa: E402
from spota.sim.host import NoPictureError  # noqa: E402

KEY = jax.random.key(3)
NU = spota.DomainDistribution(gain=spota.Parameter(spota.Uniform(0.5, 1.5), "-", sign="positive"))


def nothing(observation):
    return 0 * observation[:1]


def recorded(env, **values):
    domain = {**env.domain.nominal(), **{name: jax.numpy.array([x], jax.numpy.float32) for name, x in values.items()}}
    return record(env, nothing, domain, KEY)


# ---- Gymnasium -------------------------------------------------------------------------------------------------


class Slide(gym.Env):
    """Drifts to the right, by its gain; its renderer is a bright column."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (1,))
    action_space = gym.spaces.Box(-1.0, 1.0, (1,))
    gain, dt, closed = 1.0, 0.1, 0

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        del options
        super().reset(seed=seed)
        self.x = self.np_random.uniform(0, 1)
        return np.array([self.x]), {}

    def step(self, action):
        del action
        self.x += 0.1 * self.gain
        return np.array([self.x]), 0.5, False, False, {}

    def render(self):
        image = np.zeros((40, 100, 3), np.uint8)
        image[:, int(10 * self.x) : int(10 * self.x) + 10] = 255
        return image

    def close(self):
        Slide.closed += 1


def slide(render_mode=None):
    return Slide(render_mode)


def blind():
    return Slide()


def platform(source, **more):
    apply = set_attributes("gain")
    return spota.gymnasium(source, domain=NU, apply=apply, reward=(0.0, 1.0), max_steps=12, **more)


def bright_at(frame: str) -> float:
    return float(np.nonzero(np.asarray(decoded(frame)).mean(axis=(0, 2)) > 128)[0].mean())


def test_an_environment_draws_the_machine_of_its_domain():
    before, env = Slide.closed, platform(slide)
    slow, fast = (recorded(env, gain=gain) for gain in (0.5, 1.5))
    for one, gain in ((slow, 0.5), (fast, 1.5)):
        assert one.film is not None and one.scene == "film"
        assert bright_at(one.film.frames[-1]) - bright_at(one.film.frames[0]) == pytest.approx(12 * gain, abs=2)
    assert len(env.idle) == 1 and Slide.closed - before >= 2  # those that were drawn are closed, the others are kept


def test_an_environment_that_takes_no_render_mode_says_what_to_write():
    assert "render_mode=None and not 'rgb_array'" in recorded(platform(blind)).why_curves


def test_without_pygame_the_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = spota.gymnasium(
        "Pendulum-v1",
        domain=spota.DomainDistribution(m=spota.Parameter(spota.Uniform(0.7, 1.3), "kg")),
        apply=set_attributes("m"),
        reward=(-16.3, 0.0),
        dt=0.05,
        max_steps=5,
    )
    assert "pygame is not installed" in recorded(env).why_curves


@pytest.mark.skipif(importlib.util.find_spec("pygame") is None, reason="pygame is not installed")
def test_gymnasium_draws_its_carts_without_a_word_a_window_or_a_signal(capfd):
    env, before = make("examples/gymnasium_cart_pole.py:carts"), dict(os.environ)
    assert isinstance(env, GymnasiumEnv)
    for carts in (
        env,
        dataclasses.replace(env, vector=False, recipe=dataclasses.replace(env.recipe, source="CartPole-v1")),
    ):
        steps = rollout.watch(carts, nothing, carts.domain.nominal(), KEY[None])
        one = film(carts, carts.domain.nominal(), KEY, steps)
        assert (one.width, one.height) == (400, 267) and len(set(one.frames)) > 1
    assert capfd.readouterr() == ("", "")
    assert dict(os.environ) == before
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL and not caught(signal.SIGTERM)


def caught(number: int) -> bool:
    """Whether this process has a handler for it, Python's or another."""
    with open("/proc/self/status") as file:  # noqa: PTH123
        mask = next(int(line.split()[1], 16) for line in file if line.startswith("SigCgt"))
    return bool(mask >> (number - 1) & 1)


# ---- MuJoCo ----------------------------------------------------------------------------------------------------

BALL = """
<mujoco>
  <option timestep="0.01" gravity="0 0 0"/>
  <worldbody>
    %s
    <body><joint name="slide" type="slide" axis="1 0 0"/><geom name="ball" size="0.2" rgba="1 0 0 1"/></body>
  </worldbody>
  <actuator><motor joint="slide" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
FRONT = '<camera name="front" pos="0 -4 0" xyaxes="1 0 0 0 0 1"/><light pos="0 -4 1" dir="0 1 0"/>'


def model(path, inside="", **more):
    path.write_text(BALL % inside)
    return spota.mujoco(
        path,
        domain=spota.DomainDistribution(radius=spota.Parameter(spota.Uniform(0.1, 0.4), "m", sign="positive")),
        targets={"radius": "geom/ball.size[0]"},
        observations=(spota.Signal("x", "m", -1.0, 1.0),),
        observe=lambda sim, _: sim.qpos.T,
        reward=lambda sim, *_: np.ones(sim.nsim),
        start=lambda _, qpos, qvel: (qpos, qvel + 1.0),
        dt=0.1,
        max_steps=10,
        max_reward=1.0,
        **more,
    )


@pytest.fixture(scope="module")
def _opengl():
    try:
        off_screen.opengl()
    except NoPictureError as why:
        pytest.skip(str(why))


def red(frame: str) -> np.ndarray:
    image = np.asarray(decoded(frame)).astype(int)
    return image[..., 0] > image[..., 1:].max(axis=2) + 60


@pytest.mark.usefixtures("_opengl")
@pytest.mark.parametrize("inside", ["", FRONT], ids=["no camera", "camera"])
def test_mujoco_draws_the_machine_of_its_domain_in_motion(tmp_path, inside):
    env = model(tmp_path / "ball.xml", inside)
    found = {radius: recorded(env, radius=radius).film for radius in (0.1, 0.2)}
    sizes = {}
    for radius, one in found.items():
        assert one is not None and (one.width, one.height) == (400, 300)
        first, last = (red(one.frames[i]) for i in (0, -1))
        sizes[radius] = first.sum()
        assert np.nonzero(first)[1].mean() == pytest.approx(200, abs=3)  # in the middle
        assert np.nonzero(first)[0].mean() == pytest.approx(150, abs=12)
        assert not last.any() or np.nonzero(last)[1].mean() > 230  # 1 m to the right, perhaps out of sight
    if inside:  # the camera stands still, so that size is what the model says
        assert sizes[0.2] / sizes[0.1] == pytest.approx(4, rel=0.1)


@pytest.mark.usefixtures("_opengl")
def test_a_recompiled_model_is_drawn_as_it_was_compiled(tmp_path):
    def longer(spec, value):
        spec.geom("ball").size[0] = value

    env = dataclasses.replace(model(tmp_path / "ball.xml", FRONT), targets={"radius": longer})
    small, large = (recorded(env, radius=radius).film for radius in (0.1, 0.2))
    assert small is not None and large is not None
    assert red(large.frames[0]).sum() / red(small.frames[0]).sum() == pytest.approx(4, rel=0.1)


def test_without_opengl_the_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(off_screen, "_first_that_works", lambda _: None)
    one = recorded(model(tmp_path / "ball.xml"))
    assert one.scene == "curves" and "no OpenGL works here" in one.why_curves and "apt install" in one.why_curves
    monkeypatch.setenv("MUJOCO_GL", "off")
    assert recorded(model(tmp_path / "ball.xml")).why_curves == "MUJOCO_GL=off says that MuJoCo shall not draw"


def test_a_library_that_crashes_is_tried_elsewhere(monkeypatch):
    monkeypatch.setattr(off_screen, "TRIAL", "import os; os.abort()")
    assert not off_screen._works("egl")
    monkeypatch.setattr(off_screen, "TRIAL", "import sys; assert sys.argv[1] == 'egl'")
    assert off_screen._works("egl") and not off_screen._works("osmesa")
