"""How often `applies` is right, and whether posteriors of a fit tell the truth, on machines that are known.

python -m benchmarks recordings
python -m benchmarks recordings --seeds 7
python -m benchmarks recordings --seeds 171 --questions fit

One line a machine, and one that sums up each question. Every machine is a block in runs/recordings, so that the same
command goes on after a stop; whoever changes the code removes the directory first.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from spota.envs import make
from spota.experiments.recorded_machines import Asked, Ranked, asked, calibration, ranked
from spota.runs.directory import Run
from spota.sim.env import Env

HANGING = {"cart-pole": (0.0, -3.14159265, 0.0, 0.0), "qube": (0.0, -3.14159265, 0.0, 0.0)}
PARAMETER = "pole_length"
DIRECTORY = Path("runs/recordings")
Question = Literal["applies", "fit"]
QUESTIONS: tuple[Question, ...] = ("applies", "fit")


def main(
    platforms: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (),
    questions: tuple[Question, ...] = (),
    machines: int = 100,
) -> None:
    for name in platforms or ("cart-pole",):
        for seed in seeds or (1,):
            config = {"env": name, "seed": seed, "machines": machines}
            with Run(DIRECTORY / f"{name}-{seed}", config) as run:
                keys = dict(zip(QUESTIONS, jax.random.split(jax.random.key(seed)), strict=True))
                for question in questions or QUESTIONS:
                    ask = {"applies": _applies, "fit": _fit}[question]
                    for document in ask(keys[question], name, machines, run):
                        sys.stdout.write(json.dumps({"env": name, "seed": seed, **document}) + "\n")
                        sys.stdout.flush()


def _env(name: str) -> Env:
    env = make(name)
    assert isinstance(env, Env)
    return env


def _applies(key: jax.Array, name: str, machines: int, run: Run) -> Iterator[dict[str, Any]]:
    """One line for each machine as soon as it is done, and one for all."""
    answers: list[Asked] = []
    for answer in asked(key, _env(name), HANGING[name], PARAMETER, machines, run):
        answers.append(answer)
        yield {"applies": vars(answer)}
    yield {"refused": _refused(answers)}


def _fit(key: jax.Array, name: str, machines: int, run: Run) -> Iterator[dict[str, Any]]:
    """One line for each machine as soon as it is done, and one for all."""
    fits: list[Ranked] = []
    for one in ranked(key, _env(name), HANGING[name], machines, run):
        fits.append(one)
        yield {
            "fit": {key: np.round(x, 4).tolist() if isinstance(x, np.ndarray) else x for key, x in vars(one).items()}
        }
    yield {"calibration": calibration(fits), "cpu_seconds": round(sum(one.cpu_seconds for one in fits), 1)}


def _refused(answers: list[Asked]) -> dict[str, str]:
    kinds = {kind: [a.answer for a in answers if a.kind == kind] for kind in dict.fromkeys(a.kind for a in answers)}
    return {kind: f"{told.count('not covered')} of {len(told)}" for kind, told in kinds.items()}
