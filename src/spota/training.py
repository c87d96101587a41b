"""Train one policy on one set of domains, and see how it fares on domains that it has never met."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spota import config, policies
from spota.blocks import Arrays, from_arrays, to_arrays
from spota.domain import Domains
from spota.envs import make
from spota.policies import FNN, fnn
from spota.polopt.rows import Score
from spota.polopt.solve import Progress, Report, Solution, solve
from spota.rollout import Outcome, returns
from spota.run import Run
from spota.types import Env

UNSEEN = 500
"""Random domains of the closing evaluation, one rollout each."""
WORST = 0.2
"""The share of the returns whose mean says how bad it gets."""


@dataclass(frozen=True)
class Training:
    """Everything that decides the result; the run directory keeps it in config.toml."""

    env: str
    """The platform."""
    algo: str = "default"
    """How to train: a name of `config.ALGORITHMS`."""
    preset: config.Preset = "tuned"
    """Where the optimizer's settings start from."""
    domains: int = 10
    """Training domains."""
    nominal: bool = False
    """Whether all of them are the nominal domain."""
    seed: int = 0
    """The same seed gives the same domains, start states, noise and exploration."""
    hidden: tuple[int, ...] = (16, 16)
    """Sizes of the network's hidden layers."""
    optimizer: Any = None
    """The optimizer with all its settings."""

    def __post_init__(self):
        """Refuse settings that cannot work."""
        if self.domains < 1:
            raise ValueError(f"domains = {self.domains}: train on at least 1 domain.")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed = {self.seed}: a seed is a whole number from 0 to {2**32 - 1}.")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden = {list(self.hidden)}: give the sizes of the hidden layers, e.g. 16 16.")
        if self.nominal and getattr(self.optimizer, "fresh_domains", False):
            raise ValueError(
                f"{self.algo} draws fresh random domains, so it cannot train on the nominal one; "
                "leave out --nominal, or write --algo ppo."
            )


def resolve(file: Path | None, flags: Mapping[str, Any]) -> Training:
    """The settings from defaults and preset, then a TOML file, then flags (None: not given)."""
    given = {name: value for name, value in flags.items() if value is not None}
    told = config.read_toml(file) if file else {}
    inner, inner_told = given.pop("optimizer", {}), told.pop("optimizer", {})
    if not isinstance(inner_told, Mapping):
        raise ValueError(f"{file}: optimizer = {inner_told!r}: write a table [optimizer] with its settings.")
    head = config.build(Training, config.merge({**told}, given), str(file) if file else "the command line")
    solver = config.optimizer(head.algo, make(head.env), head.preset)
    if head.nominal and hasattr(solver, "smoothing"):
        solver = replace(solver, smoothing=0.0)  # around the nominal domain is not on it
    solver = config.override(solver, inner_told, f"{file} [optimizer]")
    solver = config.override(solver, inner, "--set")
    return Training(**{**vars(head), "optimizer": solver})


@dataclass(frozen=True)
class Trained:
    """A trained policy and what it earns."""

    settings: Training
    env: Env
    solution: Solution
    unseen: Outcome
    seconds: float

    @property
    def warnings(self) -> list[str]:
        """What a user should know before trusting the policy."""
        told = []
        if bool(self.solution.diverged):
            told.append(
                "The training diverged: an update was not finite and was left out. The best policy before is kept; "
                "try a smaller learning_rate."
            )
        if float(self.solution.score.returns) <= float(self.solution.start.returns):
            told.append("The training found nothing better than its start; the policy is the untrained one.")
        return told

    def to_dict(self) -> dict[str, Any]:
        """For result.json."""
        s = self.settings
        rollouts, _ = s.optimizer.rollouts_per_domain(s.domains)
        updates = s.optimizer.iterations * s.domains * rollouts * self.env.max_steps
        return {
            "env": s.env,
            "algo": s.algo,
            "seed": s.seed,
            "domains": s.domains,
            "nominal": s.nominal,
            "max_return": self.env.max_return,
            "own_domains": _figures(self.solution.score),
            "start": _figures(self.solution.start),
            "unseen_domains": statistics(self.unseen),
            "diverged": bool(self.solution.diverged),
            "iterations": s.optimizer.iterations,
            "environment_steps": updates,
            "seconds": self.seconds,
            "warnings": self.warnings,
        }

    def __str__(self) -> str:
        """In words."""
        s, own, start, far = self.settings, self.solution.score, self.solution.start, statistics(self.unseen)
        where = "the nominal domain" if s.nominal else f"{s.domains} random domain{'s' if s.domains > 1 else ''}"
        return (
            f"Trained {s.env} with {s.algo} on {where} in {self.seconds:.0f} s.\n"
            f"On its own domains the mean return went from {float(start.returns):.1f} to {float(own.returns):.1f} "
            f"(of at most {self.env.max_return:g}); {100 * float(own.survival):.1f} % of the rollouts survived.\n"
            f"On {far['n']} random domains that it has never seen it is {far['mean']:.1f} ± {far['std']:.1f}, "
            f"{far['worst_20_mean']:.1f} on the worst fifth; {100 * far['survival']:.1f} % survived."
        )


