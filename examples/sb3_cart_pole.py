"""Stable-Baselines3's PPO on Gymnasium's CartPole-v1, exported to ONNX: what "Bring your own policy" begins with.

It needs torch and Stable-Baselines3, which spota does not: `make bench` has them in .bench-venv.

    .bench-venv/bin/python examples/sb3_cart_pole.py sb3_cart_pole.onnx
"""

# pyright: reportMissingImports=false
import sys
import time

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import BasePolicy


class Exported(torch.nn.Module):
    """The snippet of SB3's documentation."""

    def __init__(self, policy: BasePolicy):
        """A policy of SB3."""
        super().__init__()
        self.policy = policy

    def forward(self, observation: torch.Tensor):
        """Action, value and log probability, without exploration."""
        return self.policy(observation, deterministic=True)


def export(policy: BasePolicy, inputs: int, path: str) -> None:
    """Write ONNX; the newer exporter (dynamo=True, torch's default) fails on torch.distributions."""
    example = torch.zeros(1, inputs)
    torch.onnx.export(Exported(policy), (example,), path, opset_version=17, input_names=["input"], dynamo=False)


def main() -> None:
    """Train as a user of SB3 would, and export."""
    began = time.perf_counter()
    model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
    model.learn(total_timesteps=100_000)
    export(model.policy, 4, sys.argv[1])
    print(f"trained and exported in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
