"""Environment steps a second of the Ball-Balancer with noise, delay and a 16-16 network, four ways in one run."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from benchmarks.timing import best_seconds
from spota.commands.output import console
from spota.envs import make
from spota.envs.ball_balancer import BOUNDS, NOISE, SHARPNESS, VOLTS, BallBalancerState, Q, R
from spota.policies import fnn
from spota.sim import devices
from spota.sim import rollout as engine

ROLLOUTS = 4096
PLAIN_ROLLOUTS = 1024
LOOP_STEPS = 300


def main() -> None:
    env = make("ball-balancer")
    policy = fnn(jax.random.key(0), env)
    domains = env.domain.sample(jax.random.key(1), ROLLOUTS)
    keys = jax.random.split(jax.random.key(2), ROLLOUTS)
    everyone = jax.devices()
    rates = {
        "per-step Python/NumPy loop": python_loop(env, policy, domains),
        "plain batch-first jax.vmap": _plain_vmap(env, policy, domains),
        "spota, one shard": _ours(env, policy, domains, keys, everyone[:1]),
        f"spota, {len(everyone)} shards": _ours(env, policy, domains, keys, everyone),
    }
    table = Table(title="Ball-Balancer with noise, delay and FNN 16-16")
    for column in ("", "steps/s", "× Python loop", "× plain vmap"):
        table.add_column(column, justify="right" if column else "left")
    loop, plain = list(rates.values())[:2]
    for name, rate in rates.items():
        table.add_row(name, f"{rate:,.0f}", f"{rate / loop:,.1f}", f"{rate / plain:,.1f}")
    console.print(table)


def _ours(env, policy, domains, keys, on) -> float:
    """Rollouts without storage, as `spota.returns` runs them, on some of the devices."""
    everyone, jax.devices = jax.devices, lambda: on
    try:
        policy = devices.replicate(policy)
        piece, _ = next(devices.chunks((domains, keys), ROLLOUTS // len(on)))
        seconds = best_seconds(lambda: engine._returns(env, policy, *piece))
    finally:
        jax.devices = everyone
    return ROLLOUTS * env.max_steps / seconds


def _plain_vmap(env, policy, domains) -> float:
    """What one writes first: one rollout with jax.random and an array state, then vmap over rollouts."""
    weights, biases, std = policy.weights, policy.biases, jnp.array(NOISE.std)
    scale = jnp.array(policy.contract.observation_scale)

    def rollout(key, domain):
        xi = env.params(domain)
        k_start, k_noise = jax.random.split(key)
        start = jnp.stack(jax.tree.leaves(env.start(k_start, xi)))
        low = jnp.stack([domain["threshold_x_neg"], domain["threshold_y_neg"]])
        high = jnp.stack([domain["threshold_x_pos"], domain["threshold_y_pos"]])
        delay = domain["action_delay"].astype(int)

        def step(carry, t):
            state, queue, alive, total = carry
            observation = state + std * jax.random.normal(jax.random.fold_in(k_noise, t), (8,))
            x = observation * scale
            for weight, bias in zip(weights, biases, strict=True):
                x = jnp.tanh(weight @ x + bias)
            queue = jnp.roll(queue, 1, axis=0).at[0].set(jnp.clip(VOLTS * x, -VOLTS, VOLTS))
            volts = queue[delay]
            s = BallBalancerState(*state)
            total += jnp.where(alive, env.reward(s, tuple(volts), xi), 0.0)
            volts = jnp.where((volts > low) & (volts < high), 0.0, volts)
            moved = env.step(s, tuple(volts), xi)
            state = jnp.where(alive, jnp.stack(jax.tree.leaves(moved)), state)
            return (state, queue, alive & ~env.failed(moved, xi), total), None

        carry = start, jnp.zeros((31, 2)), jnp.array(True), jnp.zeros(())
        return jax.lax.scan(step, carry, jnp.arange(env.max_steps))[0][3]

    some = {name: column[:PLAIN_ROLLOUTS] for name, column in domains.items()}
    keys = jax.random.split(jax.random.key(3), PLAIN_ROLLOUTS)
    run = jax.jit(jax.vmap(rollout))
    return PLAIN_ROLLOUTS * env.max_steps / best_seconds(lambda: run(keys, some), repeats=3)


def python_loop(env, policy, domains) -> float:
    """One environment, one step at a time, in NumPy."""
    d = {name: float(column[0]) for name, column in domains.items()}
    c_kin, zeta = 2 * d["arm_radius"] / d["plate_length"], 7 / 5 * d["ball_mass"] * d["ball_radius"] ** 2
    J_b = 2 / 5 * d["ball_mass"] * d["ball_radius"] ** 2
    efficiency = d["gear_efficiency"] * d["motor_efficiency"]
    drive = efficiency * d["gear_ratio"] * d["torque_constant"] / d["motor_resistance"]
    B_v = drive * d["gear_ratio"] * d["torque_constant"] + d["motor_damping"]
    J_eq = d["gear_efficiency"] * d["gear_ratio"] ** 2 * d["motor_inertia"] + d["load_inertia"]
    offset = np.deg2rad([d["offset_x"], d["offset_y"]])
    low = np.array([d["threshold_x_neg"], d["threshold_y_neg"]])
    high = np.array([d["threshold_x_pos"], d["threshold_y_pos"]])
    layers = [(np.asarray(w), np.asarray(b)) for w, b in zip(policy.weights, policy.biases, strict=True)]
    scale, std, generator = np.array(policy.contract.observation_scale), np.array(NOISE.std), np.random.default_rng(0)

    weight_s, weight_a = np.array(Q), np.array(R)
    bounds = np.array([*BOUNDS[:2], d["plate_length"] / 2, d["plate_length"] / 2, *BOUNDS[4:]])

    def step(theta, ball, theta_dot, ball_dot, queue):
        s = np.concatenate([theta, ball, theta_dot, ball_dot])
        x = scale * (s + std * generator.standard_normal(8))
        for weight, bias in layers:
            x = np.tanh(weight @ x + bias)
        queue.append(np.clip(VOLTS * x, -VOLTS, VOLTS))
        volts = queue.pop(0)
        reward = np.exp(SHARPNESS * (weight_s @ s**2 + weight_a @ volts**2))
        volts = np.where((volts > low) & (volts < high), 0, volts)
        theta_ddot = (drive * volts - B_v * theta_dot) / J_eq
        sin, cos = np.sin(theta + offset), np.cos(theta + offset)
        sin_a = c_kin * sin
        cos_a = np.sqrt(1 - sin_a**2)
        a_dot = c_kin * cos * theta_dot / cos_a
        a_ddot = (c_kin * (cos * theta_ddot - sin * theta_dot**2) + sin_a * a_dot**2) / cos_a
        pull = -d["ball_friction"] * ball_dot + d["ball_mass"] * (ball * a_dot**2 + d["gravity"] * sin_a)
        ball_ddot = (pull * d["ball_radius"] ** 2 - J_b * d["ball_radius"] * a_ddot) / zeta
        theta_dot, ball_dot = theta_dot + env.dt * theta_ddot, ball_dot + env.dt * ball_ddot
        theta, ball = theta + env.dt * theta_dot, ball + env.dt * ball_dot
        failed = (np.abs(np.concatenate([theta, ball, theta_dot, ball_dot])) > bounds).any()
        return (theta, ball, theta_dot, ball_dot), reward, failed

    best = np.inf
    for _ in range(5):
        state = np.zeros(2), np.full(2, 0.05), np.zeros(2), np.zeros(2)
        queue = [np.zeros(2) for _ in range(int(d["action_delay"]))]
        start = time.perf_counter()
        for _ in range(LOOP_STEPS):
            state, _reward, _failed = step(*state, queue)
        best = min(best, time.perf_counter() - start)
    return LOOP_STEPS / best
