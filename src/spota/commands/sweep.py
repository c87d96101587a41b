"""`spota sweep`: the return over one domain parameter, or over two as a map."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spota.analysis import evaluate
from spota.analysis.evaluate import Axis, Sweep
from spota.commands.output import console, print_json, print_table
from spota.commands.progress import bar
from spota.commands.sources import Named, OtherTable, Words, contestants, domains_of, with_contract
from spota.files.atomic import plain, write_json
from spota.sim.domain import count
from spota.sim.env import Platform
from spota.text import figure

MAP_ROLLOUTS = 50
MAP_POINTS = 11
BAR = 6  # characters
PARTS = " ▏▎▍▌▋▊▉█"
Ends = tuple[float | None, float | None]


def _given(default: str, name: str | None = None, metavar: str | None = None) -> Any:
    return tyro.conf.arg(name=name, metavar=metavar, help_behavior_hint=f"(default: {default})")


def sweep(
    policies: Named,
    /,
    param: Annotated[str, tyro.conf.arg(metavar="PARAM")],
    param2: Annotated[str | None, _given("none: one parameter only", metavar="PARAM")] = None,
    env: Annotated[str | None, _given("what the policy files were made for", metavar="ENV")] = None,
    contract: Words = (),
    low: Annotated[float | None, _given("where the distribution begins", "from", "VALUE")] = None,
    high: Annotated[float | None, _given("where the distribution ends", "to", "VALUE")] = None,
    low2: Annotated[float | None, _given("where the distribution begins", "from2", "VALUE")] = None,
    high2: Annotated[float | None, _given("where the distribution ends", "to2", "VALUE")] = None,
    points: Annotated[int | None, _given(f"21, or {MAP_POINTS} by {MAP_POINTS} for a map", metavar="N")] = None,
    others: Literal["nominal", "random"] = "nominal",
    domain: OtherTable = None,
    on: Annotated[Path | None, _given("none", metavar="SET.json")] = None,
    rollouts: Annotated[int | None, _given(f"360, or {MAP_ROLLOUTS} for a map", metavar="N")] = None,
    noise: bool = True,
    seed: int = 0,
    out: Annotated[Path | None, _given("runs/sweep-ENV-PARAM", metavar="DIR")] = None,
    json: bool = False,
) -> None:
    """Sweep a domain parameter and see what each policy earns at every value; two parameters make a map.

    All policies and all points have the same start states and noise. Values beyond the distribution are fine as long as
    they make physical sense. The paper's sweeps have 360 rollouts per point, nominal others, and --no-noise. Example:
    spota sweep runs/a lqr --param pole_mass

    Args:
        policies: Run directories, policy or ONNX files, controllers or FILE.py:NAME, which is run; of one platform.
        param: The parameter; `spota envs ENV` lists them.
        param2: A second parameter.
        env: The platform, if no policy knows it; FILE.py:NAME is one of your own.
        low: The smallest value.
        high: The largest value.
        low2: The smallest value of the second parameter.
        high2: The largest value of the second parameter.
        points: How many values of each parameter.
        others: What the other parameters are: nominal, or random, with the same random domains at every point.
        on: Take the other parameters from the domains of this file, one rollout each; see `spota domains`.
        rollouts: Rollouts at each point.
        noise: Observation noise.
        seed: The same seed gives the same start states, noise and domains.
        out: Where the picture (PNG and PDF) and the figures (JSON) go.
        json: Print one JSON document instead of a table.
    """
    ends = _ends(param, (low, high), param2, (low2, high2))
    policies = with_contract(policies, contract)
    platform, chosen = contestants(policies, env, noise, domain)
    rest: Any = others
    if on is not None:
        rest, platform = domains_of(on, platform)
        rollouts = count(rest) if rollouts is None else rollouts
    result = _swept(seed, platform, chosen, ends, points, rest, rollouts)
    document, files = _write(result, dict(zip(chosen, policies, strict=True)), seed, on, out)
    if json:
        print_json({**document, "files": files})
        return
    _print(result)
    console.print(f"Wrote {', '.join(files)}.", soft_wrap=True)


def _ends(param: str, first: Ends, param2: str | None, second: Ends) -> dict[str, Ends]:
    """Between which values each parameter is swept."""
    if param == param2:
        raise ValueError(f"--param and --param2 are both {param}; a map needs two different parameters.")
    if param2 is not None:
        return {param: first, param2: second}
    if second != (None, None):
        raise ValueError("--from2 and --to2 are the range of a second parameter; name it with --param2.")
    return {param: first}


def _swept(
    seed: int,
    env: Platform,
    policies: evaluate.Policies,
    ends: dict[str, Ends],
    points: int | None,
    others: Any,
    rollouts: int | None,
) -> Sweep:
    """The sweep over one parameter or two, with the usual numbers where none is given."""
    usual = (21, evaluate.ROLLOUTS) if len(ends) == 1 else (MAP_POINTS, MAP_ROLLOUTS)
    n, m = (other if given is None else given for given, other in zip((points, rollouts), usual, strict=True))
    values = {name: evaluate.span(env, name, n, *both) for name, both in ends.items()}
    with bar("rollouts") as show:
        how = {"others": others, "rollouts": m, "tell": lambda share: show("rollouts", share)}
        return evaluate.sweep(evaluate.evaluation_key(seed), env, policies, values, **how)


def _write(
    result: Sweep, sources: dict[str, str], seed: int, on: Path | None, out: Path | None
) -> tuple[dict[str, Any], list[str]]:
    from spota.show import plots  # slow to import

    directory = out or Path("runs") / "-".join(("sweep", result.env, *(axis.name for axis in result.axes)))
    picture = plots.sweep_figure(result)
    pictures = plots.save(picture, directory / "sweep")
    document = plain({"seed": seed, "on": on, "sources": sources, **result.to_dict()})
    return document, [str(file) for file in (*pictures, write_json(directory / "sweep.json", document))]


def _print(result: Sweep) -> None:
    m, noise = result.returns.shape[-1], "" if result.noise else ", no noise"
    about = f"{m} rollouts per point, other parameters {result.others}{noise}; at most {result.max_return:g}"
    if len(result.axes) == 1:
        _print_line(result, about)
    else:
        for k, name in enumerate(result.policies):
            _print_map(result, k, f"{name} on {result.env}: {about}")


def _print_line(result: Sweep, about: str) -> None:
    axis, mean = result.axes[0], result.mean
    low, high = min(0.0, float(mean.min())), max(result.max_return, float(mean.max()))
    table = Table(
        title=f"{result.env}: {about}", title_justify="left", title_style="bold", header_style="dim", box=None
    )
    table.add_column(f"{axis.name} ({axis.unit})", no_wrap=True)
    for name in result.policies:
        table.add_column(escape(name), justify="right")
    for i, label in enumerate(_labels(axis)):
        figures = zip(mean[:, i], result.survival[:, i], strict=True)
        cells = [f"{figure(m)} {_bar(m, low, high)} {_percent(s)}" for m, s in figures]
        table.add_row(label, *(Text(cell, no_wrap=True) for cell in cells))
    console.print(table)
    console.print("mean return and survival; ◂ nearest to nominal, · outside the distribution", style="dim")


def _print_map(result: Sweep, policy: int, title: str) -> None:
    first, second = result.axes
    shown = np.unique(np.linspace(0, second.values.size - 1, min(9, second.values.size)).round().astype(int))
    labels = _labels(second)
    rows = [(label, *(figure(result.mean[policy, i, j]) for j in shown)) for i, label in enumerate(_labels(first))]
    corner = f"{first.name} ({first.unit}) ↓\n{second.name} ({second.unit}) →"
    print_table(title, (corner, *(labels[j] for j in shown)), rows)


def _labels(axis: Axis) -> list[str]:
    nearest = int(np.abs(axis.values - axis.nominal).argmin())
    low, high = axis.support
    tolerance = 1e-9 * max(abs(low), abs(high)) if np.isfinite([low, high]).all() else 0.0
    outside = (axis.values < low - tolerance) | (axis.values > high + tolerance)
    return [
        f"{value:.4g}{' ·' if outside[i] else ''}{' ◂' if i == nearest else ''}" for i, value in enumerate(axis.values)
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%".rjust(4)


def _bar(value: float, low: float, high: float) -> str:
    """A bar of `BAR` characters that is full at `high`."""
    eighths = round(8 * BAR * (value - low) / (high - low)) if high > low else 0
    return (PARTS[8] * (eighths // 8) + PARTS[eighths % 8].strip()).ljust(BAR)
