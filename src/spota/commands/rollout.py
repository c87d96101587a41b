"""`spota rollout`: how a policy fares on random domains."""

from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import tyro

from spota import policies
from spota.analysis.evaluate import evaluation_keys
from spota.commands.output import print_json, print_table
from spota.commands.sources import OtherTable, Words, domains_of, told, warn_of_clipping, with_contract
from spota.envs import make
from spota.sim.domain import count
from spota.sim.env import Platform
from spota.sim.rollout import Outcome, returns


def rollout(
    env: Annotated[str, tyro.conf.Positional],
    /,
    policy: str = "lqr",
    contract: Words = (),
    domains: int = 500,
    domain: OtherTable = None,
    on: Annotated[Path | None, tyro.conf.arg(metavar="SET.json", help_behavior_hint="(default: none)")] = None,
    rollouts: int = 1,
    seed: int = 0,
    nominal: bool = False,
    noise: bool = True,
    json: bool = False,
) -> None:
    """Run a policy on random domains that it has never seen, and print what it earns.

    Args:
        env: The platform; `spota envs` lists them. One of your own is FILE.py:NAME, which executes that file.
        policy: A controller (pd, lqr, energy), a policy file, an ONNX file, a run directory, or FILE.py:NAME.
        domains: How many random domains.
        on: Use the domains of this file instead; `spota domains` writes one.
        rollouts: Rollouts on each domain.
        seed: The same seed gives the same domains, start states and noise.
        nominal: Run on the nominal domain only, `domains` times.
        noise: Observation noise, as in the paper.
        json: Print one JSON document instead of a table.
    """
    platform = make(env, noise=noise, domain=domain)
    (policy,) = with_contract([policy], contract)
    chosen = told(policies.find(policy, platform), platform)
    if rollouts < 1:
        raise ValueError(f"--rollouts {rollouts}: ask for at least 1 rollout per domain.")
    if nominal and on:
        raise ValueError(f"--nominal and --on {on} contradict each other; leave out one of them.")
    k_domains, k_rollouts = evaluation_keys(seed)
    if on is not None:
        drawn, platform = domains_of(on, platform)
        domains = count(drawn)
    else:
        drawn = platform.domain.nominal(domains) if nominal else platform.domain.sample(k_domains, domains)
    warn_of_clipping(platform, {policy: chosen})
    outcome = returns(platform, chosen, drawn, jax.random.split(k_rollouts, (domains, rollouts)))
    summary = summarise(platform, outcome)
    if json:
        print_json(
            {"env": platform.name, "policy": policy, "seed": seed, "nominal": nominal, "noise": noise, **summary}
        )
        return
    where = f"the nominal domain, {domains} times" if nominal else f"{domains} {'given' if on else 'random'} domains"
    columns = ("policy", "mean return", "std", "10 % quantile", "of at most", "survived")
    row = [f"{summary[k]:.1f}" for k in ("mean", "std", "quantile_10", "max_return")]
    print_table(f"{platform.name} on {where}", columns, [(policy, *row, f"{100 * summary['survived']:.1f} %")])


def summarise(env: Platform, outcome: Outcome) -> dict[str, int | float]:
    """The figures that `spota rollout` shows."""
    values = np.asarray(outcome.returns, np.float64)
    return {
        "n": values.size,
        "mean": float(values.mean()),
        "std": float(values.std()),
        "quantile_10": float(np.quantile(values, 0.1)),
        "survived": float(np.mean(outcome.survived)),
        "max_return": env.max_return,
    }
