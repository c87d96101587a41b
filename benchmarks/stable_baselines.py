"""Stable-Baselines3 PPO on the NumPy Cart-Pole: reads a job on standard input, writes figures on standard output.

Runs in an environment of its own (`make bench` makes it), so nothing here imports spota.
"""

# pyright: reportMissingImports=false
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from benchmarks.numpy_cart_pole import MAX_STEPS, CartPole, CartPoles

OBSERVATION = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
ACTION = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)


class GymCartPole(gymnasium.Env):
    """One cart-pole; rewards are scaled so that values are of order one."""

    observation_space, action_space, render_mode = OBSERVATION, ACTION, None

    def __init__(self, domain: dict[str, float], reward_scale: float, seed: int):
        """Always on the same domain."""
        self._world, self._scale = CartPole(domain, seed), reward_scale

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Begin an episode."""
        super().reset(seed=seed, options=options)
        self._world.start()
        return self._world.observe(), {}

    def step(self, action: np.ndarray):
        """One time step."""
        earned, failed, late = self._world.step(float(action[0]))
        return self._world.observe(), self._scale * earned, failed, late and not failed, {}


class GymCartPoles(VectorEnv):
    """n cart-poles as one Gymnasium vector environment; an episode that ends begins again in the same step."""

    render_mode, metadata = None, {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, domains: dict[str, np.ndarray], reward_scale: float, seed: int):
        """Each always on its own domain."""
        self._world, self._scale = CartPoles(domains, seed), reward_scale
        self.num_envs = self._world.n
        self.single_observation_space, self.single_action_space = OBSERVATION, ACTION
        self.observation_space = batch_space(OBSERVATION, self.num_envs)
        self.action_space = batch_space(ACTION, self.num_envs)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Begin an episode everywhere."""
        super().reset(seed=seed, options=options)
        self._world.start(np.ones(self.num_envs, bool))
        return self._world.observe(), {}

    def step(self, actions: np.ndarray):
        """One time step everywhere; `final_obs` is the last observation of the episodes that end."""
        earned, failed, late = self._world.step(actions[:, 0])
        over, truncated, info = failed | late, late & ~failed, {}
        if over.any():
            info["final_obs"] = self._world.observe()
            self._world.start(over)
        return self._world.observe(), self._scale * earned, failed, truncated, info


