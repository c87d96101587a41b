"""The returns of all trials as the paper draws them (fig_real_eval), with the threshold of a solved task."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from spota.deploy.trial import Tried
from spota.deploy.trials import threshold
from spota.show.plots import GREY, POLICY_COLORS, lines_behind

MARKS = "osD^vP"
WIDE = 0.2
"""How far the first and the last machine stand from the middle of a policy's column."""


def transfer_figure(tried: Mapping[str, Mapping[str, Sequence[Tried]]], names: Sequence[str]) -> Figure:
    """A panel for each platform: policies side by side, a mark for each trial, a shape for each machine."""
    figure = Figure(figsize=(5.4 * len(tried), 4.4), layout="constrained")
    for axes, (env, machines) in zip(np.atleast_1d(figure.subplots(1, len(tried))), tried.items(), strict=True):
        every = [t for trials in machines.values() for t in trials if t.counts]
        boxes = [[t.returned for t in every if t.planned.policy == name] for name in names]
        lines = {part: {"color": GREY} for part in ("medianprops", "boxprops", "whiskerprops", "capprops")}
        axes.boxplot(boxes, widths=0.7, showfliers=False, **lines)
        places = np.linspace(-WIDE, WIDE, len(machines))
        for mark, place, (machine, trials) in zip(MARKS, places, machines.items(), strict=False):
            _marks(axes, mark, float(place), [t for t in trials if t.counts], names)
            axes.scatter([], [], c="none", edgecolors=GREY, marker=mark, s=18, label=machine)
        axes.scatter([], [], c=GREY, marker="o", s=18, label="filled: solved")
        line = threshold(every)
        if np.isfinite(line):
            axes.axhline(line, color=GREY, ls="--", lw=1, label="lowest return that solved it")
        axes.set_xticks(range(1, len(names) + 1), [_label(name, every) for name in names])
        axes.set(title=env, ylabel="return, from measurements")
        axes.legend(fontsize=7, frameon=False)
        lines_behind(axes)
    return figure


def _label(name: str, every: Sequence[Tried]) -> str:
    own = [t for t in every if t.planned.policy == name]
    return f"{name}\nsolved {sum(t.solved for t in own)} of {len(own)}"


def _marks(axes, mark: str, place: float, trials: Sequence[Tried], names: Sequence[str]) -> None:
    spread = np.random.default_rng(0)
    for k, name in enumerate(names):
        own = [t for t in trials if t.planned.policy == name]
        colour = POLICY_COLORS[k % len(POLICY_COLORS)]
        x = k + 1 + place + spread.uniform(-0.03, 0.03, len(own))
        faces = [colour if t.solved else "white" for t in own]
        axes.scatter(x, [t.returned for t in own], c=faces, edgecolors=colour, marker=mark, s=18, zorder=3)
