"""Run directories for the tests of pages, made in no time, and what a reader sees of a page."""

import dataclasses
import html.parser
import re
import shutil
from pathlib import Path
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

import spota.certify.verdict
from bowl import Bowl
from spota import policies
from spota.certify.certificate import METHODS
from spota.envs import make
from spota.envs.cart_pole import CartPole
from spota.files.blocks import to_arrays
from spota.polopt.rows import Score
from spota.polopt.solve import Solution
from spota.runs import plan
from spota.runs.certifying import run_assessment, run_spota
from spota.runs.directory import Run
from spota.sim.env import Env

CATAPULT = make("catapult")
TINY = {
    "n_c": 5, "n_r": 2, "n_G": 10, "n_J": 1, "n_b": 50, "performance_domains": 20, "hidden": [2], "max_iterations": 2,
    "method": "student_t_reference", "growth": "constant",
}  # fmt: skip
NASTY = """<img src=x onerror="alert(1)"> & 'co'"""


@dataclasses.dataclass(frozen=True, eq=False)
class ShortCartPole(CartPole):
    """A tenth of a second."""

    max_steps = 50


CART_POLE, BOWL = ShortCartPole(), Bowl()


def some_intervals(key, gaps, *_) -> dict[str, float]:
    """Bounds that cost nothing to compile: the page shows whatever a certificate states."""
    del key
    return {name: float(np.mean(gaps)) + i for i, name in enumerate(METHODS) if name != "split"}


def spota_run(directory: Path, **settings) -> Path:
    chosen = plan.resolve(None, {"env": "catapult"}, [("the test", {"spota": {**TINY, **settings}})])
    with Run(directory, chosen.table()) as run, patch.object(spota.certify.verdict, "all_intervals", some_intervals):
        run_spota(chosen, CATAPULT, run)
    return directory


def assessed_run(directory: Path) -> Path:
    policy = policies.fnn(jax.random.key(1), CATAPULT, (2,))
    settings = {name: value for name, value in TINY.items() if name not in plan.LOOP_ONLY}
    flags = {"env": "catapult", "algo": "assess", "policy": "mine.npz"}
    chosen = plan.resolve(None, flags, [("the test", {"spota": settings})])
    with Run(directory, chosen.table()) as run, patch.object(spota.certify.verdict, "all_intervals", some_intervals):
        run_assessment(chosen, CATAPULT, policy, run)
    return directory


def trained_run(directory: Path, env: Env, policy) -> Path:
    """As `spota train --algo ppo` leaves it, but with a policy that nobody had to train."""
    score, curve = Score(jnp.float32(40.0), jnp.float32(1.0)), jnp.array([5.0, 30.0, 40.0])
    solution = Solution(policy, score, score, curve, curve, jnp.arange(3.0), jnp.array(False))
    far = {"n": 500, "mean": 45.0, "std": 3.0, "worst_20_mean": 41.0, "survival": 0.99}
    with Run(directory, {"env": env.name, "algo": "ppo", "seed": 3}) as run:
        run.block("solution", lambda: {**to_arrays(solution), "seconds": np.array(1.0)})
        policies.save(policy, directory / "policy.npz")
        run.write_json("result.json", {"env": env.name, "max_return": env.max_return, "unseen_domains": far})
    return directory


def copied(source: Path, to: Path, without: str = "^$") -> Path:
    """A copy without the files whose names match."""
    shutil.copytree(source, to, ignore=shutil.ignore_patterns(".lock", "report.html"))
    for path in sorted(to.rglob("*"), reverse=True):
        if path.is_file() and re.search(without, path.relative_to(to).as_posix()):
            path.unlink()
    return to


class Words(html.parser.HTMLParser):
    """What a reader sees, without scripts and styles; and which elements there are."""

    def __init__(self, text: str):
        super().__init__()
        self.parts, self.tags, self.hidden = [], [], 0
        self.feed(text)
        self.text = " ".join(" ".join(self.parts).replace("\xa0", " ").split())

    def handle_starttag(self, tag, attrs):
        del attrs
        self.tags.append(tag)
        self.hidden += tag in ("script", "style", "title")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style", "title")

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data)


def words_of(path: Path) -> str:
    return Words(path.read_text("utf-8")).text
