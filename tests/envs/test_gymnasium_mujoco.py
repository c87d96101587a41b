"""A Gymnasium environment with a model of MuJoCo inside: masses that change alone, and without what MuJoCo derives."""

from pathlib import Path

import numpy as np
import pytest

gym = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")

import spota  # noqa: E402

MODEL = Path(gym.__file__).parent / "envs" / "mujoco" / "assets" / "inverted_pendulum.xml"
NU = spota.DomainDistribution(pole_mass=spota.Parameter(spota.Uniform(0.5, 2.0), "-", sign="positive"))
ANGLES = tuple(spota.Signal(name, "-", -3.0, 3.0) for name in ("x", "angle", "x_dot", "angle_dot"))
POLE = 2


class Pendulum(gym.Env):
    """What Gymnasium's InvertedPendulum does, without its renderer and what that needs."""

    def __init__(self):
        self.model = mujoco.MjModel.from_xml_path(str(MODEL))
        self.data, self.dt = mujoco.MjData(self.model), 2 * self.model.opt.timestep
        self.was = {name: np.array(getattr(self.model, name)) for name in ("body_mass", "body_inertia")}
        self.observation_space = gym.spaces.Box(-3.0, 3.0, (4,), np.float64)
        self.action_space = gym.spaces.Box(-3.0, 3.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        del options
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.np_random.uniform(-0.01, 0.01, 2)
        mujoco.mj_forward(self.model, self.data)
        return self.observe(), {}

    def step(self, action):
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, 2)
        return self.observe(), 1.0, bool(abs(self.data.qpos[1]) > 0.2), False, {}

    def observe(self):
        return np.concatenate([self.data.qpos, self.data.qvel])


def applying(inertia: bool, derived: bool):
    def apply(env, xi):
        inner = env.unwrapped
        inner.model.body_mass[POLE] = xi["pole_mass"] * inner.was["body_mass"][POLE]
        if inertia:
            inner.model.body_inertia[POLE] = xi["pole_mass"] * inner.was["body_inertia"][POLE]
        if derived:
            mujoco.mj_setConst(inner.model, inner.data)

    return apply


def platform(apply):
    return spota.gymnasium(Pendulum, domain=NU, apply=apply, reward=(0.0, 1.0), observations=ANGLES, max_steps=40)


@pytest.mark.parametrize(
    ("inertia", "derived", "said"),
    [
        (True, True, ()),
        (False, True, ("The mass of body 2 changed without its inertia",)),
        (True, False, ("what MuJoCo derives from them did not; call mujoco.mj_setConst",)),
        (False, False, ("without its inertia", "did not; call mujoco.mj_setConst")),
    ],
)
def test_what_is_stale_in_a_model_is_found(inertia, derived, said):
    found = platform(applying(inertia, derived)).stale({"pole_mass": 1.7})
    assert len(found) == len(said) and all(words in text for words, text in zip(said, found, strict=True))


def test_a_model_that_was_written_to_moves_as_one_that_was_compiled_so():
    env = platform(applying(inertia=True, derived=True))
    machines = env.open({"pole_mass": np.array([1.7])}, np.array([5], np.uint32))
    spec = mujoco.MjSpec.from_file(str(MODEL))
    alone = Pendulum()
    for geom in spec.body("pole").geoms:
        geom.mass = 1.7 * alone.was["body_mass"][POLE]
    alone.model = spec.compile()
    alone.data = mujoco.MjData(alone.model)
    alone.reset(seed=5)
    for _ in range(20):
        machines.step(np.full((1, 1), 0.1, np.float32), np.ones(1, bool))
        alone.step(np.array([0.1], np.float32))
    np.testing.assert_allclose(machines.observe()[:, 0], alone.observe(), rtol=1e-9)
