"""MuJoCo models: trajectories as our own Cart-Pole has, domains as a recompiled model has them, faults in words."""

import resource
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

import spota  # noqa: E402
from spota.envs.cart_pole import NU, CartPoleState  # noqa: E402
from spota.envs.mujoco_targets import resolve  # noqa: E402
from spota.sim import rollout  # noqa: E402
from spota.sim.identity import platform_sha256  # noqa: E402
from spota.sim.objects import named  # noqa: E402
from spota.sim.replaying import replay  # noqa: E402

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ARM = """
<mujoco><option timestep="0.01"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom name="rod" type="capsule" fromto="0 0 0 0.5 0 0" size="0.02" mass="0.3"/></body>
  </worldbody>
  <actuator><motor name="u" joint="hinge" gear="2" ctrlrange="-1 1"/></actuator>
</mujoco>"""


def arm(targets, text=ARM, parameters=("value",), **others):
    """A small arm whose only observation is its angle."""
    law = spota.Parameter(spota.Uniform(0.1, 2.0), "-")
    told = {
        "observations": (spota.Signal("angle", "rad", -3.0, 3.0),), "observe": lambda sim, _: sim.qpos.T,
        "reward": lambda sim, *_: np.ones(sim.nsim), "dt": 0.02, "max_steps": 50, "max_reward": 1.0,
    }  # fmt: skip
    domain = spota.DomainDistribution(dict.fromkeys(parameters, law))
    return spota.mujoco(mujoco.MjSpec.from_string(text), domain=domain, targets=targets, **{**told, **others})


def angles(env, n=3, **values):
    """Where the arm is after 50 steps with a constant command."""
    domains = {name: np.full(n, value) for name, value in values.items()}
    machines = env.open(domains, np.zeros(n, np.uint32))
    for _ in range(50):
        machines.step(np.full((1, n), 0.3), np.ones(n, bool))
    return machines.observe()[0]


@pytest.fixture(scope="module")
def both():
    example = named(f"{EXAMPLES}/mujoco_cart_pole.py:env", lambda _: True, "")
    return example, spota.make("cart-pole")


def test_simulations_begin_where_a_recording_was(both):
    theirs, ours = both
    domains = NU.sample(jax.random.key(0), 6)
    columns = {name: np.asarray(column, np.float64) for name, column in domains.items()}
    start = np.random.default_rng(0).uniform(-1, 1, (4, 6)) * [[0.3], [3.0], [1.0], [8.0]]
    volts = 4 * np.random.default_rng(1).uniform(-1, 1, (100, 1, 6))
    seen = replay(theirs, columns, start, volts, every=4)
    xi = jax.vmap(ours.params)(domains)
    state = jax.vmap(ours.at)(tuple(jnp.asarray(start, jnp.float32)), xi)
    step = jax.jit(jax.vmap(ours.step))
    for t in range(100):
        state = step(state, (jnp.asarray(volts[t, 0], jnp.float32),), xi)
    off = seen[-1] - np.stack(jax.vmap(ours.observe)(state, xi))
    off[1] -= 2 * np.pi * np.round(off[1] / (2 * np.pi))
    assert seen.shape == (25, 4, 6) and np.abs(off).max() < 0.02


def test_a_model_that_cannot_be_placed_says_what_to_write():
    bare, placed = arm({}), arm({}, place=lambda sim, signals, _: sim.qpos.__setitem__((..., 0), signals["angle"]))
    assert bare.lacks is not None and "place=lambda sim, signals, xi" in bare.lacks and placed.lacks is None
    machines = placed.open_at({"value": np.ones(3)}, np.array([[0.1, 0.2, 0.3]]))
    np.testing.assert_allclose(machines.observe(), [[0.1, 0.2, 0.3]])
    assert platform_sha256(bare) == platform_sha256(placed)  # a run's certificate can be asked about later


