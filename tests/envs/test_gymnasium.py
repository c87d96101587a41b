"""Gymnasium environments as platforms: how ξ arrives, what signals, endings and seeds mean, and what is refused."""

import operator
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

gym = pytest.importorskip("gymnasium")

import slider  # noqa: E402
import spota  # noqa: E402
from spota.cli import main  # noqa: E402
from spota.envs import gymnasium_recipe  # noqa: E402
from spota.envs.gymnasium import set_attributes  # noqa: E402
from spota.sim.host import MachineError  # noqa: E402
from spota.sim.identity import platform_sha256  # noqa: E402
from spota.sim.objects import named  # noqa: E402
from spota.sim.replaying import replay  # noqa: E402

SEEDS = np.arange(5, dtype=np.uint32)
DOMAINS = {"mass": np.linspace(0.5, 2.0, 5), "stiffness": np.linspace(1.0, 0.2, 5)}
LENGTHS = spota.DomainDistribution(m=spota.Parameter(spota.Uniform(0.7, 1.3), "kg"))
ANGLES = tuple(spota.Signal(name, "-", -3.0, 3.0) for name in ("x", "x_dot", "angle", "angle_dot"))


def run(env, domains=None, steps: int = 20, seeds=SEEDS, active=None, scale: float = 1.0):
    """Observations [steps + 1, d, n], rewards and failures [steps, n] under the same commands."""
    machines = env.open(domains or DOMAINS, seeds)
    rng = np.random.default_rng(0)
    seen, earned, failed = [machines.observe().copy()], [], []
    active = np.ones(seeds.size, bool) if active is None else active
    for _ in range(steps):
        command = scale * rng.uniform(-1.0, 1.0, (len(env.actions), 5)).astype(np.float32)[:, : seeds.size]
        reward, lost = machines.step(command, active)
        seen.append(machines.observe().copy())
        earned.append(reward)
        failed.append(lost)
        active = active & ~lost
    machines.close()
    return np.stack(seen), np.stack(earned), np.stack(failed)


def test_a_machine_moves_as_the_environment_does_by_itself():
    seen, earned, _ = run(slider.platform())
    rng, env = np.random.default_rng(0), slider.Slider(DOMAINS["mass"][2], DOMAINS["stiffness"][2])
    observation, _ = env.reset(seed=2)
    for t in range(20):
        np.testing.assert_array_equal(observation, seen[t, :, 2])
        observation, reward, *_ = env.step(rng.uniform(-1.0, 1.0, (1, 5)).astype(np.float32)[:, 2])
        assert reward == earned[t, 2]


def put(env, signals) -> None:
    env.unwrapped.x, env.unwrapped.v = signals.values()


def test_environments_begin_where_a_recording_was():
    env = slider.platform(place=put)
    start, pushes = np.random.default_rng(1).uniform(-1, 1, (2, 5)), np.random.default_rng(2).uniform(-1, 1, (9, 1, 5))
    seen = replay(env, DOMAINS, start, pushes, every=3)
    for i in range(5):
        one = slider.Slider(DOMAINS["mass"][i], DOMAINS["stiffness"][i])
        one.x, one.v = start[:, i]
        moved = [one.step(push[:, i])[0] for push in pushes]
        np.testing.assert_allclose(seen[:, :, i], moved[2::3], atol=1e-6)  # commands have 32 bits
    bare = slider.platform()
    assert env.lacks is None and bare.lacks is not None and "place=lambda env, signals" in bare.lacks
    assert platform_sha256(env) == platform_sha256(bare)
    with pytest.raises(ValueError, match="when it was placed it raised AttributeError: 'list'"):
        replay(slider.platform(place=lambda *_: operator.attrgetter("missing")([])), DOMAINS, start, pushes)


def test_a_vector_environment_begins_where_a_recording_was():
    carts = named(f"{Path(__file__).parent.parent.parent}/examples/gymnasium_cart_pole.py:carts", lambda _: True, "")
    domains = {n: np.asarray(c, float) for n, c in carts.domain.sample(jax.random.key(0), 4).items()}
    start = np.random.default_rng(0).uniform(-0.05, 0.05, (4, 4))
    (seen,) = replay(carts, domains, start, np.ones((1, 1, 4)))
    np.testing.assert_allclose(seen[0], start[0] + 0.02 * start[1], rtol=1e-5)  # CartPole moves by its old speed
    assert (seen[1] > start[1]).all()


