"""Run all benchmarks, or those named: `python -m benchmarks rollout`."""

from typing import Annotated, Literal

import tyro

from spota.sim import devices

devices.use_all_cores()

from benchmarks import (  # noqa: E402  (jax must know its devices first)
    effort,
    forms,
    gains,
    gradient,
    held_back,
    host,
    imported,
    iteration,
    learning,
    loop,
    machines,
    recordings,
    references,
    robustness,
    rollout,
    rows,
    steady,
    sweep,
    training,
    truth,
    yardstick,
)
from benchmarks import memory as memory_worth  # noqa: E402

Benchmark = Literal[
    "rollout", "sweep", "training", "profile", "gradient", "host", "held-back", "imported", "effort", "forms", "gains",
    "learning", "loop", "cluster", "machines", "memory", "recordings", "references", "robustness", "rows", "yardstick",
    "truth", "steady",
]  # fmt: skip
USUAL: tuple[Benchmark, ...] = ("rollout", "sweep", "profile", "training")


def main(
    names: Annotated[tuple[Benchmark, ...], tyro.conf.Positional] = USUAL,
    /,
    limit: float = 300.0,
    platforms: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (),
    questions: tuple[recordings.Question, ...] = (),
    presets: tuple[str, ...] = (),
    policy: str | None = None,
    runs: tuple[str, ...] = (),
    on: str | None = None,
    domains: int | None = None,
    memory: int | None = None,
    recurrent: int | None = None,
) -> None:
    """Speed, as ratios measured in one run; and what is learned.

    Args:
        names: What to run; `host` needs mujoco and gymnasium. Those after it take ten minutes or more each, so ask for
            them by name.
        limit: Seconds that Stable-Baselines3 may train in `training`.
        platforms: Those of `learning`, `memory`, `recordings`, `effort`, `gains`, `held-back`, `rows`, `yardstick`,
            `truth`, `steady`, e.g. --platforms qube.
        seeds: Of `learning`, `machines`, `memory`, `recordings`, `truth` and `steady`; by default, those of the docs.
        questions: Those of `recordings`; both by default.
        policy: The controller that `steady` assesses; the policy of a run of `truth` by default.
        on: Let workers make the trainings of `learning`, e.g. --on ray.
        domains: Those that `learning` trains on, instead of as many as by default.
        presets: Those of `truth` and `steady`; quick, and for `steady` tuned, too, by default.
        memory: Let all policies of `truth` act on their last N observations and actions.
        recurrent: Give all policies of `truth` so many units that remember.
        runs: The certified runs of `machines`.
    """
    remembered = {name: n for name, n in (("memory", memory), ("recurrent", recurrent)) if n is not None}
    run = {"rollout": rollout.main, "sweep": sweep.main, "profile": iteration.main}
    run |= {"gradient": gradient.main, "host": _host, "imported": imported.main}
    run |= {"effort": lambda: effort.main(platforms), "gains": lambda: gains.main(platforms), "loop": loop.main}
    run |= {"forms": forms.main, "held-back": lambda: held_back.main(platforms)}
    run |= {"references": references.main, "robustness": robustness.main, "rows": lambda: rows.main(platforms)}
    run |= {
        "memory": lambda: memory_worth.main(platforms, seeds),
        "recordings": lambda: recordings.main(platforms, seeds, questions),
    }
    run |= {
        "yardstick": lambda: yardstick.main(platforms),
        "truth": lambda: truth.main(platforms, presets or ("quick",), seeds, remembered),
        "steady": lambda: steady.main(platforms, presets, seeds, policy),
    }
    run |= {"machines": lambda: machines.main(runs, seeds)}
    run |= {"training": lambda: training.main(limit), "cluster": _cluster}
    run |= {"learning": lambda: learning.main(platforms, seeds or learning.SEEDS, on, domains)}
    for name in names:
        run[name]()


def _host() -> None:
    from benchmarks import host_gym  # which needs gymnasium

    host.main()
    host_gym.main()


def _cluster() -> None:
    from benchmarks import cluster  # which needs Ray

    cluster.main()


tyro.cli(main)
