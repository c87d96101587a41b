"""The returns of all trials as the paper draws them (fig_real_eval), with the threshold of a solved task."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from spota.deploy.trial import Tried
from spota.deploy.trials import threshold
from spota.show.plots import GREY, POLICY_COLORS, lines_behind

MARKS = "osD^vP"


def transfer_figure(tried: Mapping[str, Mapping[str, Sequence[Tried]]]) -> Figure:
    """A panel for each platform: policies side by side, a mark for each trial, a shape for each machine."""
    figure = Figure(figsize=(5.4 * len(tried), 4.2), layout="constrained")
    for axes, (env, machines) in zip(np.atleast_1d(figure.subplots(1, len(tried))), tried.items(), strict=True):
        every = [t for trials in machines.values() for t in trials if t.counts]
        names = list(dict.fromkeys(t.planned.policy for t in every))
        boxes = [[t.returned for t in every if t.planned.policy == name] for name in names]
        axes.boxplot(boxes, widths=0.5, showfliers=False, medianprops={"color": GREY}, boxprops={"color": GREY})
        for mark, (machine, trials) in zip(MARKS, machines.items(), strict=False):
            _marks(axes, mark, machine, [t for t in trials if t.counts], names)
        line = threshold(every)
        if np.isfinite(line):
            axes.axhline(line, color=GREY, ls="--", lw=1, label="solved above")
        axes.set_xticks(range(1, len(names) + 1), names)
        axes.set(title=env, ylabel="return, from measurements")
        axes.legend(fontsize=7, frameon=False)
        lines_behind(axes)
    return figure


def _marks(axes, mark: str, machine: str, trials: Sequence[Tried], names: Sequence[str]) -> None:
    spread = np.random.default_rng(0)
    for k, name in enumerate(names):
        own = [t for t in trials if t.planned.policy == name]
        x = k + 1 + spread.uniform(-0.18, 0.18, len(own))
        faces = [POLICY_COLORS[k % len(POLICY_COLORS)] if t.solved else "white" for t in own]
        label = machine if k == 0 else None
        edge = POLICY_COLORS[k % len(POLICY_COLORS)]
        axes.scatter(x, [t.returned for t in own], c=faces, edgecolors=edge, marker=mark, s=18, label=label, zorder=3)