@pytest.mark.parametrize(
    ("kind", "others", "way"),
    [
        (slider.Slider, {}, "apply(env, xi)"),
        (slider.Slider, {"apply": None}, "arguments of the constructor"),
        (slider.Declaring, {"apply": None}, 'reset(options={"domain": xi})'),
    ],
)
def test_the_three_ways_lead_to_the_same_trajectories(kind, others, way):
    env = slider.platform(kind, **others)
    assert way in env.way
    np.testing.assert_array_equal(run(env)[0], run(slider.platform(reuse=False))[0])
    np.testing.assert_array_equal(run(env)[0], run(env)[0])  # with environments that were used before


def test_an_episode_depends_on_its_own_domain_and_seed_only():
    env, order = slider.platform(), np.array([3, 1])
    two = run(env, {name: column[order] for name, column in DOMAINS.items()}, seeds=SEEDS[order], scale=0.0)[0]
    np.testing.assert_array_equal(two, run(env, scale=0.0)[0][..., order])


def test_processes_change_nothing():
    one, two = slider.platform(), slider.platform(processes=2)
    for alone, together in zip(run(one), run(two), strict=True):
        np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(run(two)[0], run(one)[0])


class Stuck(slider.Slider):
    def step(self, action):
        if self.mass > 1.9:
            time.sleep(60)
        return super().step(action)


class Dying(slider.Slider):
    def step(self, action):
        if self.mass > 1.9:
            sys.exit(7)
        return super().step(action)


def test_a_machine_that_hangs_or_ends_its_process_is_named():
    with pytest.raises(MachineError, match="hangs, since a step takes longer than 0.3 s") as hung:
        run(slider.platform(Stuck, processes=2, time_limit=0.3))
    with pytest.raises(MachineError, match="ended with exit code 7") as died:
        run(slider.platform(Dying, processes=2))
    assert hung.value.machine == died.value.machine == 4


def returns(env):
    domains = {name: jax.numpy.asarray(column) for name, column in DOMAINS.items()}
    return spota.returns(env, lambda o: 0 * o[:1], domains, jax.random.split(jax.random.key(0), (5, 1))).returns


def test_a_machine_that_hangs_in_our_own_process_is_named_and_the_next_run_is_not_disturbed():
    with pytest.raises(ValueError, match=r"domain 4 \(mass=2, .*it hangs, since step 1 takes longer than 0.3 s; .*=3"):
        returns(slider.platform(Stuck, processes=1, time_limit=0.3))
    assert np.isfinite(returns(slider.platform(time_limit=0.3))).all()


HANGING = """
import ctypes
import slider

class Deaf(slider.Slider):
    def step(self, action):
        mutex = ctypes.create_string_buffer(64)
        for _ in range(2):  # who locks it twice waits for ever, and hears no signal
            ctypes.CDLL(None).pthread_mutex_lock(mutex)

env = slider.platform(Deaf, processes=1, time_limit=0.5)
"""


@pytest.mark.slow  # it waits until patience is over
def test_a_command_ends_with_a_sentence_where_nothing_can_be_interrupted(tmp_path):
    (tmp_path / "deaf.py").write_text(HANGING)
    paths = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)])
    command = [sys.executable, "-m", "spota.cli", "rollout", f"{tmp_path}/deaf.py:env", "--domains", "2"]
    given = {"env": os.environ | {"PYTHONPATH": paths}, "capture_output": True, "timeout": 300}
    ended = subprocess.run([*command, "--policy", f"{__file__}:still"], **given)
    assert ended.returncode == 2 and b"it hangs, since step 1 takes longer than 0.5 s" in ended.stderr
    assert b"Traceback" not in ended.stderr and b"mass=" in ended.stderr


def still(observation):
    return 0 * observation[:1]


class Slow(slider.Slider):
    def step(self, action):
        time.sleep(0.002)
        return super().step(action)


def test_processes_are_used_when_a_step_is_slow():
    cores = len(os.sched_getaffinity(0))
    assert [slider.platform(kind).workers for kind in (slider.Slider, Slow)] == [1, cores]
    assert slider.platform(Slow, processes=1).workers == 1
    lock = threading.Lock()  # which cannot travel to another process
    assert slider.platform(Slow, apply=lambda env, xi: lock and slider.apply(env, xi)).workers == 1


def test_a_machine_that_raises_is_named_by_its_domain():
    def picky(env, xi):
        if xi["mass"] > 1.9:
            raise RuntimeError("too heavy")
        slider.apply(env, xi)

    env = slider.platform(apply=picky)
    with pytest.raises(
        ValueError, match=r"domain 4 \(mass=2, stiffness=0.2\): at its reset it raised RuntimeError: too"
    ):
        returns(env)


