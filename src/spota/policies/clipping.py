"""How often a policy asks for more than its actuators give: what lies beyond their range is clipped."""

import jax
import numpy as np

from spota.policies.architecture import Network
from spota.sim import rollout
from spota.sim.env import Platform, Policy, Signal
from spota.text import percent

OFTEN = 0.2
"""The share of clipped steps that is worth a warning; classical controllers stay far below it."""
TRIED = 16
"""Random domains on which a policy is tried, one rollout each."""


def clipping_warning(env: Platform, policy: Policy, name: str = "the policy") -> str | None:
    """A warning about a policy that leaves [−1, 1] often; None for others, and for networks, which cannot."""
    if isinstance(policy, Network):
        return None
    share, largest = _beyond(env, policy)
    if share < OFTEN:
        return None
    ranges = ", ".join(f"{s.name} from {s.low:g} to {s.high:g} {s.unit}" for s in env.actions)
    return (
        f"In {percent(share)} of the steps an action of {name} lies outside [−1, 1], up to {largest:.3g}, and is "
        f"clipped. An action of −1 or 1 stands for an end of the actuator's range ({ranges}). If yours are in physical "
        f"units, scale them: action = {_scaling(env.actions[0])}."
    )


def _beyond(env: Platform, policy: Policy) -> tuple[float, float]:
    """The share of steps with an action outside [−1, 1], and the largest action."""
    k_domains, k_rollouts = jax.random.split(jax.random.key(0))
    tried = rollout.collect(env, policy, env.domain.sample(k_domains, TRIED), jax.random.split(k_rollouts, TRIED))
    size = np.abs(np.asarray(tried.actions)).max(axis=1)[np.asarray(tried.alive)]
    return float(np.mean(size > 1 + 1e-4)), float(size.max())


def _scaling(signal: Signal) -> str:
    middle, half = (signal.low + signal.high) / 2, (signal.high - signal.low) / 2
    return f"({signal.name} − {middle:g}) / {half:g}" if middle else f"{signal.name} / {half:g}"
