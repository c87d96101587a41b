"""How a run goes, on a console: a picture that moves where that can be, else a line per block.

with Live(progress_console, "cart-pole", max_return=2500.0, threshold=60.0) as live:
    certify(plan, env, run, live)
"""

import time
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live as MovingPicture
from rich.table import Table
from rich.text import Text

from spota.certify.certificate import Certificate
from spota.certify.events import Assessed, BlockFinished, BlockStarted, Event, Solving, Told
from spota.cluster.jobs import AtWork
from spota.polopt.solve import Progress
from spota.text import duration, figure, percent

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 12
COLUMNS = {"": 1, "block": 11, "domains": 7, "curve": WIDTH, "start": 5, "now": 5, "best": 5, "time": 15}
"""With their least widths, so that nothing jumps; start, now and best are returns."""
SOLVED = ("candidate", "references", "effort", "training")
"""The blocks in which a solver works; its first word comes after compiling."""


def sparkline(values: list[float], width: int = WIDTH) -> str:
    """A curve as a line of text; a flat one lies at the bottom."""
    if not values:
        return ""
    curve = np.asarray(values, np.float64)[np.linspace(0, len(values) - 1, min(width, len(values))).round().astype(int)]
    low, high = curve.min(), curve.max()
    heights = (curve - low) / (high - low) if high > low else np.zeros_like(curve)
    return "".join(BARS[round(height * (len(BARS) - 1))] for height in heights)


def iteration_line(iteration: int, c: Certificate) -> str:
    """What an iteration found, in one line."""
    domains = f"n_r = {c.n_r}" if c.n_c is None else f"n_c = {c.n_c}, n_r = {c.n_r}"
    parts = _parts(c)
    sum_of_them = f" = {' + '.join(parts)}" if len(parts) > 1 else ""
    return (
        f"iteration {iteration}: {domains}: UCBOG {figure(c.ucbog)}{sum_of_them} (threshold {figure(c.threshold)}), "
        f"mean gap {figure(c.mean_gap)}, {percent(c.negative_share)} of the gaps negative: {c.verdict}"
    )


def _parts(c: Certificate) -> list[str]:
    """What the bound is the sum of."""
    if c.method == "split" and c.split is not None:
        parts = [f"ordinary {figure(c.split.ordinary.bound)}", f"rare failures {figure(c.split.rare.bound)}"]
    else:
        parts = [figure(c.intervals[c.method])]
    return [*parts, f"effort margin {figure(c.effort_margin or 0.0)}"] if c.effort_references else parts


@dataclass
class Block:
    """A block that is running or has ended."""

    started: BlockStarted
    begun: float = field(default_factory=time.monotonic)
    first: tuple[float, int] | None = None
    """When the solver spoke for the first time, and at which update: compiling does not count."""
    progress: Progress | None = None
    curve: list[float] = field(default_factory=list)
    finished: BlockFinished | None = None
    workers: AtWork | None = None
    """How the tasks stand, if workers have them."""

    def hear(self, progress: Progress) -> None:
        """Follow the solver."""
        self.first = self.first or (time.monotonic(), progress.iteration)
        self.progress = progress
        self.curve.append(float(progress.returns.mean()))

    def end(self, event: BlockFinished) -> None:
        """Keep the end; what was solved has its curve in the arrays."""
        self.finished = event
        if "curve" in event.arrays:
            self.curve = np.atleast_2d(event.arrays["curve"]).mean(axis=0).tolist()

    @property
    def domains(self) -> str:
        """How many, of how many problems."""
        n, problems = self.started.n, self.started.problems
        return "" if not n else str(n) if problems == 1 else f"{problems} × {n}"

    @property
    def returns(self) -> tuple[str, str, str]:
        """At the start, now, and the best, as means over the problems; empty where nothing is solved."""
        if self.finished and "start_returns" in self.finished.arrays:
            start, best = (float(self.finished.arrays[name].mean()) for name in ("start_returns", "returns"))
        elif self.progress:
            start, best = self.curve[0], float(self.progress.best.mean())
        else:
            return "", "", ""
        return figure(start), figure(self.curve[-1]), figure(best)

    @property
    def time(self) -> str:
        """What it took, or has taken and what is left."""
        if self.finished:
            return "kept" if self.finished.replayed else duration(self.finished.seconds)
        spent = duration(time.monotonic() - self.begun)
        if self.progress is None or self.first is None:
            return f"{spent}, compiling" if self.started.block.split("/")[-1] in SOLVED else spent
        if self.progress.iteration == self.first[1]:
            return spent
        pace = (time.monotonic() - self.first[0]) / (self.progress.iteration - self.first[1])
        return f"{spent}, {duration(pace * (self.progress.iterations - self.progress.iteration))} left"