def test_the_cart_pole_moves_as_ours_does(both):
    theirs, ours = both
    domains = NU.sample(jax.random.key(0), 8)
    columns = {name: np.asarray(column, np.float64) for name, column in domains.items()}
    machines = theirs.open(columns, np.arange(8, dtype=np.uint32))
    x, tilt, x_dot, alpha_dot = jnp.asarray(machines.observe(), jnp.float32)
    state, xi = jax.vmap(CartPoleState)(x, tilt + jnp.pi, x_dot, alpha_dot), jax.vmap(ours.params)(domains)
    step = jax.jit(jax.vmap(ours.step))
    for t in range(150):
        volts = 4 * np.sin(0.1 * t + np.arange(8.0))[None]
        np.testing.assert_allclose(
            np.stack(jax.vmap(ours.observe)(state, xi)), machines.observe(), rtol=1e-3, atol=1e-4
        )
        reward, _ = machines.step(volts, np.ones(8, bool))
        command = (jnp.asarray(volts[0], jnp.float32),)
        np.testing.assert_allclose(jax.vmap(ours.reward)(state, command, xi), reward, rtol=2e-3, atol=1e-4)
        state = step(state, command, xi)


def test_the_regulator_earns_there_what_it_earns_on_ours(both):
    regulator = spota.find("lqr", both[1])
    domains, keys = NU.sample(jax.random.key(0), 60), jax.random.split(jax.random.key(1), (60, 1))
    mine, same = (float(rollout.returns(env, regulator, domains, keys).returns.mean()) for env in both)
    assert mine == pytest.approx(same, rel=0.01)


def test_mass_brings_its_inertia_along_as_in_a_model_written_with_it():
    heavy = arm({}, ARM.replace('mass="0.3"', 'mass="0.6"'), parameters=("value",))
    want = angles(heavy, value=1.0)
    for target, value in (("body/arm.mass", 0.6), ("body/arm.mass *", 2.0), ("body/arm.mass +", 0.3)):
        np.testing.assert_allclose(angles(arm({"value": target}), value=value), want, rtol=1e-12)
    alone = arm({"value": "body/arm.mass", "same": "body/arm.inertia *"}, parameters=("value", "same"))
    assert abs(angles(alone, value=0.6, same=1.0)[0] - want[0]) > 1e-2


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [("joint/hinge.damping", 'damping="0.1"', 'damping="0.5"'), ("actuator/u.gear[0]", 'gear="2"', 'gear="0.5"')],
)
def test_a_target_is_the_attribute_of_that_name(target, old, new):
    np.testing.assert_allclose(
        angles(arm({"value": target}), value=0.5), angles(arm({}, ARM.replace(old, new)), value=1.0)
    )


def test_a_function_changes_the_model_before_it_is_compiled():
    def length(spec, value):
        spec.geom("rod").fromto = [0, 0, 0, value, 0, 0]

    targets = {"value": length, "gravity": "opt.gravity[2]"}
    want = arm({}, ARM.replace("0.5 0 0", "0.8 0 0").replace("<option", '<option gravity="0 0 -2"'))
    domains = {"value": np.array([0.8, 0.5, 0.8]), "gravity": np.full(3, -2.0)}
    machines = arm(targets, parameters=("value", "gravity")).open(domains, np.zeros(3, np.uint32))
    for _ in range(50):
        machines.step(np.full((1, 3), 0.3), np.ones(3, bool))
    found = machines.observe()[0]
    np.testing.assert_allclose(found[[0, 2]], angles(want, 2, value=1.0), rtol=1e-9)
    assert abs(found[1] - found[0]) > 1e-2


def test_machines_know_nothing_of_the_domains_before_them():
    env = arm({"value": "body/arm.mass *"})
    first = angles(env, value=0.5)
    angles(env, value=2.0)
    np.testing.assert_array_equal(first, angles(env, value=0.5))
    np.testing.assert_array_equal(first[:1], angles(env, n=1, value=0.5))


@pytest.mark.skipif(sys.platform != "linux", reason="only there can the memory be given back, and looked up")
def test_machines_that_are_closed_leave_their_memory():
    env = arm({"value": "body/arm.mass *"})

    def megabytes_after(times):
        for _ in range(times):
            machines = env.open({"value": np.ones(256)}, np.arange(256, dtype=np.uint32))
            machines.step(np.zeros((1, 256)), np.ones(256, bool))
            machines.close()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

    before = megabytes_after(2)
    assert megabytes_after(12) < before + 20


