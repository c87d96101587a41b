"""Recorded commands, given again to machines on the host, each of which begins where a recording was."""

import numpy as np
from jaxtyping import Float

from spota.sim.env import Platform
from spota.sim.host import HostDomains, HostEnv
from spota.sim.host_rollout import blaming, opened


def check_start(env: Platform) -> None:
    """Refuse a platform on the host whose machines cannot begin where a recording was."""
    if isinstance(env, HostEnv) and env.lacks is not None:
        raise ValueError(f"{env.name} cannot begin where a recording was; write {env.lacks}. See docs/recordings.md.")


def replay(
    env: HostEnv,
    domains: HostDomains,
    start: Float[np.ndarray, "d n"],
    commands: Float[np.ndarray, "steps a n"],
    every: int = 1,
) -> Float[np.ndarray, "t d n"]:
    """The ideal observation after every so many steps; commands are those that reach the physics.

    That a machine has failed is not looked at where physics go on (`goes_on`); elsewhere it stands still from then on.
    """
    n, width = start.shape[1], env.at_once
    parts = [np.arange(first, min(first + width, n)) for first in range(0, n, width)]
    own = ({name: np.asarray(column, np.float64)[part] for name, column in domains.items()} for part in parts)
    found = [_replay(env, d, start[:, p], commands[..., p], every) for d, p in zip(own, parts, strict=True)]
    return np.concatenate(found, axis=-1)


def _replay(
    env: HostEnv, domains: HostDomains, start: np.ndarray, commands: np.ndarray, every: int
) -> Float[np.ndarray, "t d n"]:
    seen, active = [], np.ones(start.shape[1], bool)
    begin = lambda: env.open_at(domains, np.asarray(start, np.float64))  # noqa: E731
    with opened(env, domains, begin) as machines, blaming(env, domains):
        for t, command in enumerate(commands, start=1):
            _, failed = machines.step(command, active)
            active = active if env.goes_on else active & ~np.asarray(failed, bool)
            if t % every == 0:
                seen.append(np.array(machines.observe(), np.float64))
    return np.stack(seen)