class Live:
    """Listens to the events of a run and shows them; use it in a `with` statement."""

    def __init__(self, console: Console, title: str, max_return: float, threshold: float | None = None):
        """Nothing is shown before the `with` statement."""
        self._console, self._title, self._max_return, self._threshold = console, title, max_return, threshold
        self._begun = time.monotonic()
        self._iteration = 0
        self._blocks: list[Block] = []
        self._best: Certificate | None = None
        self._picture = MovingPicture(console=console, get_renderable=self._draw, transient=True, refresh_per_second=4)

    def __enter__(self) -> "Live":
        """Begin to draw."""
        if self._console.is_terminal:
            self._picture.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the picture away; the lines stay."""
        self._picture.stop()

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        if isinstance(event, BlockStarted):
            if event.iteration != self._iteration:
                self._iteration, self._blocks = event.iteration, []
            self._blocks.append(Block(event))
        elif isinstance(event, Solving):
            self._blocks[-1].hear(event.progress)
        elif isinstance(event, BlockFinished):
            self._blocks[-1].end(event)
            if not self._console.is_terminal:
                self._say(self._in_words(self._blocks[-1]))
        elif isinstance(event, Told):
            self._say(event.text)
        elif isinstance(event, AtWork):
            self._blocks[-1].workers = event
        else:
            self._end_iteration(event)

    def _end_iteration(self, event: Assessed) -> None:
        self._best = event.best
        spent = duration(sum(b.finished.seconds for b in self._blocks if b.finished))
        self._say(f"{iteration_line(event.iteration, event.certificate)}; {spent}")
        self._blocks = []

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=not self._console.is_terminal)

    def _in_words(self, block: Block) -> str:
        start, _, best = block.returns
        parts = (
            f"{block.domains} domain{'' if block.domains == '1' else 's'}" if block.domains else "",
            f"return {start} → {best} of at most {figure(self._max_return)}" if start else "",
            "found in the directory" if block.time == "kept" else block.time,
        )
        return f"iteration {self._iteration}, {block.started.block}: {', '.join(part for part in parts if part)}"

    def _draw(self) -> RenderableType:
        """The picture: a line on the whole, and a row per block of this iteration."""
        rows = Table(box=None, header_style="dim", pad_edge=False)
        for name, width in COLUMNS.items():
            side = "right" if name in ("start", "now", "best") else "left"
            rows.add_column(name, justify=side, min_width=width, no_wrap=True)
        for block in self._blocks:
            mark = Text("✓", "green") if block.finished else Text("▸", "bold")
            curve = Text(sparkline(block.curve), "cyan")
            rows.add_row(mark, block.started.block, block.domains, curve, *block.returns, block.time)
        lines = [Text(self._headline(), "bold", no_wrap=True, overflow="ellipsis"), rows]
        if self._blocks and self._blocks[-1].workers and not self._blocks[-1].finished:
            lines.append(Text(f"  {self._blocks[-1].workers}", "dim", no_wrap=True, overflow="ellipsis"))
        return Group(*lines)

    def _headline(self) -> str:
        parts = [self._title, duration(time.monotonic() - self._begun)]
        if self._threshold is not None:
            found = "no UCBOG yet" if self._best is None else f"best UCBOG {figure(self._best.ucbog)}"
            parts[1:1] = [f"iteration {max(self._iteration, 1)}", f"{found}, threshold {figure(self._threshold)}"]
        return " · ".join([*parts, f"returns ≤ {figure(self._max_return)}"])
