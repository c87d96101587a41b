"""Nominal PPO, UDR and EPOpt on the Ball-Balancer with varied ball friction, ball mass and action delay.

The paper's claim: a policy that knows the nominal domain only loses return elsewhere; EPOpt keeps the hard domains.
Evaluated on 500 unseen domains of the full distribution, and of one where these three parameters alone vary.
"""

from dataclasses import replace

import jax
from rich.console import Console
from rich.table import Table

from spota.envs import make
from spota.policies import fnn
from spota.polopt.solve import solve
from spota.runs.config import optimizer
from spota.runs.training import statistics
from spota.sim.domain import Domains
from spota.sim.env import Env
from spota.sim.rollout import returns

VARIED = ("ball_friction", "ball_mass", "action_delay")
ALGORITHMS = ("nominal ppo", "udr", "epopt", "epopt, fresh domains")
DOMAINS, UNSEEN, SEEDS = 10, 500, (0, 1, 2)


def main() -> None:
    env = make("ball-balancer")
    table = Table(title=f"Ball-Balancer, {UNSEEN} unseen domains")
    for column in ("training", "seed", "varied", "mean", "worst 20 %", "survived", "nominal domain"):
        table.add_column(column, justify="right" if column != "training" else "left")
    for name in ALGORITHMS:
        for seed in SEEDS:
            k_train, k_domains, k_rollouts = jax.random.split(jax.random.key(seed), 3)
            policy = _trained(k_train, env, name)
            keys = jax.random.split(k_rollouts, (UNSEEN, 1))
            at_home = statistics(returns(env, policy, env.domain.nominal(UNSEEN), keys))
            for what, domains in _unseen(k_domains, env).items():
                found = statistics(returns(env, policy, domains, keys))
                figures = f"{found['mean']:.0f}", f"{found['worst_20_mean']:.0f}", f"{100 * found['survival']:.1f} %"
                table.add_row(name, str(seed), what, *figures, f"{at_home['mean']:.0f}")
    Console().print(table)


def _trained(key: jax.Array, env: Env, name: str):
    k_domains, k_init, k_solve = jax.random.split(key, 3)
    nominal = name == "nominal ppo"
    domains = env.domain.nominal(DOMAINS) if nominal else env.domain.sample(k_domains, DOMAINS)
    learner = optimizer("ppo" if nominal else name.split(",")[0], env)
    if nominal:
        learner = replace(learner, smoothing=0.0)
    if name == "epopt, fresh domains":  # as UDR has them; EPOpt as such has ten
        learner = replace(learner, fresh_domains=True, smoothing=0.0)
    return solve(learner, k_solve, env, domains, fnn(k_init, env, (16, 16))).policy


def _unseen(key: jax.Array, env: Env) -> dict[str, Domains]:
    drawn = env.domain.sample(key, UNSEEN)
    nominal = env.domain.nominal(UNSEEN)
    return {"all": drawn, "friction, mass, delay": {**nominal, **{name: drawn[name] for name in VARIED}}}
