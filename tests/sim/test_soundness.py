"""`spota.check` finds each fault that is planted, says it in a sentence, and finds nothing where nothing is wrong."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("gymnasium")

import slider
import spota
from spota.cli import main
from spota.envs.catapult import Catapult
from spota.sim.soundness import check, check_soundness


def faults(**others) -> dict[str, str]:
    """What is wrong, by check."""
    return {f.about: " ".join(f.faults) for f in check(slider.platform(**others)).findings if not f.passed}


def only_mass(env, xi):
    env.unwrapped.mass, env.unwrapped.stiffness = xi["mass"], xi["stiffness"]


def only_stiffness(env, xi):
    env.unwrapped.stiffness = xi["stiffness"]


def scaled(env, xi):
    env.unwrapped.stiffness = xi["stiffness"]
    env.unwrapped.mass *= xi["mass"]
    env.unwrapped.inertia *= xi["mass"]


class Hidden(slider.Slider):
    """Keeps what it computes from its mass where no attribute shows it."""

    def __init__(self, mass: float = 1.0, stiffness: float = 1.0):
        super().__init__(mass, stiffness)
        self.tables = {"drag": 0.1 * mass}

    def step(self, action):
        self.v *= 1 - self.tables["drag"]
        return super().step(action)


def test_a_sound_simulator_passes_and_is_timed():
    found = check(slider.platform())
    assert found.sound, found
    assert found.steps_per_second and found.steps_per_second > 1000
    assert "✓ every parameter moves a trajectory: 2 of 2 move" in str(found)
    check_soundness(slider.platform())


@pytest.mark.parametrize(
    ("others", "about", "sentence"),
    [
        ({"apply": only_stiffness}, "every parameter moves a trajectory", "mass is dead: none of 64 trajectories"),
        ({"apply": only_mass}, "has nothing stale", "Slider computes inertia from length and mass when it is made"),
        ({"kind": Hidden}, "has nothing stale", "made with mass, stiffness moves otherwise"),
        ({"kind": slider.Unseeded}, "repeats with the same seed", "differ from the start state on"),
        ({"kind": slider.Leaking}, "starts clean after another domain", "leaks from one domain to the next"),
        ({"apply": scaled}, "does not compound", "it compounds. Set values from the nominal ones"),
        ({"kind": slider.Greedy}, "earns within the stated range", "2 to 2 were seen, but 0 to 1 is stated"),
        ({"kind": slider.Diverging}, "stays finite, without warnings or silent resets", "came to NaN or infinity"),
        ({"kind": slider.Restarting}, "stays finite, without warnings or silent resets", "it resets itself"),
        ({"kind": slider.Loud}, "stays finite, without warnings or silent resets", "warned: RuntimeWarning"),
    ],
    ids=["dead", "stale", "hidden", "unseeded", "leak", "compound", "range", "nan", "reset", "warning"],
)  # fmt: skip
def test_a_planted_fault_is_found(others, about, sentence):
    assert sentence in faults(**others)[about]


def test_a_fault_is_not_blamed_on_other_checks():
    dead = ["every parameter moves a trajectory", "has nothing stale"]
    assert list(faults(apply=only_stiffness)) == dead  # the constructor, which has a mass, moves otherwise, too
    assert list(faults(kind=slider.Leaking, apply=slider.apply)) == [
        "starts clean after another domain",
        "does not compound",
    ]


def test_a_new_environment_for_every_episode_heals_a_leak():
    assert not faults(kind=slider.Leaking, reuse=False)


def test_masses_of_a_mujoco_model_without_their_inertia_are_stale():
    class Model:
        """As MuJoCo's: the world, and one body."""

        def __init__(self):
            self.body_mass, self.body_inertia = np.array([0.0, 1.0]), np.array([[0.0] * 3, [0.1] * 3])
            self.body_subtreemass = np.array([1.0, 1.0])

    class Modelled(slider.Slider):
        def __init__(self):
            super().__init__()
            self.model = Model()

    def heavy(env, xi):
        slider.apply(env, xi)
        env.unwrapped.model.body_mass[1] = xi["mass"]

    def whole(env, xi):
        heavy(env, xi)
        env.unwrapped.model.body_inertia[1] = 0.1 * xi["mass"]
        env.unwrapped.model.body_subtreemass[:] = xi["mass"]

    told = faults(kind=Modelled, apply=heavy)["has nothing stale"]
    assert "The mass of body 1 changed without its inertia" in told and "mj_setConst" in told
    assert not faults(kind=Modelled, apply=whole)


def test_a_machine_that_looks_at_its_neighbours_is_found():
    class Crowd(slider.gym.vector.VectorEnv):
        """Each start depends on how many there are."""

        metadata = {"autoreset_mode": slider.gym.vector.AutoresetMode.DISABLED}  # noqa: RUF012

        def __init__(self, num_envs: int):
            self.num_envs = num_envs
            self.single_observation_space = slider.gym.spaces.Box(-5.0, 5.0, (1,))
            self.single_action_space = slider.gym.spaces.Box(-1.0, 1.0, (1,))

        def reset(self, *, seed=None, options=None):
            del seed, options
            self.x = np.full((self.num_envs, 1), 1.0 / self.num_envs)
            return self.x, {}

        def step(self, actions):
            self.x = self.x + 0.01 * self.mass[:, None] * actions
            nobody = np.zeros(self.num_envs, bool)
            return self.x, np.zeros(self.num_envs), nobody, nobody, {}

    def apply(env, xi):
        env.mass = xi["mass"] * xi["stiffness"]

    told = faults(kind=Crowd, vector=True, apply=apply, start=lambda env, _: env.x)
    assert "beside others from the start state on" in told["does alone what it does beside others"]


def test_a_simulator_that_raises_is_told_with_its_domain():
    class Broken(slider.Slider):
        def observe(self):
            if self.v:
                raise RuntimeError("the gearbox is gone")
            return super().observe()

    found = check(slider.platform(Broken))
    assert found.steps_per_second is None
    assert found.faults[0].startswith("Broken broke on the domain mass=")
    assert "in step 1 it raised RuntimeError: the gearbox is gone (test_soundness.py, line" in found.faults[0]


def test_before_a_training_the_first_fault_is_an_error():
    with pytest.raises(ValueError, match="Slider is not sound. mass is dead"):
        check_soundness(slider.platform(apply=only_stiffness))


def test_a_platform_of_ours_is_sound():
    assert check(spota.make("catapult")).sound


def test_a_dead_parameter_of_a_pure_platform_is_found():
    class Deaf(Catapult):
        def params(self, domain):
            return super().params({"planet": jnp.zeros_like(domain["planet"])})

    assert "planet is dead" in check(Deaf()).faults[0]


def test_the_command_prints_a_table_or_json_and_fails_with_a_fault(capsys, monkeypatch):
    monkeypatch.chdir(slider.__file__.rpartition("/")[0])
    file = "planted.py"
    main(["check", f"{file}:sound", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["sound"] and told["steps_per_second"] > 0 and "apply(env, xi)" in told["way"]
    with pytest.raises(SystemExit) as stop:
        main(["check", f"{file}:dead"])
    assert stop.value.code == 1
    out = capsys.readouterr().out
    assert "✗  every parameter moves a trajectory" in out and "mass is dead" in out and "is not sound" in out
