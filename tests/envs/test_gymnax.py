"""An environment in the style of gymnax becomes a pure platform: the same trajectories, gradients, and its faults."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spota
from spota.sim.findings import Look
from spota.sim.movement import parameters_arrive
from spota.sim.rollout import collect

NU = spota.DomainDistribution(
    mass=spota.Parameter(spota.Uniform(0.5, 2.0), "kg"), friction=spota.Parameter(spota.Uniform(0.0, 1.0), "N s/m")
)


class Params(eqx.Module):
    mass: Any = 1.0
    friction: Any = 0.1
    total: Any = 1.0  # stored, not computed: the trap
    max_steps_in_episode: int = 40

    def replace(self, **changes):
        return Params(**{**vars(self), **changes})


class State(eqx.Module):
    position: Any  # [x, v]
    time: Any


class Sled:
    """Push a sled; beyond 2 m it is over. Every step is a little random."""

    default_params = Params()
    name = "sled"

    def reset_env(self, key, params):
        del params
        state = State(jnp.array([jax.random.uniform(key, (), jnp.float32, -1.0, 1.0), 0.0]), 0)
        return state.position, State(state.position, jnp.int32(0))

    def step_env(self, key, state, action, params):
        x, v = state.position
        push = action[0] + 0.01 * jax.random.normal(key)
        v = v + 0.1 * (push - params.friction * v) / params.mass
        moved = State(jnp.array([x + 0.1 * v, v]), state.time + 1)
        over = (jnp.abs(moved.position[0]) > 2.0) | (moved.time >= params.max_steps_in_episode)
        return moved.position, moved, jnp.exp(-(x**2)) + self.offset, over, {"discount": 1.0}

    offset = 0.0


def sled(kind: Any = Sled, **others: Any) -> Any:
    usual: dict[str, Any] = {
        "domain": NU, "params_of": lambda params, xi: params.replace(**xi), "reward": (0.0, 1.0), "dt": 0.1,
        "observations": (spota.Signal("x", "m", -2.0, 2.0), spota.Signal("v", "m/s", -3.0, 3.0)),
        "actions": (spota.Signal("push", "N", -2.0, 2.0),), "max_steps": 40,
    }  # fmt: skip
    return spota.from_gymnax(kind(), **{**usual, **others})


def push(observation):
    return 0.5 + 0.0 * observation[:1]  # 1 N


def test_it_moves_as_by_itself():
    env, key = sled(), jax.random.key(3)
    domains = {"mass": jnp.array([0.7]), "friction": jnp.array([0.4])}
    found = collect(env, push, domains, key[None])
    k_reset, k_steps = jax.random.split(key)
    params = Params(mass=0.7, friction=0.4)
    observation, state = Sled().reset_env(k_reset, params)
    for t in range(10):
        np.testing.assert_allclose(found.observations[t, :, 0], observation, rtol=1e-5)
        noise = jax.random.fold_in(k_steps, t)
        observation, state, reward, *_ = Sled().step_env(noise, state, jnp.array([1.0]), params)
        assert float(found.rewards[t, 0]) == pytest.approx(float(reward), rel=1e-5)


def test_its_own_time_limit_is_no_failure_and_its_edge_is_one():
    domains = {"mass": jnp.array([0.5, 50.0]), "friction": jnp.zeros(2)}
    found = collect(sled(), push, domains, jax.random.split(jax.random.key(0), 2))
    assert found.survived.tolist() == [False, True]


def test_gradients_go_through_it():
    env, domains = sled(), NU.sample(jax.random.key(0), 4)
    keys = jax.random.split(jax.random.key(1), 4)

    @jax.jit
    def earned(gain):
        return collect(env, lambda o: gain * o[:1], domains, keys).rewards.sum()

    slope = jax.grad(earned)(-0.3)
    assert float(slope) == pytest.approx(float((earned(-0.29) - earned(-0.31)) / 0.02), rel=0.05)


def test_an_early_end_is_charged_where_steps_cost():
    class Costly(Sled):
        offset = -1.0

    env = sled(Costly, reward=(-1.0, 0.0))
    found = collect(
        env, push, {"mass": jnp.array([0.5]), "friction": jnp.zeros(1)}, jax.random.split(jax.random.key(0), 1)
    )
    steps = int(found.alive.sum())
    assert steps < 30
    lived = found.rewards[: steps - 1].sum()
    assert float(found.rewards[steps - 1, 0]) == pytest.approx(-(40 - steps), abs=1.0)
    assert env.min_return <= float(lived + found.rewards[steps - 1, 0]) < -25


def test_a_stored_total_is_a_dead_parameter():
    assert parameters_arrive(Look(sled())).passed
    dead = sled(params_of=lambda params, xi: params.replace(total=xi["mass"], friction=xi["friction"]))
    assert "mass is dead" in parameters_arrive(Look(dead)).faults[0]


def test_what_cannot_work_is_refused():
    with pytest.raises(ValueError, match="object has no reset_env and no step_env; from_gymnax takes"):
        sled(object)

    class Bare(Sled):
        default_params = None

    with pytest.raises(ValueError, match="has no default_params; write params="):
        sled(Bare)
