"""What a training starts from: a new network, or one that imitates the platform's classical controller.

A task whose reward is flat where it begins, such as a swing-up, gives a new network nothing to follow. The controller
that engineers have for it is a start that anyone can have, and a training gains where the controller is weak.
"""

from collections.abc import Callable
from typing import Literal, cast

from jaxtyping import Array, Key

from spota.policies.architecture import USUAL, Architecture, Network, new_network, remembering
from spota.policies.controllers import own_controller
from spota.policies.imitate import Round, imitate
from spota.policies.network import FNN
from spota.sim.env import Platform

Start = Literal["new", "controller"]
ROUNDS = 6
"""Of the imitation: a swing-up comes to places that its first attempts never saw."""


def first_policy(
    key: Key[Array, ""],
    env: Platform,
    start: Start,
    architecture: Architecture = USUAL,
    watch: Callable[[Round], None] | None = None,
) -> Network:
    """The policy before the first update; `watch` hears of every round of an imitation."""
    if start == "new":
        return new_network(key, env, architecture)
    found = imitate(key, env, own_controller(env), Architecture(architecture.hidden), rounds=ROUNDS, watch=watch)
    return remembering(key, cast(FNN, found.policy), architecture)  # controllers act on what they see alone
