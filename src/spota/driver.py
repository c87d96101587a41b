"""The one way through: a plan in a run directory, with everything that it leaves there, its page included.

done = drive(plan, env, Path("runs/a"))
done.result.certificate, done.page

`spota.train`, the commands and the experiments all come through here. The same call in the same directory continues a
run that was stopped, and shows one that has ended. Without a directory nothing is written.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from spota.certify.algorithm import Result
from spota.certify.assessment import Assessment
from spota.certify.events import Assessed, Event, Listener, Told, listening, to_all
from spota.cluster.engine import Engine
from spota.policies.controllers import Beside
from spota.runs import certifying, training
from spota.runs.config import to_dict
from spota.runs.cost import estimated
from spota.runs.directory import Run
from spota.runs.plan import Plan
from spota.runs.platforms import keep_table
from spota.runs.training import Trained, Training
from spota.sim.env import Platform, Policy
from spota.sim.host import HostEnv
from spota.sim.soundness import check_soundness

PAGE = "report.html"
SILENT: AbstractContextManager[None] = nullcontext()
"""A display that shows nothing."""

Warn = Callable[[str], None]
Display = AbstractContextManager[Listener | None]
"""Open while something is computed, of which its listener hears."""
Tell = Callable[[str, float], None]
"""Hears what the page waits for, and which share of it is done."""
PageBar = AbstractContextManager[Tell | None]
"""Open while the last page is written, which takes a minute if it is to have everything."""


@dataclass(frozen=True)
class Done:
    """What a run of SPOTA ended with."""

    result: Result
    beside: Beside | None
    """The platform's own controller on unseen domains; None without a directory, or if there is no controller."""
    page: Path | None
    """None if nobody wanted it, or if it could not be written."""


@dataclass(frozen=True)
class Assessing:
    """What an assessment ended with."""

    assessment: Assessment
    page: Path | None


def drive(
    plan: Plan,
    env: Platform,
    directory: Path | None = None,
    display: Display = SILENT,
    *,
    engine: Engine | None = None,
    page: bool = True,
    warn: Warn = warnings.warn,
    page_bar: PageBar = SILENT,
) -> Done:
    """Algorithm 1 as planned; `engine` has the workers of a plan with tasks."""
    with _opened(directory, plan, env, warn) as run, display as listener:
        _prepare(plan, env, directory, listener)
        result = certifying.run_spota(plan, env, run, _with_pages(run, env, listener, page, warn), engine)
        beside = certifying.with_controller(plan, env, result.policy, result.iteration, run) if run else None
    return Done(result, beside, _last_page(directory, plan, env, page, warn, page_bar))


def drive_assessment(
    plan: Plan,
    env: Platform,
    policy: Policy,
    directory: Path | None = None,
    display: Display = SILENT,
    *,
    against: Mapping[str, Policy] | None = None,
    engine: Engine | None = None,
    page: bool = True,
    warn: Warn = warnings.warn,
    page_bar: PageBar = SILENT,
) -> Assessing:
    """An assessment of a policy that exists already, as planned; `against` has the known policies by name."""
    with _opened(directory, plan, env, warn) as run, display as listener:
        _prepare(plan, env, directory, listener)
        heard = _with_pages(run, env, listener, page, warn)
        assessment = certifying.run_assessment(plan, env, policy, run, heard, against, engine)
    return Assessing(assessment, _last_page(directory, plan, env, page, warn, page_bar))


def drive_training(
    settings: Training, directory: Path, display: Display = SILENT, *, warn: Warn = warnings.warn
) -> Trained:
    """One training with one optimizer, which has no certificate."""
    with Run(directory, to_dict(settings), warn=warn) as run, display as listener:
        return training.train(settings, run, listening(listener) if listener else None)


def write_page(directory: Path, env: Platform, full: bool, warn: Warn, tell: Tell | None = None) -> Path | None:
    """Write the page of a run; one that cannot be written costs nobody the run, but is told."""
    from spota.show import pages  # slow to import

    try:
        return pages.write(directory, env, full=full, tell=tell)
    except (ValueError, OSError) as error:
        reason, page = str(error), str(directory / PAGE)
        warn(reason if reason.startswith(page) else f"{page} was not written: {reason}")
        return None


def _prepare(plan: Plan, env: Platform, directory: Path | None, listener: Listener | None) -> None:
    """Before a run begins on a simulator that is not ours: refuse a wrong one, and say what it will cost."""
    if not isinstance(env, HostEnv) or (directory is not None and (directory / "result.json").exists()):
        return
    if os.environ.get("SPOTA_CHECK") != "off":
        check_soundness(env)
    if listener is not None:
        listener(Told(str(estimated(plan, env))))


def _opened(directory: Path | None, plan: Plan, env: Platform, warn: Warn) -> AbstractContextManager[Run | None]:
    """The run directory, which keeps the table if it is not the platform's own."""
    if directory is None:
        return nullcontext()
    run = Run(directory, plan.table(), warn=warn)
    keep_table(directory, plan, env)
    return run


def _with_pages(run: Run | None, env: Platform, listener: Listener | None, page: bool, warn: Warn) -> Listener | None:
    """The listener; and after every iteration a page, without what takes a while."""
    if run is None or not page:
        return listener

    def write(event: Event) -> None:
        if isinstance(event, Assessed):
            write_page(run.directory, env, False, warn)

    return to_all(listener, write)


def _last_page(
    directory: Path | None, plan: Plan, env: Platform, page: bool, warn: Warn, page_bar: PageBar
) -> Path | None:
    """The page of the finished run; a quick one stays without what takes a while."""
    if directory is None or not page:
        return None
    with page_bar as tell:
        return write_page(directory, env, plan.preset != "quick", warn, tell)