def train(settings: Training, run: Run, report: Report | None = None) -> Trained:
    """Solve the problem, evaluate the policy on unseen domains, and leave both in the run directory."""
    env = make(settings.env)
    k_domains, k_init, k_solve, k_unseen, k_rollouts = jax.random.split(jax.random.key(settings.seed), 5)
    n = settings.domains
    domains = env.domain.nominal(n) if settings.nominal else env.domain.sample(k_domains, n)
    init = fnn(k_init, env, settings.hidden)
    found = run.block("solution", lambda: _solve(settings, env, k_solve, domains, init, run, report))
    solution = from_arrays(found, _like(init))
    unseen = returns(
        env, solution.policy, env.domain.sample(k_unseen, UNSEEN), jax.random.split(k_rollouts, (UNSEEN, 1))
    )
    trained = Trained(settings, env, solution, unseen, float(found["seconds"]))
    with run.writing("policy.npz") as path:
        policies.save(solution.policy, path)
    run.write_json("result.json", trained.to_dict())
    return trained


def progress_figures(progress: Progress) -> dict[str, Any]:
    """An optimizer's word for metrics.jsonl; means over its problems, if it solves several."""
    return {
        "iteration": progress.iteration,
        "returns": float(progress.returns.mean()),
        "survival": float(progress.survival.mean()),
        "best": float(progress.best.mean()),
        "steps": progress.steps,
        **{name: float(values.mean()) for name, values in progress.metrics.items()},
    }


def statistics(outcome: Outcome) -> dict[str, Any]:
    """Mean and standard deviation of the returns over domains, the mean of the worst fifth, the share that survived."""
    values = np.asarray(outcome.returns, np.float64).mean(axis=1)
    return {
        "n": values.size,
        "mean": float(values.mean()),
        "std": float(values.std()),
        "worst_20_mean": worst_mean(values),
        "survival": float(np.mean(outcome.survived)),
    }


def worst_mean(values: np.ndarray, share: float = WORST) -> float:
    """The mean of the lowest share of the values, one of them at least."""
    lowest = max(1, round(share * values.size))
    return float(np.sort(values)[:lowest].mean())


def _solve(
    settings: Training, env: Env, key: Any, domains: Domains, init: FNN, run: Run, report: Report | None
) -> Arrays:
    began, best = time.perf_counter(), None

    def tell(progress: Progress):
        nonlocal best
        best = progress.policy
        run.log(**progress_figures(progress), seconds=round(time.perf_counter() - began, 3))
        if report is not None:
            report(progress)

    try:
        solution = solve(settings.optimizer, key, env, domains, init, tell)
    except KeyboardInterrupt:
        if best is not None:
            with run.writing("policy.npz") as path:
                policies.save(jax.tree.map(lambda x: x[0], best), path)
        raise
    return {**to_arrays(solution), "seconds": np.array(time.perf_counter() - began)}


def _like(init: FNN) -> Solution:
    """The structure of a solution that starts from that policy; its values do not matter."""
    zero = jnp.zeros(())
    score, curve = Score(zero, zero), jnp.zeros(1)
    return Solution(init, score, score, curve, curve, curve, jnp.array(False))


def _figures(score: Score) -> dict[str, float]:
    return {"mean": float(score.returns), "survival": float(score.survival)}
