"""Make the ONNX files of the tests: small networks as Stable-Baselines3 and rsl_rl export them.

It needs torch, Stable-Baselines3, onnx and onnxscript, in .bench-venv (`make bench` makes it):

    .bench-venv/bin/python tests/data/make_onnx.py tests/data
"""

# pyright: reportMissingImports=false
import sys
from itertools import pairwise
from pathlib import Path

import onnx
import torch
from stable_baselines3 import PPO, SAC

sys.path.append(str(Path(__file__).parent.parent.parent / "examples"))
from sb3_cart_pole import export


class Deterministic(torch.nn.Module):
    """SAC's actor, as SB3's documentation exports it: tanh of the mean, in [−1, 1]."""

    def __init__(self, actor: torch.nn.Module):
        super().__init__()
        self.actor = actor

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.actor(observation, deterministic=True)


class Normalised(torch.nn.Module):
    """rsl_rl's actor: an empirical normaliser, then Linear and ELU; names and exporter as in its export to ONNX."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.register_buffer("mean", torch.linspace(-0.3, 0.4, inputs)[None])
        self.register_buffer("std", torch.linspace(0.5, 2.0, inputs)[None])
        sizes = (inputs, 24, 16)
        hidden = [m for i, o in pairwise(sizes) for m in (torch.nn.Linear(i, o), torch.nn.ELU())]
        self.net = torch.nn.Sequential(*hidden, torch.nn.Linear(sizes[-1], outputs))

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.net((observation - self.mean) / (self.std + 1e-2))


def main(into: Path) -> None:
    torch.manual_seed(0)
    small = {"policy_kwargs": {"net_arch": [16, 16]}, "seed": 0, "device": "cpu"}
    ppo = PPO("MlpPolicy", "Pendulum-v1", **small).learn(4096)
    export(ppo.policy, 3, str(into / "sb3_ppo.onnx"))
    sac = SAC("MlpPolicy", "Pendulum-v1", **small, learning_starts=100).learn(500)
    names = {"opset_version": 17, "input_names": ["input"], "dynamo": False}
    torch.onnx.export(Deterministic(sac.policy.actor), (torch.zeros(1, 3),), str(into / "sb3_sac.onnx"), **names)
    names = {"opset_version": 18, "input_names": ["obs"], "output_names": ["actions"]}
    for name, how in {"rsl_rl": {"dynamo": False}, "rsl_rl_dynamo": {"dynamo": True, "external_data": False}}.items():
        torch.manual_seed(1)
        torch.onnx.export(Normalised(3, 1).eval(), (torch.zeros(1, 3),), str(into / f"{name}.onnx"), **names, **how)
    without_paths(into / "rsl_rl_dynamo.onnx")


def without_paths(path: Path) -> None:
    """The newer exporter writes where the code lay into every node; that is nobody's business."""
    model = onnx.load(path)
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.initializer, model.graph, model):
        del part.metadata_props[:]
    onnx.save(model, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