def test_a_simulation_that_diverges_is_a_failure():
    free, wild_control = ARM.replace(' ctrlrange="-1 1"', ""), {"control": lambda _sim, command, _xi: 1e12 * command}
    signal = spota.Signal("u", "-", -1.0, 1.0)
    wild = arm({"value": "actuator/u.gear[0]"}, free, actions=(signal,), **wild_control)
    domains = {"value": jnp.array([1.0, 2.0])}
    found = rollout.returns(wild, lambda o: jnp.ones_like(o), domains, jax.random.split(jax.random.key(0), (2, 1)))
    assert not found.survived.any() and (found.returns < 50).all()


@pytest.mark.parametrize(
    ("targets", "others", "sentence"),
    [
        ({"value": "geom/floor.friction[0]"}, {}, "value is dead"),  # the arm never touches the floor
        ({"value": "actuator/u.gear[0]"}, {"max_reward": 0.5}, "1 to 1 were seen, but 0 to 0.5 is stated"),
        (
            {"value": "actuator/u.gear[0]"},
            {"control": lambda _sim, command, _xi: 1e12 * command},
            "came to NaN or infinity",
        ),
    ],
    ids=["dead", "range", "diverges"],
)
def test_a_fault_that_is_planted_in_a_model_is_found(targets, others, sentence):
    free = {"text": ARM.replace(' ctrlrange="-1 1"', ""), "actions": (spota.Signal("u", "-", -1.0, 1.0),)}
    found = spota.check(arm(targets, **free, **others))
    assert sentence in " ".join(found.faults)
    assert spota.check(arm({"value": "actuator/u.gear[0]"})).sound


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("body/amr.mass", "no body 'amr'; did you mean 'arm'"),
        ("bdy/arm.mass", "no kind 'bdy'; did you mean 'body'"),
        ("body/arm.mas", "'mas' of a body does not exist; did you mean 'mass'"),
        ("body/arm.invweight0", "computed of the rest"),
        ("geom/floor.friction[3]", r"friction has 3 entries; write an index from 0 to 2"),
        ("opt.gravty[2]", "opt has no 'gravty'; did you mean 'gravity'"),
        ("arm mass", "cannot be read; write KIND/NAME.ATTRIBUTE"),
    ],
)
def test_a_target_that_does_not_exist_is_refused_with_the_nearest(target, why):
    with pytest.raises(ValueError, match=why):
        arm({"value": target})


def test_other_faults_are_one_sentence(monkeypatch):
    with pytest.raises(ValueError, match="targets names 'valu'.*did you mean 'value'"):
        arm({"valu": "body/arm.mass"})
    with pytest.raises(ValueError, match="dt = 0.015 s is no multiple of the model's timestep of 0.01 s"):
        arm({}, dt=0.015)
    with pytest.raises(ValueError, match="'u' has no ctrlrange.*Signal"):
        arm({}, ARM.replace(' ctrlrange="-1 1"', ""))
    with pytest.raises(ValueError, match="no model 'robot.xml'"):
        spota.mujoco(
            "robot.xml", domain=NU, targets={}, observations=(), observe=lambda sim, _: sim.qpos.T,
            reward=lambda sim, *_: sim.time, dt=1.0, max_steps=1, max_reward=1.0,
        )  # fmt: skip
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ValueError, match=r"pip install 'spota\[mujoco\]'"):
        arm({}, text=ARM)


def test_identity_holds_the_model_and_the_functions():
    env, same = arm({"value": "body/arm.mass"}), arm({"value": "body/arm.mass"})
    assert platform_sha256(env) == platform_sha256(same)
    others = [
        arm({"value": "body/arm.mass *"}),
        arm({"value": "body/arm.mass"}, ARM.replace("0.02", "0.03")),
        arm({"value": "body/arm.mass"}, failed=lambda sim, _: sim.qpos[:, 0] > 1),
    ]
    assert len({platform_sha256(env), *map(platform_sha256, others)}) == 4


def test_a_target_holds_the_entries_of_its_object():
    model = mujoco.MjSpec.from_string(ARM).compile()
    found = resolve(model, "body/arm.inertia[1] *")
    assert (found.field, found.entries, found.how) == ("body_inertia", (4,), "*")
