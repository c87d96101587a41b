"""`spota explain`: which parameter costs the return, what to measure first, and where the policy fails."""

from pathlib import Path
from typing import Annotated

import tyro

from spota.analysis import attribution, evaluate
from spota.analysis.attribution import Explanation
from spota.analysis.unidentified import Unknown, in_words, unknown
from spota.analysis.worst import WorstDomain
from spota.commands.output import console, print_json, print_table
from spota.commands.progress import bar
from spota.commands.sources import OtherTable, Words, contestants, domains_of, with_contract
from spota.files.atomic import check_writable, plain, write_json

SHOWN = 8
"""Parameters that a table shows; the file has all."""


def explain(
    policy: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_OR_POLICY")],
    /,
    env: Annotated[
        str | None, tyro.conf.arg(metavar="ENV", help_behavior_hint="(default: what the policy file was made for)")
    ] = None,
    contract: Words = (),
    samples: int = 1000,
    domain: OtherTable = None,
    on: Annotated[Path | None, tyro.conf.arg(metavar="SET.json", help_behavior_hint="(default: none)")] = None,
    noise: bool = True,
    seed: int = 0,
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: the run, or runs/explain-ENV-POLICY)")
    ] = None,
    json: bool = False,
) -> None:
    """Explain what a policy's return depends on.

    Shares of the variance: which parameter moves the return, alone (first order) and with its interactions (total).
    Measure this first: what it would earn to know a parameter exactly and then to choose among the policies of a run,
    the candidate and its references; for a single policy, how much better its return could be predicted. The worst
    domains: found by search within the distribution's support, with what comes back if one parameter alone returns to
    its nominal value.

    Args:
        policy: A run directory, a policy or ONNX file, a controller (pd, lqr, energy), or FILE.py:NAME (executed).
        env: The platform, if the policy does not know it; FILE.py:NAME is one of your own.
        samples: Domains behind each figure; four times as many halve the intervals.
        on: Find the value of knowing, and the worst drawn domains, on the domains of this file; `spota domains` writes
            one. Shares of the variance need draws of their own.
        noise: Observation noise.
        seed: The same seed gives the same figures.
        out: Where explanation.json goes.
        json: Print one JSON document instead of words and tables.
    """
    platform, chosen = contestants((policy := with_contract([policy], contract)[0],), env, noise, domain)
    (name, subject), source = next(iter(chosen.items())), Path(policy)
    drawn = None
    if on is not None:
        drawn, platform = domains_of(on, platform)
    place = source if source.is_dir() else Path("runs") / f"explain-{platform.name}-{name}"
    file = (out or place) / "explanation.json"
    check_writable(file)
    others = attribution.alternatives(source, subject) if source.is_dir() else {}
    key = evaluate.evaluation_key(seed)
    with bar("compiling …") as show:
        found = attribution.explain(key, platform, name, subject, others, drawn, n=samples, tell=show)
    left = unknown(key, platform, subject, samples) if platform.domain.recordings else ()
    document = plain({"seed": seed, "samples": samples, "noise": noise, "on": on, "source": policy, **found.to_dict()})
    if left:
        document |= {"not_identified": [{**vars(u), "worth_measuring": u.worth_measuring} for u in left]}
    write_json(file, document)
    if json:
        print_json({**document, "files": [str(file)]})
        return
    _print(found)
    if left:
        _print_unknown(left)
    console.print(f"Wrote {file}.", soft_wrap=True)


def _print(found: Explanation) -> None:
    console.print(str(found), soft_wrap=True, markup=False)
    if found.indices is not None:
        _print_indices(found)
    if found.information is not None:
        _print_information(found)
    _print_worst(found, found.worst[0])


def _print_unknown(left: tuple[Unknown, ...]) -> None:
    title = "What recordings of this machine leave open, and what goes with it"
    rows = [(u.name, f"{100 * u.share:.0f} %", f"{100 * u.spread:.0f} %") for u in left[:SHOWN]]
    print_table(title, ("", "of the return's variance", "of its spread is left"), rows)
    console.print(in_words(left), soft_wrap=True, markup=False)


def _print_indices(found: Explanation) -> None:
    indices = found.indices
    assert indices is not None
    shown = [indices.names.index(name) for name in indices.ranking[:SHOWN]] + [len(indices.names) - 1]
    rows = [
        (
            indices.names[i],
            _share(float(indices.first[i]), *indices.first_interval[i]),
            _share(float(indices.total[i]), *indices.total_interval[i]),
        )
        for i in shown
    ]
    title = f"Shares of the variance of the return on {found.env}, in % with 95 % intervals"
    print_table(title, ("", "first order", "total"), rows)


def _print_information(found: Explanation) -> None:
    known = found.information
    assert known is not None
    gains = [*((name, known.gains[name]) for name in known.ranking[:SHOWN]), ("everything", known.everything)]
    title = f"What knowing a parameter earns, by choosing among {len(known.policies)} policies"
    rows = [(name, _tenths(gain.mean), f"{_tenths(gain.low)} … {_tenths(gain.high)}") for name, gain in gains]
    print_table(title, ("known", "gain", "95 % interval"), rows)


def _print_worst(found: Explanation, worst: WorstDomain) -> None:
    columns = ("", "there", "nominal", "quantile of ν", "comes back")
    rows = [
        (
            name if found.units[name] == "-" else f"{name} ({found.units[name]})",
            f"{worst.domain[name]:.4g}",
            f"{found.nominal[name]:.4g}",
            f"{100 * worst.quantile[name]:.1f} %",
            f"{worst.recovery[name]:+.1f}",
        )
        for name in worst.causes[:SHOWN]
    ]
    title = f"The worst domain found ({worst.found}): {worst.returns:.1f}, {100 * worst.survival:.0f} % survive"
    print_table(title, columns, rows)
    console.print("comes back: the gain in return if this parameter alone is nominal again", style="dim")


def _share(value: float, low: float, high: float) -> str:
    return f"{_tenths(100 * value)} [{_tenths(100 * low)}, {_tenths(100 * high)}]"


def _tenths(value: float) -> str:
    """One digit, and never −0.0."""
    return f"{round(value, 1) + 0.0:.1f}"
