"""Sensors and actuators: each effect against what it says in words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spota.sim import randomness
from spota.sim.effects import (
    ActionDelay,
    DeadBand,
    Effects,
    ObservationNoise,
    ObservationOffset,
    scale_and_clip,
)


def delayed(commands: np.ndarray, delays: list[int], longest: int) -> np.ndarray:
    """Send commands [T] to every delay; returns what acts, [T, n]."""
    line, domains = ActionDelay(longest=longest), {"action_delay": jnp.array(delays, jnp.float32)}
    queue, acted = line.empty(jnp.zeros((1, len(delays)))), []
    for t, command in enumerate(commands):
        acts, queue = line(jnp.int32(t), queue, jnp.full((1, len(delays)), command), domains)
        acted.append(np.asarray(acts)[0])
    return np.stack(acted)


def test_command_of_step_t_acts_at_t_plus_delay_and_zero_before():
    commands = np.arange(1.0, 13.0, dtype=np.float32)
    acted = delayed(commands, [0, 1, 3, 4], longest=4)
    for column, delay in enumerate([0, 1, 3, 4]):
        np.testing.assert_array_equal(acted[:delay, column], 0)
        np.testing.assert_array_equal(acted[delay:, column], commands[: len(commands) - delay])


def test_delay_beyond_the_buffer_says_how_to_get_a_longer_one():
    with pytest.raises(ValueError, match="longest_delay=7"):
        ActionDelay(longest=3).check({"action_delay": jnp.array([7.0])})


def test_delay_of_a_fraction_of_a_step_is_refused():
    with pytest.raises(ValueError, match="whole steps"):
        ActionDelay(longest=3).check({"action_delay": jnp.array([1.5])})


def test_dead_band_swallows_only_what_lies_inside():
    band = DeadBand(("low",), ("high",))
    domains = {"low": jnp.full(5, -0.1), "high": jnp.full(5, 0.3)}
    reached = band(jnp.array([[-1.0, -0.05, 0.0, 0.29, 0.31]]), domains)
    np.testing.assert_allclose(reached, [[-1.0, 0.0, 0.0, 0.0, 0.31]])


def test_noise_has_its_standard_deviation_in_every_channel():
    words = randomness.words(jax.random.split(jax.random.key(0), 20_000))
    seen = ObservationNoise((0.5, 0.0, 2.0))(words, jnp.int32(3), jnp.ones((3, 20_000)))
    np.testing.assert_allclose(np.std(seen, axis=1), [0.5, 0, 2], rtol=0.03)
    np.testing.assert_allclose(np.mean(seen, axis=1), 1, atol=0.06)


def test_offset_shifts_the_named_channels():
    seen = ObservationOffset((None, "bias"))(jnp.zeros((2, 3)), {"bias": jnp.array([1.0, 2.0, 3.0])})
    np.testing.assert_array_equal(seen, [[0, 0, 0], [1, 2, 3]])


def test_offset_comes_before_noise():
    worn = Effects(noise=ObservationNoise((0.0,)), offset=ObservationOffset(("bias",)))
    words = randomness.words(jax.random.split(jax.random.key(0), 1))
    assert worn.observe(words, jnp.int32(0), jnp.zeros((1, 1)), {"bias": jnp.array([4.0])})[0, 0] == 4


def test_scaling_maps_the_unit_interval_to_the_range_and_clips():
    commands = scale_and_clip(jnp.array([[-2.0, -1.0, 0.0, 1.0, 2.0]]), (0.0,), (10.0,))
    np.testing.assert_allclose(commands, [[0, 0, 5, 10, 10]])


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="zero or positive"):
        ObservationNoise((-1.0,))
