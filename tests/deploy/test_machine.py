"""The emulated machine against the simulator that it is made of, and its wear against what was asked for."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota import policies
from spota.deploy.drive import Drive
from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.inference import Remembered, controller_of
from spota.deploy.introduction import Introduction
from spota.deploy.judgement import Judgement
from spota.deploy.machine import Machine
from spota.deploy.mission import Mission
from spota.deploy.phases import RUN
from spota.deploy.physics import HostBody, PureBody
from spota.deploy.plain import plain
from spota.deploy.rules import Rules
from spota.deploy.supervisor import Cause
from spota.deploy.virtual import VirtualLink
from spota.deploy.wear import Wear
from spota.envs import make
from spota.policies.architecture import Architecture, new_network
from spota.policies.contract import Contract
from spota.sim.acting import followed
from spota.sim.rollout import pure

NAMES = ("ball-balancer", "cart-pole", "qube")
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
RANDOM = np.random.default_rng(0)


def observations(env, n: int) -> np.ndarray:
    low, high = np.array([(s.low, s.high) for s in env.observations]).T
    return RANDOM.uniform(low, high, (n, low.size)).astype(np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_the_body_moves_as_the_simulator_says(name):
    env, steps = pure(make(name)), 150
    domain = drawn_domain(env, 5)
    body = PureBody(env, domain, 0)
    body.state[:] = body.first
    xi = env.params({n: jnp.float32(v) for n, v in domain.items()})
    state = body.rebuilt([jnp.float32(x) for x in body.first])
    commands = 0.3 * RANDOM.uniform(-1, 1, (steps, len(env.actions))).astype(np.float32)
    step = jax.jit(lambda s, u: env.step(s, tuple(u), xi))
    for command in commands:
        body.step(command.astype(float))
        state = step(state, command)
    assert body.state == pytest.approx([float(x) for x in jax.tree.leaves(state)], abs=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_danger_and_reward_are_the_platforms_own(name):
    env = pure(make(name))
    judgement = Judgement(env)
    xi = env.params({n: v[0] for n, v in env.domain.nominal().items()})
    body = PureBody(env, judgement.domain, 0)
    for observation in observations(env, 5):
        raw = observation.astype(float)
        if name != "ball-balancer":
            raw[1] += np.pi
        state, command = body.rebuilt([jnp.float32(x) for x in raw]), 0.5 * np.ones(len(env.actions))
        assert judgement.danger(observation) == pytest.approx(max(map(float, env.danger(state, xi))), rel=1e-4)
        rewards = judgement.rewards(observation[None], command[None])
        assert rewards is not None
        assert rewards[0] == pytest.approx(float(env.reward(state, tuple(command), xi)), rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(
    "make_policy", [lambda e: policies.fnn(jax.random.key(1), e, (8, 8)), policies.lqr, policies.energy]
)
def test_policies_act_without_jax_as_with_it(make_policy):
    env = make("cart-pole")
    policy = make_policy(env)
    act, into = controller_of(policy, Contract.of(env)), np.zeros(1)
    seen = observations(env, 20)
    wanted = np.asarray(policy(jnp.asarray(seen.T)))
    for observation, want in zip(seen, wanted[0], strict=True):
        act(observation.astype(float), into)
        assert into[0] / 8 == pytest.approx(want, abs=2e-4)


@pytest.mark.parametrize("memory", [{"memory": 3, "stride": 2}, {"recurrent": 5}])
def test_policies_with_memory_remember_the_same_without_jax(memory):
    env = make("cart-pole")
    policy = new_network(jax.random.key(1), env, Architecture((6, 6), **memory))
    policy = jax.tree.map(lambda x: x + 0.3 * jax.random.normal(jax.random.key(2), x.shape), policy)
    act, into, seen = controller_of(policy, Contract.of(env)), np.zeros(1), observations(env, 12)
    wanted = np.asarray(followed(policy, jnp.asarray(seen)[:, :, None]))[:, 0, 0]
    assert isinstance(act, Remembered)
    for _ in range(2):
        act.reset()
        for observation, want in zip(seen, wanted, strict=True):
            act(observation.astype(float), into)
            assert into[0] / 8 == pytest.approx(want, abs=1e-4)


def test_arrays_are_taken_apart_and_what_cannot_run_without_jax_is_refused():
    matrix = jnp.asarray(RANDOM.normal(size=(3, 3)))

    def function(a, b, c):
        x = jnp.stack([a, b, c])
        y = jnp.concatenate([matrix @ x, jnp.maximum(x, 0.1)[::2]])
        return jnp.where(y.sum() > 0, y, -y), jnp.clip(x, -0.5, 0.5).reshape(1, 3).max(axis=1)

    made = plain(function, 3, "a test")
    for _ in range(5):
        given = RANDOM.normal(size=3).tolist()
        want = np.concatenate([np.ravel(x) for x in function(*map(jnp.float32, given))])
        assert made(*given) == pytest.approx(want, abs=1e-5)
    with pytest.raises(ValueError, match="cannot run outside of jax"):
        plain(lambda a: jnp.linalg.det(a * jnp.eye(2)), 1, "a determinant")


def test_encoders_count_and_filtered_velocities_follow():
    env = make("cart-pole")
    exact, worn = (
        Machine(env, drawn_domain(env, 0, nominal=True), wear, seed=1)
        for wear in (Wear(noise=False), Wear(noise=False, encoder=4.0, filter=30.0))
    )
    seen = []
    for t in range(400):
        command = np.array([3.0 * np.sin(t / 25)])
        for machine in (exact, worn):
            machine.step(command)
        seen.append((exact.measure().copy(), worn.measure().copy()))
    ideal, measured = (np.array(column) for column in zip(*seen, strict=True))
    counts = measured[:, 1] / (4 * 2 * np.pi / 4096)
    assert np.abs(counts - np.round(counts)).max() < 1e-6
    assert np.abs(measured[:, 0] - ideal[:, 0]).max() <= 4 * 2.275e-5
    lag = round(1 / (2 * np.pi * 30) / env.dt)  # a first-order filter lags by its time constant
    error = measured[100 + lag :, 2] - ideal[100:-lag, 2]
    assert np.sqrt(np.mean(error**2)) < 0.2 * np.sqrt(np.mean(ideal[100:, 2] ** 2))


def test_dry_friction_holds_a_small_voltage_and_play_hides_a_small_motion():
    env = make("cart-pole")
    held = Machine(env, drawn_domain(env, 0, nominal=True), Wear(noise=False, coulomb=1.0))
    loose = Machine(env, drawn_domain(env, 0, nominal=True), Wear(noise=False, backlash=0.02))
    assert isinstance(loose.body, PureBody)
    for machine in (held, loose):
        machine.measure()
    for _ in range(200):
        held.step(np.array([0.9]))
        loose.step(np.array([0.5]))
        assert held.measure()[0] == pytest.approx(0.0, abs=1e-9)
        moved = loose.body.state[0] + loose.sensors._offset[0]
        assert loose.measure()[0] == pytest.approx(max(0.0, moved - 0.01), abs=1e-9)


def test_the_cart_stops_at_the_ends_of_its_own_rail():
    env = make("cart-pole")
    machine = Machine(env, drawn_domain(env, 3), Wear(noise=False))
    for _ in range(1500):
        machine.step(np.array([6.0]))
    assert isinstance(machine.body, PureBody)
    assert machine.body.state[0] == pytest.approx(machine.domain["rail_length"] / 2 - 0.05)
    assert machine.body.state[2] == 0.0


def test_the_watchdog_forgets_commands_on_their_way():
    env = make("ball-balancer")
    domain = drawn_domain(env, 0, nominal=True) | {"action_delay": 3.0}
    drive = Drive(Machine(env, domain), Introduction.of(env, 0.006).safe, 6_000_000)
    acted = []
    for step in range(12):
        now = 2_000_000 * step
        if step < 4:
            drive.accept(np.array([1.0 + step, 0.0]), step + 1, now)
        drive.step(now)
        acted.append(float(drive.acting[0]))
    assert acted == [0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0]
    assert drive.fired


def test_without_a_watchdog_the_last_command_stays_for_ever():
    env = make("ball-balancer")
    drive = Drive(Machine(env, drawn_domain(env, 0, nominal=True)), (0.0, 0.0), None)
    drive.accept(np.array([1.0, 0.0]), 1, 0)
    for step in range(1000):
        drive.step(2_000_000 * step)
    assert drive.acting.tolist() == [1.0, 0.0]


def test_a_mujoco_twin_is_a_machine_that_moves_like_ours():
    """The example's model has the physics of our Cart-Pole: the same policy balances both alike, over the same line."""
    pytest.importorskip("mujoco")
    twin, env = make(f"{EXAMPLES / 'mujoco_cart_pole.py'}:env"), pure(make("cart-pole"))
    domain = drawn_domain(env, 0, nominal=True)
    regulator = policies.lqr(env)
    both = [emulator(platform, domain, Wear(noise=False)) for platform in (twin, env)]
    ours = both[1].device.drive.machine
    ours.hold_at_start()
    assert isinstance(ours.body, PureBody)
    start = np.zeros(4)
    both[0].device.drive.machine.body.observe(start)
    ours.body.state[:] = [start[0], np.pi + start[1], start[2], start[3]]
    ours.held, paths = False, []
    for made in both:
        link, act, into, path = VirtualLink(made), controller_of(regulator, Contract.of(env)), np.zeros(1), []
        for _ in range(300):
            assert link.receive(1.0)
            act(link.inbox.values, into)
            link.send(into, RUN)
            path.append(link.inbox.values.copy())
        paths.append(np.array(path))
    assert np.abs(paths[0][0]).max() > 0.01  # it began away from rest
    assert paths[0] == pytest.approx(paths[1], abs=5e-3)
    mission = Mission(twin, controller_of(regulator, Contract.of(twin)), 200, Rules(), checking=0.1)
    ended = mission.session(VirtualLink(emulator(twin, domain))).run()
    assert ended.cause is Cause.FINISHED, ended.words


def test_somebody_elses_simulator_is_a_machine_too():
    from host_point_mass import HostPointMass

    env = HostPointMass()
    machine = Machine(env, drawn_domain(env, 0, nominal=True), Wear(noise=False))
    before = machine.measure().copy()
    for _ in range(20):
        machine.step(np.full(len(env.actions), 0.5))
    assert isinstance(machine.body, HostBody)
    assert (machine.measure() != before).any()
