"""Run all benchmarks, or those named: `python -m benchmarks rollout`."""

from typing import Annotated, Literal

import tyro

from spota import devices

devices.use_all_cores()

from benchmarks import iteration, learning, references, robustness, rollout, sweep, training, yardstick  # noqa: E402  (jax must know its devices first)


def main(
    names: Annotated[
        tuple[
            Literal["rollout", "sweep", "training", "profile", "learning", "references", "robustness", "yardstick"],
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
) -> None:
    """Speed, as ratios measured in one run.

    Args:
        names: What to run; the last four take ten minutes or more each, so ask for them by name.
        limit: Seconds that Stable-Baselines3 may train in `training`.
    """
    run = {"rollout": rollout.main, "sweep": sweep.main, "profile": iteration.main, "learning": learning.main}
    run |= {"references": references.main, "robustness": robustness.main, "yardstick": yardstick.main}
    for name in names:
        training.main(limit) if name == "training" else run[name]()


tyro.cli(main)
