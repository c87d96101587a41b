"""`spota domains`: random domains in a file, for everyone to compare on."""

from pathlib import Path
from typing import Annotated

import tyro

from spota.analysis import evaluate
from spota.commands.output import command, console, print_json
from spota.commands.sources import OtherTable
from spota.envs import make
from spota.sim import domain_set


def domains(
    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")],
    /,
    n: Annotated[int, tyro.conf.arg(name="number", aliases=["-n"])] = 500,
    out: Annotated[
        Path | None,
        tyro.conf.arg(aliases=["-o"], metavar="FILE.json", help_behavior_hint="(default: runs/ENV-domains-SEED.json)"),
    ] = None,
    domain: OtherTable = None,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Draw random domains and keep them in a file, so that people compare policies on the very same ones.

    `spota rollout`, `sweep`, `compare` and `explain` take the file with --on. Without it, `spota compare` with the same
    seed and number uses the same domains. No training with that seed has seen them.

    Args:
        env: The platform; `spota envs` lists them. One of your own is FILE.py:NAME, which executes that file.
        n: How many domains.
        out: The file to write.
        seed: The same seed gives the same domains, and more of them continue the same row.
        json: Print one JSON document that names the file.
    """
    platform = make(env, domain=domain)
    k_domains, _ = evaluate.evaluation_keys(seed)
    target = out or Path("runs") / f"{platform.name}-domains-{seed}.json"
    written = domain_set.draw(k_domains, platform, n, seed).save(target)
    if json:
        print_json(
            {"env": platform.name, "n": n, "seed": seed, "parameters": list(platform.domain), "file": str(written)}
        )
        return
    console.print(
        f"Wrote {n} domains of {platform.name} to {written}; use them with: "
        f"{command('compare', 'RUN', '--on', written)}",
        soft_wrap=True,
        markup=False,
    )
