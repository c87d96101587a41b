"""Run all benchmarks, or those named: `python -m benchmarks rollout`."""

from typing import Annotated, Literal

import tyro

from spota import devices

devices.use_all_cores()

from benchmarks import (  # noqa: E402  (jax must know its devices first)
    effort,
    gradient,
    iteration,
    learning,
    references,
    robustness,
    rollout,
    sweep,
    training,
    yardstick,
)


def main(
    names: Annotated[
        tuple[
            Literal[
                "rollout",
                "sweep",
                "training",
                "profile",
                "gradient",
                "effort",
                "learning",
                "references",
                "robustness",
                "yardstick",
            ],
            ...,
        ],
        tyro.conf.Positional,
    ] = (
        "rollout",
        "sweep",
        "profile",
        "training",
    ),
    /,
    limit: float = 300.0,
    platforms: tuple[str, ...] = (),
    seeds: tuple[int, ...] = learning.SEEDS,
) -> None:
    """Speed, as ratios measured in one run; and what is learned.

    Args:
        names: What to run; the last six take ten minutes or more each, so ask for them by name.
        limit: Seconds that Stable-Baselines3 may train in `training`.
        platforms: The rows of `learning`, `effort` and `yardstick`, e.g. --platforms qube; all by default.
        seeds: The seeds of `learning`.
    """
    run = {"rollout": rollout.main, "sweep": sweep.main, "profile": iteration.main}
    run |= {"gradient": gradient.main, "effort": lambda: effort.main(platforms)}
    run |= {
        "references": references.main,
        "robustness": robustness.main,
        "yardstick": lambda: yardstick.main(platforms),
    }
    run |= {"training": lambda: training.main(limit), "learning": lambda: learning.main(platforms, seeds)}
    for name in names:
        run[name]()


tyro.cli(main)
