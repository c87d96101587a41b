"""SPOTA in a run directory: blocks, metrics, the best policy so far and its certificate.

with Run("runs/a", plan.table()) as run:
    result = run_spota(plan, env, run)

The same call in the same directory continues a run that was stopped, and shows one that has ended. Without a directory
nothing is written.
"""

from collections.abc import Mapping
from typing import Any

import jax

from spota import policies
from spota.certify.algorithm import Result, spota
from spota.certify.assessment import Assessment, assess_policy
from spota.certify.certificate import Certificate
from spota.certify.events import Assessed, Event, Listener, Solving
from spota.certify.procedure import Memo, block_directory, compute
from spota.cluster.engine import Engine
from spota.policies import Stored
from spota.policies.controllers import Beside, beside_controller
from spota.runs.directory import Run
from spota.runs.plan import Plan
from spota.runs.spreading import spread_of
from spota.runs.training import UNSEEN, progress_figures
from spota.sim.env import Platform, Policy

FIGURES = (
    "n_c", "n_r", "ucbog", "mean_gap", "effort_margin", "effort_gain", "negative_share", "reference_improvement",
    "n_G", "look", "gap_at_least", "verdict",
)  # fmt: skip
"""What metrics.jsonl and result.json say about an iteration; its certificate says all."""


def run_spota(
    plan: Plan,
    env: Platform,
    run: Run | None = None,
    listener: Listener | None = None,
    engine: Engine | None = None,
) -> Result:
    """Algorithm 1 as planned; `engine` has the workers, if its problems are cut into tasks."""
    spread = spread_of(plan.tasks, engine, run, listener)
    memo, listener = _kept(run, listener)
    result = spota(
        jax.random.key(plan.seed), env, plan.candidate, plan.spota,
        reference_solver=plan.reference, memo=memo, listener=listener, spread=spread,
    )  # fmt: skip
    if run is not None:
        run.write_json(
            "result.json",
            describe_result(plan, result, with_controller(plan, env, result.policy, result.iteration, run)),
        )
    return result


def with_controller(plan: Plan, env: Platform, policy: Policy, iteration: int, run: Run) -> Beside | None:
    """The policy of an iteration beside the platform's controller on unseen domains; None without one."""
    if env.controller is None:
        return None
    key = jax.random.fold_in(jax.random.key(plan.seed), 0)  # iterations count from 1
    block = f"{block_directory(iteration)}/controller"
    found = run.block(block, lambda: beside_controller(key, env, policy, UNSEEN).to_arrays())
    return Beside.from_arrays(found)


def run_assessment(
    plan: Plan,
    env: Platform,
    policy: Policy,
    run: Run | None = None,
    listener: Listener | None = None,
    against: Mapping[str, Policy] | None = None,
    engine: Engine | None = None,
) -> Assessment:
    """A certificate for a policy that exists already, as planned; `against` has the known policies by name."""
    spread = spread_of(plan.tasks, engine, run, listener)
    memo, listener = _kept(run, listener)
    found = assess_policy(
        jax.random.key(plan.seed), env, policy, plan.reference, plan.spota,
        candidate_solver=plan.candidate, against=against, memo=memo, listener=listener, spread=spread,
    )  # fmt: skip
    if run is not None:
        run.write_json("result.json", describe_assessment(plan, found))
    return found


def describe_result(plan: Plan, result: Result, beside: Beside | None) -> dict[str, Any]:
    """For result.json: how the run ended, with the certificate of the policy that it keeps."""
    return {
        "env": plan.env,
        "algo": plan.algo,
        "seed": plan.seed,
        "reason": result.reason,
        "iteration": result.iteration,
        "seconds": result.seconds,
        "history": [figures(c) for c in result.history],
        "certificate": result.certificate.to_dict(),
        "controller": beside.to_dict() if beside else None,
    }


def describe_assessment(plan: Plan, found: Assessment) -> dict[str, Any]:
    """For result.json: the certificate, and how well a network imitated the policy if it had to."""
    imitation = found.imitation
    return {
        "env": plan.env,
        "algo": plan.algo,
        "seed": plan.seed,
        "policy": plan.policy,
        "against": list(plan.against or ()),
        "imitation": None
        if imitation is None
        else {"mean": float(imitation.returns.mean()), "original_mean": float(imitation.original_returns.mean())},
        "seconds": found.seconds,
        "certificate": found.certificate.to_dict(),
    }


def figures(certificate: Certificate) -> dict[str, Any]:
    """A certificate in a few numbers."""
    return {name: getattr(certificate, name) for name in FIGURES}


def _kept(run: Run | None, listener: Listener | None) -> tuple[Memo, Listener | None]:
    """A memo and a listener that keep everything in the directory; `listener` hears of it when it is written."""
    if run is None:
        return compute, listener

    def listen(event: Event) -> None:
        if isinstance(event, Solving):
            run.log(**progress_figures(event.progress))
        elif isinstance(event, Assessed):
            _publish(run, event)
        if listener is not None:
            listener(event)

    return lambda name, block: run.block(name, lambda: _logged(run, block())), listen


def _logged(run: Run, arrays: dict[str, Any]) -> dict[str, Any]:
    """A line of metrics.jsonl for a finished block; it is inside the block, so that it is there once."""
    certificate = figures(Certificate.from_json(str(arrays["json"]))) if "json" in arrays else {}
    run.log(finished=True, seconds=round(float(arrays["seconds"]), 3), **certificate)
    return arrays


def _publish(run: Run, event: Assessed) -> None:
    """What someone who looks into the directory after an iteration finds there."""
    run.write_json(f"{block_directory(event.iteration)}/certificate.json", event.certificate.to_dict())
    if isinstance(event.policy, Stored):
        with run.writing("policy.npz") as path:
            policies.save(event.policy, path)
    run.write_json("certificate.json", event.best.to_dict())