class FromGymnasium(VecEnv):
    """What Stable-Baselines3 calls a vector environment, made of what Gymnasium calls one."""

    def __init__(self, env: GymCartPoles):
        """Nothing is copied."""
        self._env = env  # before the rest, which looks at it
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> np.ndarray:
        """Begin an episode everywhere."""
        return self._env.reset()[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions."""
        self._actions = actions

    def step_wait(self):
        """One time step everywhere."""
        observations, rewards, failed, truncated, info = self._env.step(self._actions)
        infos: list[dict] = [{} for _ in range(self.num_envs)]
        over = failed | truncated
        for i in np.flatnonzero(over):
            infos[i] = {"terminal_observation": info["final_obs"][i], "TimeLimit.truncated": bool(truncated[i])}
        return observations, rewards, over, infos

    def close(self) -> None:
        """Nothing to close."""

    def env_is_wrapped(self, *_: Any, **__: Any) -> list[bool]:
        """No."""
        return [False] * self.num_envs

    def get_attr(self, attr_name: str, *_: Any) -> list[Any]:
        """What all of them share."""
        return [getattr(self._env, attr_name)] * self.num_envs

    def set_attr(self, *_: Any) -> None:
        """There is nothing to set."""
        raise NotImplementedError

    def env_method(self, *_: Any, **__: Any) -> list[Any]:
        """There is nothing to call."""
        raise NotImplementedError


def main() -> None:
    job = json.load(sys.stdin)
    domains = {name: np.array(column) for name, column in job["domains"].items()}
    choose_threads(job, domains)
    speeds = {"vector": speed(side_by_side(job, domains), job), "single": speed(one_by_one(job, domains), job)}
    json.dump({**speeds, "learning": learn(job, domains)}, sys.stdout)


def choose_threads(job: dict, domains: dict[str, np.ndarray]) -> None:
    """One thread or one a core, whichever has the faster iteration: where cores are busy, torch's threads wait."""

    def seconds(threads: int) -> float:
        torch.set_num_threads(threads)
        clock = iterate(ppo(side_by_side(job, domains), job))
        return clock.rollout + clock.updates

    threads = min({1, job["threads"]}, key=seconds)
    torch.set_num_threads(threads)
    print(f"Stable-Baselines3 is fastest with torch threads: {threads} of {job['threads']}", file=sys.stderr)


def side_by_side(job: dict, domains: dict[str, np.ndarray]) -> VecEnv:
    return FromGymnasium(GymCartPoles(domains, 1 - job["gamma"], job["seed"]))


def one_by_one(job: dict, domains: dict[str, np.ndarray]) -> VecEnv:
    def maker(i: int) -> Callable[[], gymnasium.Env]:
        domain = {name: float(column[i]) for name, column in domains.items()}
        return lambda: GymCartPole(domain, 1 - job["gamma"], job["seed"] + i)

    return DummyVecEnv([maker(i) for i in range(domains["gravity"].size)])


def ppo(env: VecEnv, job: dict) -> PPO:
    """The same network, batch and settings as ours."""
    steps = MAX_STEPS * env.num_envs
    return PPO(
        "MlpPolicy",
        env,
        learning_rate=job["learning_rate"],
        n_steps=MAX_STEPS,
        batch_size=steps // job["minibatches"],
        n_epochs=job["epochs"],
        gamma=job["gamma"],
        gae_lambda=job["lam"],
        clip_range=job["clip"],
        vf_coef=1.0,
        max_grad_norm=job["clip_norm"],
        policy_kwargs={
            "net_arch": {"pi": job["hidden"], "vf": job["hidden"]},
            "activation_fn": torch.nn.Tanh,
            "log_std_init": float(np.log(job["initial_std"])),
        },
        seed=job["seed"],
        device="cpu",
    )


class Clock(BaseCallback):
    """The seconds that the rollout and the updates of an iteration take."""

    def _on_rollout_start(self) -> None:
        self._began = time.perf_counter()

    def _on_rollout_end(self) -> None:
        self._collected = time.perf_counter()

    def _on_training_end(self) -> None:
        self.rollout, self.updates = self._collected - self._began, time.perf_counter() - self._collected

    def _on_step(self) -> bool:
        return True


def iterate(model: PPO) -> Clock:
    """One rollout, its advantages, and its updates."""
    clock = Clock()
    model.learn(1, callback=clock, reset_num_timesteps=False)
    return clock


def speed(env: VecEnv, job: dict) -> dict[str, float]:
    """The fastest of several iterations."""
    model = ppo(env, job)
    clock = min((iterate(model) for _ in range(job["repeats"])), key=lambda c: c.rollout + c.updates)
    return {"rollout": clock.rollout, "updates": clock.updates, "steps": MAX_STEPS * env.num_envs}


def learn(job: dict, domains: dict[str, np.ndarray]) -> dict[str, Any]:
    """Train until the goal or the time limit; evaluations do not count as time."""
    model, seconds, iterations, score = ppo(side_by_side(job, domains), job), 0.0, 0, 0.0
    while score < job["goal"] and seconds < job["limit"]:
        clock = iterate(model)
        seconds, iterations = seconds + clock.rollout + clock.updates, iterations + 1
        score = mean_return(model, domains, job["seed"] + iterations)
        print(f"Stable-Baselines3 after {seconds:.0f} s: return {score:.0f}", file=sys.stderr)
    return {"seconds": seconds, "iterations": iterations, "reached": score}


def mean_return(model: PPO, domains: dict[str, np.ndarray], seed: int) -> float:
    """One rollout per row with the mean policy; a failure ends the rewards."""
    world = CartPoles(domains, seed)
    alive, total = np.ones(world.n, bool), np.zeros(world.n)
    for _ in range(MAX_STEPS):
        actions, _ = model.predict(world.observe(), deterministic=True)
        earned, failed, _ = world.step(actions[:, 0])
        total += np.where(alive, earned, 0.0)
        alive &= ~failed
    return float(total.mean())


if __name__ == "__main__":
    main()
