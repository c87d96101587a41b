"""One training of an experiment, in its run directory: SPOTA until it ends, or one optimizer once."""

from collections.abc import Callable
from pathlib import Path

from spota.certify.algorithm import Result
from spota.certify.events import Listener, listening
from spota.envs import make
from spota.runs import training
from spota.runs.certifying import certify
from spota.runs.config import to_dict
from spota.runs.directory import Run
from spota.runs.plan import Plan
from spota.runs.training import Trained, Training

Warn = Callable[[str], None]


def run_spota(plan: Plan, directory: Path, tell: Listener, warn: Warn) -> Result:
    """SPOTA as planned; what the directory has of it already is not computed again."""
    with Run(directory, plan.table(), warn=warn) as run:
        return certify(plan, make(plan.env), run, tell)


def run_training(settings: Training, directory: Path, tell: Listener, warn: Warn) -> Trained:
    """One training, or what the directory has of it; its doubts are warnings."""
    with Run(directory, to_dict(settings), warn=warn) as run:
        trained = training.train(settings, run, listening(tell))
    for doubt in trained.warnings:
        warn(f"{directory}: {doubt}")
    return trained
