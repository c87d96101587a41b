"""How a run is shown: lines where nothing can move, a picture on a terminal."""

import io
from dataclasses import replace

import jax
import numpy as np
import pytest
from rich.console import Console

from spota.certify.algorithm import spota
from spota.certify.events import Assessed, BlockFinished, BlockStarted, Solving
from spota.certify.settings import Spota
from spota.envs import make
from spota.polopt import exact
from spota.polopt.solve import Progress
from spota.show.live import Block, Live, iteration_line, sparkline
from spota.text import duration, figure

SMALL = Spota(n_c=5, n_G=10, n_J=1, beta=9.5, max_iterations=1, n_b=50, performance_domains=20, hidden=(2,))


@pytest.fixture(scope="module")
def events():
    heard = []
    spota(jax.random.key(0), make("catapult"), exact.catapult, SMALL, listener=heard.append)
    return heard


def word(iteration: int, *returns: float) -> Progress:
    values = np.array(returns)
    return Progress(iteration, 10, values, np.ones_like(values), values + 5, None, 1000, {})


def shown(events, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100, highlight=False)
    with Live(console, "catapult", 0.0, 9.5) as live:
        for event in events:
            live(event)
        if terminal:
            console.print(live._draw())
    return file.getvalue()


def test_without_a_terminal_every_block_is_a_line(events):
    lines = shown(events, terminal=False).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "iteration 1, candidate", "iteration 1, references", "iteration 1, comparison", "iteration 1, performance",
        "iteration 1, certificate", "iteration 1, challenger", "iteration 1",
    ]  # fmt: skip
    assert "5 domains, return -" in lines[0]
    assert "10 × 1 domains" in lines[1]
    assert lines[-1].startswith("iteration 1: n_c = 5, n_r = 1: UCBOG ")
    assert "\x1b" not in "".join(lines)


def test_what_was_found_in_the_directory_is_told(events):
    replayed = [replace(e, replayed=True) if isinstance(e, BlockFinished) else e for e in events]
    assert shown(replayed, terminal=False).count("found in the directory") == 6


def test_on_a_terminal_a_row_follows_the_optimizer(events):
    told = shown(
        [*events, BlockStarted(2, "references", 2, 20), Solving(2, "references", word(1, 30.0, 10.0)),
         Solving(2, "references", word(5, 50.0, 30.0))],
        terminal=True,
    )  # fmt: skip
    for part in ("iteration 2", "best UCBOG", "threshold 9.5", "references", "20 × 2", "▁█", "20", "40", "45", "left"):
        assert part in told
    assert "iteration 1: n_c = 5" in told  # and the line of the first iteration stays


def test_a_finished_block_shows_what_counts_in_the_end():
    block = Block(BlockStarted(1, "references", 1, 2))
    arrays = {
        "start_returns": np.array([1.0, 3.0]), "returns": np.array([5.0, 7.0]),
        "curve": np.array([[1.0, 9.0, 5.0], [3.0, 1.0, 7.0]]),
    }  # fmt: skip
    block.end(BlockFinished(1, "references", 12.0, False, arrays))
    assert block.curve == [2.0, 5.0, 6.0]
    assert block.returns == ("2", "6", "6")
    assert block.time == "12 s"


def test_an_assessment_has_no_candidate_to_count(events):
    (assessed,) = (e for e in events if isinstance(e, Assessed))
    assert iteration_line(1, replace(assessed.certificate, n_c=None)).startswith("iteration 1: n_r = 1: UCBOG")


def test_the_effort_margin_stands_beside_the_bound(events):
    (assessed,) = (e for e in events if isinstance(e, Assessed))
    c = replace(assessed.certificate, method="basic_pooled")
    more = replace(c, ucbog=12.5, intervals={c.method: 10.0}, effort_margin=2.5, effort_references=4)
    assert "UCBOG 12.5 = 10 + effort margin 2.5 (threshold 9.5)" in iteration_line(1, more)
    assert "margin" not in iteration_line(1, c)


def test_the_parts_of_the_split_stand_beside_the_bound(events):
    (assessed,) = (e for e in events if isinstance(e, Assessed))
    c = assessed.certificate
    assert c.split is not None
    ordinary, rare = figure(c.split.ordinary.bound), figure(c.split.rare.bound)
    assert f"UCBOG {figure(c.ucbog)} = ordinary {ordinary} + rare failures {rare} (thres" in iteration_line(1, c)


def test_curves_as_text():
    assert sparkline([]) == ""
    assert sparkline([3.0, 3.0]) == "▁▁"
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert len(sparkline([float(i) for i in range(1000)], 14)) == 14


def test_durations_as_people_say_them():
    assert [duration(s) for s in (0.2, 99.0, 119.7, 200.0, 7500.0)] == ["0 s", "99 s", "2:00 min", "3:20 min", "2:05 h"]