def test_rollouts_through_the_seam_are_seeded_and_in_range():
    env = slider.platform(effects=spota.Effects(noise=spota.ObservationNoise((0.01, 0.01))))
    domains, keys = env.domain.sample(jax.random.key(0), 8), jax.random.split(jax.random.key(1), (8, 2))
    first, again = (spota.returns(env, lambda o: -o[:1], domains, keys).returns for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert ((np.asarray(first) > 0) & (np.asarray(first) <= env.max_return)).all()
    assert len(np.unique(first)) == 16


class Falling(slider.Slider):
    """Terminates after three steps if it is heavy; every step costs."""

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.steps += 1
        observation, *_ = super().step(action)
        return observation, -1.0, self.mass > 1.9 and self.steps == 3, False, {}


def test_a_failure_never_earns_more_than_a_life_of_costs():
    _, earned, failed = run(slider.platform(Falling, reward=(-2.0, 0.0), max_steps=20))
    total = earned.sum(axis=0)
    assert failed[2].tolist() == [False] * 4 + [True]
    assert total[4] == -3 - 2 * 17 and (total[:4] == -20).all()
    assert total.min() >= slider.platform(Falling, reward=(-2.0, 0.0), max_steps=20).min_return


def test_a_goal_is_no_failure_and_ends_the_costs():
    _, earned, failed = run(slider.platform(Falling, reward=(-2.0, 0.0), max_steps=20, ending="goal"))
    assert not failed.any()
    assert earned.sum(axis=0).tolist() == [-20.0] * 4 + [-3.0]


def test_what_is_no_number_is_a_failure_and_is_never_seen():
    seen, earned, failed = run(slider.platform(slider.Diverging), scale=3.0, steps=40)
    assert failed.any() and np.isfinite(seen).all() and np.isfinite(earned).all()


def test_a_time_limit_of_its_own_is_refused():
    limited = lambda: gym.wrappers.TimeLimit(slider.Slider(), 7)  # noqa: E731
    with pytest.raises(ValueError, match="truncated at step 7, but its episodes have max_steps=60.*write max_steps=7"):
        run(slider.platform(limited))
    assert run(slider.platform(limited, max_steps=7), steps=7)[0].shape[0] == 8


def test_signals_come_from_the_spaces():
    env = spota.gymnasium("Pendulum-v1", domain=LENGTHS, apply=set_attributes("m"), reward=(-16.3, 0.0))
    assert (env.dt, env.max_steps, env.actions[0].low, env.actions[0].high) == (0.05, 200, -2.0, 2.0)
    assert [(s.name, s.high) for s in env.observations] == [
        (f"observation_{i}", h) for i, h in enumerate((1.0, 1.0, 8.0))
    ]
    assert (env.max_return, env.min_return) == (0.0, -16.3 * 200)


@pytest.mark.parametrize(
    ("n", "commands", "actions"),
    [(2, [[-0.1, 0.0, 0.2]], [3, 3, 4]), (3, [[0.1, 0.0, -1.0], [0.1, 0.5, -1.0], [0.0, 0.2, -0.9]], [3, 4, 5])],
)
def test_discrete_actions_are_thresholds_or_the_largest(n, commands, actions):
    space = gym.spaces.Discrete(n, start=3)
    decode = spota.envs.gymnasium.decoder_of(space, "switch")
    assert decode(np.array(commands)).tolist() == actions
    assert len(spota.envs.gymnasium.action_signals(space, None, "switch")) == len(commands)


def test_a_vector_environment_runs_as_such():
    single, many = (
        spota.gymnasium(
            "CartPole-v1", domain=LENGTHS, apply=apply, reward=(0.0, 1.0), observations=ANGLES, dt=0.02, **others
        )
        for apply, others in ((_mass, {}), (_mass, {"vector": True, "start": _start}))
    )
    domains = {"m": np.linspace(0.05, 0.5, 5)}
    for one, other in zip(run(single, domains, steps=30), run(many, domains, steps=30), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def _mass(env, xi):
    cart = env.unwrapped
    cart.masspole = xi["m"]
    cart.total_mass, cart.polemass_length = xi["m"] + cart.masscart, xi["m"] * cart.length


def _start(env, seeds):
    starts = [gym.utils.seeding.np_random(int(seed))[0].uniform(-0.05, 0.05, 4) for seed in seeds]
    env.state = np.stack(starts, axis=1)
    return env.state.T


MANY = gym.spaces.MultiDiscrete([2, 2])


def pendulum(name: str = "Pendulum-v1", **others):
    return spota.gymnasium(name, domain=LENGTHS, reward=(-16.3, 0.0), **others)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: pendulum(), "m cannot reach Pendulum-v1: its"),
        (lambda: slider.platform(slider.Declaring, apply=None, domain=LENGTHS), "declares no domain parameter 'm'"),
        (lambda: pendulum("Pendulums-v1"), "Pendulums-v1 cannot be made: Name"),
        (lambda: slider.platform(reward=(1.0, 0.0)), "give the lowest and the highest reward"),
        (lambda: slider.platform(reward=(-np.inf, 0.0)), "as finite numbers"),
        (lambda: slider.platform(dt=None), "does not say how long a step is; write dt=0.02"),
        (lambda: slider.platform(max_steps=None), "say how many steps an episode has: max_steps=500"),
        (lambda: slider.platform(max_steps=0), "max_steps=0: must be positive"),
        (lambda: slider.platform(actions=(spota.Signal("F", "N", -5.0, 5.0),)), "takes -1 to 1; write a range within"),
        (lambda: slider.platform(observations=ANGLES), "but 4 signals were given; write observations="),
        (lambda: slider.platform(lambda: 3), "which has no observation_space and action_space"),
        (lambda: slider.platform(vector=True), "cannot be made: TypeError"),
        (lambda: pendulum(vector=True), "leave out vector=True"),
        (lambda: run(slider.platform(apply=set_attributes(mass="weight"))), "no attribute 'weight'; "),
        (lambda: spota.envs.gymnasium.decoder_of(MANY, "arm"), "arm takes actions from MultiDiscrete"),
        (lambda: spota.envs.gymnasium.observation_signals(MANY, None, "arm", None), "FlattenObservation"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_what_to_type(make, sentence):
    with pytest.raises((ValueError, MachineError)) as refused:
        make()
    assert sentence in str(refused.value)


def test_unbounded_signals_are_asked_for_with_what_was_seen():
    with pytest.raises(ValueError, match="how far observation_1, observation_3 may range") as refused:
        spota.gymnasium("CartPole-v1", domain=LENGTHS, apply=_mass, reward=(0.0, 1.0), dt=0.02)
    proposal = str(refused.value).rpartition("observations=")[2]
    signals = eval(proposal, {"spota": spota})
    env = spota.gymnasium("CartPole-v1", domain=LENGTHS, apply=_mass, reward=(0.0, 1.0), dt=0.02, observations=signals)
    assert env.observations == signals and all(0.5 < s.high < 10 for s in (signals[1], signals[3]))


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ValueError, match=r"pip install 'spota\[gym\]'"):
        slider.platform()


def test_a_command_without_gymnasium_is_one_sentence_with_the_extra(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "import spota\n"
        "nu = spota.DomainDistribution(m=spota.Parameter(spota.Uniform(0.7, 1.3), 'kg'))\n"
        "env = spota.gymnasium('Pendulum-v1', domain=nu, reward=(-16.3, 0.0))\n"
    )
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(SystemExit) as stop:
        main(["rollout", f"{tmp_path}/mine.py:env", "--policy", f"{__file__}:still"])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and "pip install 'spota[gym]'" in told and told.count("\n") == 1


def test_seeds_that_a_vector_environment_cannot_take_are_refused():
    env = spota.gymnasium(
        "CartPole-v1", domain=LENGTHS, apply=_mass, reward=(0.0, 1.0), observations=ANGLES, dt=0.02, vector=True
    )
    with pytest.raises(ValueError, match="does not take a list of seeds.*Write start=lambda env, seeds"):
        run(env, {"m": np.ones(5)})


def test_effects_keep_their_parameters_to_themselves():
    table = spota.DomainDistribution({**slider.NU, "action_delay": spota.Parameter(spota.Integers(0, 3), "steps")})
    env = slider.platform(domain=table, effects=spota.Effects(delay=spota.ActionDelay(longest=3)), apply=None)
    assert env.recipe.parameters == ("mass", "stiffness") and spota.check(env).sound


def test_the_identity_is_that_of_the_environment_and_of_apply():
    used, other = slider.platform(), slider.platform(apply=set_attributes("mass", "stiffness"))
    before = platform_sha256(used)
    run(used)
    assert platform_sha256(used) == before == platform_sha256(slider.platform())
    assert platform_sha256(other) != before
    assert platform_sha256(slider.platform(slider.Leaking)) != before


def test_the_constructor_of_a_registered_environment_is_found():
    assert gymnasium_recipe.constructor_arguments("Pendulum-v1") == ("render_mode", "g")
