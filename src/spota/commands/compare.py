"""`spota compare`: policies side by side on the same unseen domains."""

from pathlib import Path
from typing import Annotated

import tyro

from spota.analysis import evaluate, standings
from spota.analysis.standings import Standings
from spota.commands.output import command, console, print_json, print_table
from spota.commands.progress import bar
from spota.commands.sources import Named, OtherTable, Words, contestants, domains_of, warn_of_clipping, with_contract
from spota.files.atomic import plain, write_json
from spota.sim.domain import count


def compare(
    policies: Named,
    /,
    env: Annotated[
        str | None, tyro.conf.arg(metavar="ENV", help_behavior_hint="(default: what the policy files were made for)")
    ] = None,
    contract: Words = (),
    domains: int = 500,
    domain: OtherTable = None,
    on: Annotated[Path | None, tyro.conf.arg(metavar="SET.json", help_behavior_hint="(default: none)")] = None,
    rollouts: int = 1,
    noise: bool = True,
    seed: int = 0,
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/compare-ENV)")] = None,
    json: bool = False,
) -> None:
    """Compare policies on the same unseen domains, with the same start states and noise.

    Shows mean, standard deviation, the mean of the worst fifth and the 10 % quantile over the domains, the share of
    rollouts that survived, and by how much the first policy is better or worse than each of the others, with 95 %
    intervals (bootstrap-t over domains).

    Example: spota compare runs/spota runs/epopt pd --on set.json

    Args:
        policies: Run directories, policy files, ONNX files, controllers or FILE.py:NAME (executed); one platform.
        env: The platform, if no policy knows it; FILE.py:NAME is one of your own.
        domains: How many unseen domains are drawn.
        on: Use the domains of this file instead; `spota domains` writes one.
        rollouts: Rollouts on each domain.
        noise: Observation noise, as in the paper's training.
        seed: The same seed gives the same domains, start states and noise.
        out: Where comparison.json and the page comparison.html go.
        json: Print one JSON document instead of a table.
    """
    from spota.show.pages import write_comparison  # slow to import

    policies = with_contract(policies, contract)
    platform, chosen = contestants(policies, env, noise, domain)
    k_domains, k_rollouts = evaluate.evaluation_keys(seed)
    if on is None:
        drawn, where = platform.domain.sample(k_domains, domains), f"{domains} unseen domains (seed {seed})"
    else:
        drawn, platform = domains_of(on, platform)
        where = f"the {count(drawn)} domains of {on}"
    warn_of_clipping(platform, dict(zip(policies, chosen.values(), strict=True)))
    with bar("rollouts") as show:
        result = standings.compare(
            k_rollouts, platform, chosen, drawn, rollouts, tell=lambda share: show("rollouts", share)
        )
    document = plain({"seed": seed, "on": on, "sources": dict(zip(chosen, policies, strict=True)), **result.to_dict()})
    file = write_json((out or Path("runs") / f"compare-{platform.name}") / "comparison.json", document)
    again = command("compare", *policies, "--seed", str(seed), *([] if on is None else ["--on", on]))
    page = write_comparison(result, file.with_suffix(".html"), about=where, command=again)
    if json:
        print_json({**document, "files": [str(file), str(page)]})
        return
    _print(result, where, len(policies))
    console.print(f"Wrote {file} and {page}; open the page in a browser.", soft_wrap=True)


def _print(result: Standings, where: str, policies: int) -> None:
    columns = ("policy", "mean return", "std", "worst 20 %", "10 % quantile", "survived")
    figures = ("mean", "std", "worst_20_mean", "quantile_10")
    rows = [
        (name, *(f"{row[what]:.1f}" for what in figures), f"{100 * row['survival']:.1f} %")
        for name, row in result.rows.items()
    ]
    print_table(f"{result.env} on {where}; at most {result.max_return:g}", columns, rows)
    for difference in result.differences[: policies - 1]:  # those of the first policy
        console.print(str(difference), soft_wrap=True, markup=False)
    if result.differences:
        several = " each for itself" if policies > 2 else ""
        console.print(f"[mean difference and its 95 % interval{several}]", style="dim", markup=False)
