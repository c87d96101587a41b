"""What a run on a machine has earned, as far as measurements tell, beside the two parts of a certificate."""

import functools
from dataclasses import dataclass

import numpy as np

from spota.certify.certificate import Certificate
from spota.deploy.judgement import Judgement
from spota.deploy.session import Ended
from spota.deploy.supervisor import Cause
from spota.sim.env import Platform
from spota.text import figure, percent

DRAWS = 2000


@dataclass(frozen=True)
class Earnings:
    """Undiscounted returns of one run; None where they cannot be measured, or were not earned."""

    steps: int
    whole: float | None
    """Of the whole run, from measurements."""
    episode: tuple[float, float] | None
    """Between which the true return of the run's first episode lies; None if it ended before, without a failure."""
    failed: bool
    """Whether it ended in danger: a failure earns nothing more."""


def earnings(ended: Ended, env: Platform) -> Earnings:
    """Sum the rewards of what was measured."""
    rows, failed = ended.ticks.answered, ended.cause is Cause.DANGER
    rewards = Judgement(env, ended.known).rewards(ended.ticks.observation[rows], ended.ticks.sent[rows])
    if rewards is None or not rows.size:
        return Earnings(rows.size, None, None, failed)
    first = float(rewards[: env.max_steps].sum())
    whole = failed or rows.size >= env.max_steps
    return Earnings(rows.size, float(rewards.sum()), (first, first / seen_share(env)) if whole else None, failed)


@functools.cache
def seen_share(env: Platform) -> float:
    """The share of its reward that perfect rest at zero would measure, with the platform's sensor noise.

    Where a reward falls like exp(−e²) with the error e, independent noise hides at most as much of it elsewhere.
    """
    noise = env.effects.noise
    if noise is None:
        return 1.0
    seen = np.random.default_rng(0).normal(size=(DRAWS, len(noise.std))) * noise.std
    judgement, rest = Judgement(env), np.zeros((DRAWS, len(env.actions)))
    measured, true = judgement.rewards(seen, rest), judgement.rewards(0 * seen, rest)
    if measured is None or true is None or not 0 < measured.mean() <= true[0]:
        return 1.0
    return float(measured.mean() / true[0])


def about_return(earned: Earnings, env: Platform, certificate: Certificate | None) -> list[str]:
    """In sentences."""
    if not earned.steps:
        return []
    if earned.whole is None:
        return ["The return cannot be measured on this platform."]
    said = [f"Earned {figure(earned.whole)} in {earned.steps} steps, from measurements."]
    share = seen_share(env)
    if share < 1:
        said.append(
            f"With sensors as noisy as the platform's, perfect rest measures {percent(share)} of its true return; "
            "certificates count true states."
        )
    return said if certificate is None else [*said, *_beside(earned, env, certificate)]


def _beside(earned: Earnings, env: Platform, certificate: Certificate) -> list[str]:
    """The run beside both parts of the certificate."""
    own = certificate.performance
    loss = f"Its references earn at most {figure(certificate.ucbog)} more, on average over machines."
    if own is None or not own.in_range:
        return [f"The certificate has no bound on the return. {loss}"]
    promise = (
        f"The certificate promises at least {figure(own.mean_lower)} in {env.max_steps} steps on average over "
        f"machines, and {figure(own.worst_lower)} in the worst {percent(own.worst_share)}."
    )
    if earned.episode is None:
        return [f"{promise} This run was shorter, and says nothing about that.", loss]
    low, high = earned.episode
    return [
        f"{promise} The first {env.max_steps} steps of this run earned {figure(low)} as measured, and at most about "
        f"{figure(high)} without sensor noise: {_where(low, high, own.mean_lower, own.worst_lower)} One run on one "
        "machine proves neither.",
        loss,
    ]


def _where(low: float, high: float, mean: float, worst: float) -> str:
    if low >= mean:
        return "above the average's bound."
    if high >= mean:
        return "whether that is above the average's bound, the measurements cannot tell."
    return f"below the average's bound, and {'below' if high < worst else 'not below'} that of the worst machines."
