"""An imitation told as an optimizer's progress, so that whoever shows the one shows the other."""

import jax
import numpy as np

from spota.policies.imitate import Round
from spota.polopt.optimizer import Progress


def imitation_progress(one: Round) -> Progress:
    """A round of an imitation as an optimizer's word, so that whoever shows the one shows the other."""
    returns, survival = one.outcome.returns, one.outcome.survived
    return Progress(
        one.number,
        one.rounds,
        np.asarray(returns.mean())[None],
        np.asarray(survival.mean())[None],
        np.array([one.best]),
        jax.tree.map(lambda x: x[None], one.policy),
        one.steps,
        {"error": np.array([one.error])},
    )
