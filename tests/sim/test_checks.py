"""What is wrong with a platform or a policy is said before any work, in the names of whoever wrote it."""
# ruff: noqa: ARG002, the methods of a platform have these arguments

import dataclasses
import math
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spota
from bowl import Bowl, Hold
from spota.sim.checks import check_env, check_policy

OPTIONS: dict[str, Any] = {"settings": {"n_c": 2, "n_r": 2, "n_G": 10, "n_J": 1}}


class TwoSignals(Bowl):
    observations = (spota.Signal("start", "-", 0.0, 1.0), spota.Signal("speed", "m/s", -1.0, 1.0))


class BareObservation(Bowl):
    def observe(self, state, xi):
        return state


class Misspelt(Bowl):
    def params(self, domain):
        return domain["stong"], domain["weak"]


class Deciding(Bowl):
    def reward(self, state, action, xi):
        if action[0] > xi[0]:
            return state
        return -state


class WithNumPy(Bowl):
    def step(self, state, action, xi):
        return np.sin(state)


class WithMath(Bowl):
    def step(self, state, action, xi):
        return math.sin(state)


class BareDanger(Bowl):
    def danger(self, state, xi):
        return jnp.abs(state)


class ArrayReward(Bowl):
    def reward(self, state, action, xi):
        return jnp.stack([state, state])


class OtherState(Bowl):
    def step(self, state, action, xi):
        return (state, state)


class CountingState(Bowl):
    def start(self, key, xi):
        return 0

    def step(self, state, action, xi):
        return state + 0.5


class Reversed(Bowl):
    actions = (spota.Signal("a", "m", 1.0, -1.0),)


class Twice(Bowl):
    observations = (spota.Signal("x", "m", 0.0, 1.0), spota.Signal("x", "m", 0.0, 1.0))


@pytest.mark.parametrize(
    ("platform", "parts"),
    [
        (TwoSignals, ("observe of bowl returns 1 value", "start, speed")),
        (BareObservation, ("observe of bowl returns a scalar", "write a tuple of scalars for start")),
        (Misspelt, ("params of bowl asks for the parameter 'stong'", "did you mean 'strong'?")),
        (Deciding, ("reward of bowl decides by a value", "test_checks.py", "if action[0] > xi[0]:", "jnp.where")),
        (WithNumPy, ("step of bowl hands its values to NumPy", "np.sin(state)", "write jnp")),
        (WithMath, ("step of bowl needs a value", "math.sin(state)", "use jnp")),
        (BareDanger, ("danger of bowl returns a scalar", "return (x,)")),
        (ArrayReward, ("reward of bowl returns an array of shape (2,)", "a scalar is needed")),
        (OtherState, ("step of bowl returns a tuple of 2, but start returns a scalar", "same kind of state")),
        (CountingState, ("step of bowl returns a scalar (float32)", "start returns a scalar (int32)")),
        (Reversed, ("a of bowl ranges from 1 to -1", "the lower one first")),
        (Twice, ("observations of bowl has 'x' twice",)),
    ],
)
def test_a_platform_that_does_not_fit_is_explained(platform, parts):
    env = platform()
    keys = jax.random.split(jax.random.key(0), (2, 1))
    for use in (
        lambda: check_env(env),
        lambda: spota.train(env, **OPTIONS),
        lambda: spota.assess(Hold(jnp.float32(0.0)), env, **OPTIONS),
        lambda: spota.returns(env, Hold(jnp.float32(0.0)), env.domain.sample(jax.random.key(0), 2), keys),
    ):
        with pytest.raises(ValueError) as told:  # noqa: PT011, the parts are compared below
            use()
        for part in parts:
            assert part in str(told.value)


@pytest.mark.parametrize(
    ("policy", "part"),
    [
        (lambda o: jnp.concatenate([o, o]), "returns an array of shape (2, 3) (float32)"),
        (lambda o: o[0], "it lacks the axis of actuators: write action[None]"),
        (lambda o: (o,), "returns a tuple of 1"),
    ],
)
def test_a_policy_that_does_not_fit_is_explained(policy, part):
    env = Bowl()
    with pytest.raises(ValueError) as told:  # noqa: PT011
        check_policy(env, policy)
    assert part in str(told.value)
    with pytest.raises(ValueError) as told:  # noqa: PT011
        spota.assess(policy, env, **OPTIONS)
    assert part in str(told.value)


@pytest.mark.parametrize("name", ["ball-balancer", "cart-pole-swing-up", "qube-swing-up", "catapult"])
def test_our_own_platforms_fit(name):
    env = spota.make(name)
    check_env(env)
    check_env(dataclasses.replace(env, domain=env.domain))
    check_policy(env, spota.fnn(jax.random.key(0), env, (4,)))


def test_what_types_forbid_is_refused_in_words_where_nobody_checks_types():
    code = """
import spota
for call in (
    lambda: spota.train("catapult", preset="fast"),
    lambda: spota.assess("policy.npz", "catapult", preset="quik"),
    lambda: spota.train(spota.Env),
    lambda: spota.assess(3.0, "catapult"),
):
    try: call()
    except ValueError as error: print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert told[0] == "There is no preset 'fast'; there are: tuned, quick, paper."
    assert told[1] == "There is no preset 'quik'; did you mean 'quick'?"
    assert told[2].endswith("an object of a class that extends spota.Env.")
    assert told[3].startswith("The policy is 3.0, which cannot be called")


def test_actions_in_physical_units_are_noticed():
    with pytest.raises(UserWarning, match=r"100 % of the steps .* up to 6, .* scale them: action = a / 1\.$"):
        spota.assess(lambda o: 6.0 + 0.0 * o[:1], Bowl())
