"""Where the time of a PPO iteration goes: rollout, advantages and updates, each compiled alone, and the whole.

The paper's batch: 5 domains × 10 rollouts, with 10 epochs of 10 minibatches.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from rich.table import Table

from benchmarks.timing import best_seconds
from spota.commands.output import console
from spota.envs import make
from spota.policies import FNN, fnn
from spota.polopt.experience import explore
from spota.polopt.ppo import PPO, judged
from spota.polopt.rows import AXIS, all_rows, my_share
from spota.sim.domain import Domains
from spota.sim.env import Env

DOMAINS = 5
PARTS = ("rollout", "advantages", "updates")


def main() -> None:
    ppo = PPO.paper()
    title = f"A PPO iteration of {DOMAINS * ppo.rollouts} rollouts with {ppo.epochs} epochs: ms (share of the parts)"
    table = Table(title=title)
    for column in ("platform", "steps", *PARTS, "whole"):
        table.add_column(column, justify="left" if column == "platform" else "right", no_wrap=True)
    for name in ("cart-pole", "ball-balancer"):
        env = make(name)
        domains, policy = env.domain.sample(jax.random.key(0), DOMAINS), fnn(jax.random.key(1), env)
        found, steps = seconds(ppo, env, domains, policy), DOMAINS * ppo.rollouts * env.max_steps
        apart = sum(found[part] for part in PARTS)
        shares = [f"{1e3 * found[part]:.0f} ({100 * found[part] / apart:.0f} %)" for part in PARTS]
        table.add_row(name, f"{steps:,}", *shares, f"{1e3 * found['whole']:.0f}")
    console.print(table)


def seconds(ppo: PPO, env: Env, domains: Domains, policy: FNN) -> dict[str, float]:
    """The shortest time of each part, and of an iteration as it is compiled in training; all devices at work."""
    k_begin, k_rows, k_learn = jax.random.split(jax.random.key(2), 3)
    state = everywhere(ppo.begin(k_begin, env, policy))
    rows, key = everywhere(all_rows(domains, k_rows, ppo.rollouts)), everywhere(k_learn)
    run = {
        "rollout": on_all_devices(lambda rows, state: explore(env, my_share(rows), state.nets.actor)),
        "advantages": on_all_devices(lambda state, seen: judged(ppo, env, state.nets, seen)),
        "updates": on_all_devices(ppo.fit),
        "whole": on_all_devices(lambda rows, key, state: ppo.learn(env, rows, key, state)),
    }
    seen = run["rollout"](rows, state)
    batch = run["advantages"](state, seen)
    given = {"rollout": (rows, state), "advantages": (state, seen), "updates": (batch, key, state)}
    given["whole"] = rows, key, state
    return {part: best_seconds(lambda part=part: run[part](*given[part])) for part in run}


def everywhere(tree: Any) -> Any:
    """The same on every device: a new first axis over devices."""
    return jax.tree.map(lambda x: jnp.stack([x] * len(jax.devices())), tree)


def on_all_devices(function: Callable) -> Callable:
    """Compile what belongs inside an optimizer's step; inputs and outputs have a first axis over devices."""

    def on_one(*inputs):
        outputs = function(*jax.tree.map(lambda x: x[0], inputs))
        return jax.tree.map(lambda x: x[None], outputs)

    mesh, spec = Mesh(np.array(jax.devices()), (AXIS,)), PartitionSpec(AXIS)
    return jax.jit(jax.shard_map(on_one, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
