"""The page of a run: it tells the truth about every kind of directory, and works in a browser without a network."""

import dataclasses
import html.parser
import json
import re
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spota.certificate
from bowl import Bowl
from browser import DESKTOP, PHONE
from spota import plan, policies, worst
from spota.algorithm import Solution
from spota.animation import Recording
from spota.blocks import to_arrays
from spota.certificate import METHODS, Certificate
from spota.certifying import assess, certify
from spota.cli import main
from spota.envs import make
from spota.envs.cart_pole import CartPole
from spota.files import plain
from spota.polopt.rows import Score
from spota.report import coverage, evaluation, page, read, story, write, write_comparison
from spota.report.checks import checks
from spota.report.material import Material
from spota.rollout import Outcome
from spota.run import Run
from spota.standings import Difference, Standings
from spota.types import Env, Signal

CATAPULT = make("catapult")
TINY = {
    "n_c": 5, "n_r": 2, "n_G": 10, "n_J": 1, "n_b": 50, "performance_domains": 20, "hidden": [2], "max_iterations": 2,
    "method": "student_t_reference", "growth": "constant",
}  # fmt: skip
NASTY = """<img src=x onerror="alert(1)"> & 'co'"""
MOST = 8e6
"""Bytes that a page may have."""


@dataclasses.dataclass(frozen=True, eq=False)
class ShortCartPole(CartPole):
    """A tenth of a second."""

    max_steps = 50


CART_POLE, BOWL = ShortCartPole(), Bowl()


@pytest.fixture(scope="module", autouse=True)
def _few_rollouts():
    with pytest.MonkeyPatch.context() as patch:
        for name, few in {"DRAWN": 20, "TIMES": 2, "POINTS": 3, "ROLLOUTS": 2, "EXPLAINED": 50}.items():
            patch.setattr(evaluation, name, few)
        patch.setattr(worst, "MEASURED", 5)
        patch.setattr(spota.certificate, "all_intervals", some_intervals)
        yield


def some_intervals(key, gaps, *_) -> dict[str, float]:
    """Bounds that cost nothing to compile: the page shows whatever a certificate states."""
    del key
    return {name: float(np.mean(gaps)) + i for i, name in enumerate(METHODS)}


# ---- directories -----------------------------------------------------------------------------------------------


def spota_run(directory: Path, **settings) -> Path:
    chosen = plan.resolve(None, {"env": "catapult"}, [("the test", {"spota": {**TINY, **settings}})])
    with Run(directory, chosen.table()) as run:
        certify(chosen, CATAPULT, run)
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


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def certified(place) -> Path:
    return spota_run(place / "certified", beta=1000.0)


@pytest.fixture(scope="module")
def refused(place) -> Path:
    return spota_run(place / "refused", beta=1e-3)


@pytest.fixture(scope="module")
def assessed(place) -> Path:
    policy = policies.fnn(jax.random.key(1), CATAPULT, (2,))
    settings = {name: value for name, value in TINY.items() if name not in plan.LOOP_ONLY}
    chosen = plan.resolve(
        None, {"env": "catapult", "algo": "assess", "policy": "mine.npz"}, [("the test", {"spota": settings})]
    )
    with Run(place / "assessed", chosen.table()) as run:
        assess(chosen, CATAPULT, policy, run)
    return place / "assessed"


@pytest.fixture(scope="module")
def moving(place) -> Path:
    """A training on a platform that has a picture."""
    still = policies.Linear(jnp.zeros((1, 4)), policies.Contract.of(CART_POLE))
    return trained_run(place / "moving", CART_POLE, still)


@pytest.fixture(scope="module")
def trained(place) -> Path:
    """A training on a platform with several parameters, whose rollouts cost nothing."""
    return trained_run(place / "trained", BOWL, policies.fnn(jax.random.key(0), BOWL, (2,)))


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


# ---- what the page says ----------------------------------------------------------------------------------------


def test_a_certified_run_says_so_and_gives_the_certificates_figures(certified):
    c = Certificate.from_json((certified / "certificate.json").read_text())
    text = words_of(write(certified, full=False))
    assert text.split("Certified")[0].endswith("catapult · SPOTA · seed 0 · certified ")
    assert c.sentence.removeprefix("Certified: o") in text
    assert "What this promises" in text and "What it does not promise" in text
    assert "There is one iteration, so there is one point." in text
    assert all(warning in text for warning in c.warnings)
    assert "planet" in text
    assert f"spota train --config {certified}/config.toml" in text
    assert c.policy_sha256 is not None and c.policy_sha256 in text
    for name in c.intervals:
        assert coverage.interval_name(name) in text


def test_a_run_that_was_not_certified_says_so(refused):
    text = words_of(write(refused, full=False))
    assert " Not certified " in text
    assert "It ended after 2 iterations" in text
    assert "There is one iteration" not in text
    assert "Go on with" not in text


@pytest.mark.parametrize(
    ("lost", "place_in_the_run", "certificate"),
    [
        (r"iteration|result|certificate|policy", "in iteration 1.", False),
        (r"-02|(references|comparison|performance|certificate)\.|result|policy", "before its references were", False),
        (r"-02|(performance|certificate)\.|result|policy", "in iteration 1, before its performance was", False),
        (r"-02|result", "in iteration 2.", True),
        (r"-02/(comparison|performance|certificate)|result", "in iteration 2, before its comparison was", True),
    ],
)  # fmt: skip
def test_a_killed_run_says_where_it_stands(refused, tmp_path, lost, place_in_the_run, certificate):
    run = copied(refused, tmp_path / "killed", lost)
    text = words_of(write(run, full=False))
    assert " Unfinished " in text
    assert place_in_the_run in text
    assert f"Go on with: spota train --resume {run}" in text
    assert ("So far: not certified" in text) == certificate == ("What the certificate says" in text)
    assert ("There is no certificate yet." in text) != certificate
    assert ("The run has not kept a policy yet." in text) != certificate


def test_a_killed_run_shows_the_curve_of_the_block_that_it_was_in(refused, tmp_path):
    run = copied(refused, tmp_path / "killed", "iteration-02|result")
    lines = [{"block": "iteration-02/candidate", "iteration": i, "returns": 10.0 * i} for i in (1, 2)]
    with (run / "metrics.jsonl").open("a") as file:
        file.write("\n".join(map(json.dumps, lines)) + '\n{"torn')
    found = read(run).training
    assert found is not None and not found.finished
    assert found.returns.tolist() == [[10.0, 20.0]]
    assert "The block that was not finished" in words_of(write(run, full=False))
    assert read(refused).training is None


def test_a_training_says_that_nothing_is_certified(moving):
    text = words_of(write(moving, CART_POLE, full=False))
    assert "cart-pole · a training with ppo · seed 3 · moving" in text
    assert "Trained, without a certificate" in text
    assert f"spota assess {moving}" in text
    assert "mean return on 500 unseen domains, of 50 45 " in text
    assert "What the certificate says" not in text


def test_a_training_that_was_stopped_is_unfinished(moving, tmp_path):
    run = copied(moving, tmp_path / "stopped", "solution|result|policy")
    (run / "metrics.jsonl").write_text('{"block": "solution", "iteration": 1, "returns": 7.5}\n')
    text = words_of(write(run))
    assert "The run stands in the training. There is no certificate yet." in text
    assert "mean return on its own domains so far" in (run / "report.html").read_text()


def test_an_assessment_has_a_certificate_and_no_candidate(assessed):
    text = words_of(write(assessed, full=False))
    assert "catapult · an assessment of mine.npz · seed 0" in text
    assert read(assessed).status in ("certified", "not certified")
    assert "What the certificate says" in text
    assert "The bound over the iterations" not in text
    assert "Candidates" not in text
    assert "References of iteration 1" in text
    assert f"spota assess --config {assessed}/config.toml" in text


def test_a_damaged_block_is_named_and_the_rest_is_shown(refused, tmp_path):
    run = copied(refused, tmp_path / "damaged")
    block = run / "iteration-01" / "comparison.npz"
    block.write_bytes(block.read_bytes()[:100])
    text = words_of(write(run, full=False))
    assert "iteration-01/comparison.npz is no finished block of this run" in text
    assert "The bound over the iterations" in text


def test_what_is_no_run_is_refused_in_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path)])
    assert "is no run directory, because it has no config.toml" in " ".join(capsys.readouterr().err.split())


def test_text_from_files_is_never_markup(certified, tmp_path):
    run = copied(certified, tmp_path / NASTY.replace("/", ""))
    whole = read(run)
    kept = whole.iterations[0]
    assert kept.certificate is not None
    row = {**kept.certificate.domain["planet"], "meaning": NASTY, "unit": NASTY, "symbol": NASTY}
    bad = dataclasses.replace(kept.certificate, domain={NASTY: row}, warnings=(NASTY,), policy_sha256=NASTY)
    assert kept.references is not None
    references = dataclasses.replace(kept.references, domains={NASTY: kept.references.domains["planet"]})
    kept = dataclasses.replace(kept, certificate=bad, references=references, candidate=None)
    told = dataclasses.replace(
        whole,
        config={**whole.config, "policy": NASTY, "seed": NASTY, "env": NASTY},
        iterations=(kept,),
        damaged=(NASTY,),
    )
    text = page(Material(told, None, NASTY))
    assert "img" not in Words(text).tags
    assert Words(text).text.count(NASTY) >= 8
    assert "<img" not in text.replace("\\u003c", "")


def test_a_command_writes_the_page(refused, tmp_path, capsys):
    out = tmp_path / "new" / "page.html"
    main(["report", str(refused), "--out", str(out), "--quick", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told == {"run": str(refused), "file": str(out), "bytes": out.stat().st_size}


# ---- how far to trust it ---------------------------------------------------------------------------------------


def test_the_coverage_that_a_page_shows_is_that_of_the_docs():
    docs = (Path(__file__).parent.parent / "docs" / "coverage.md").read_text().split("## How often the bound is")[1]
    lines = [[c.strip(" *") for c in line.split("|")[1:-1]] for line in docs.splitlines() if line.startswith("| ")]
    head, rows = lines[0], [row for row in lines[2:] if (row[1], row[2]) == ("20", "5")]
    found = coverage.measured(20, 5)
    columns = {"basic p": "basic_pooled", "studentized r": "studentized_reference", "MRP": "mrp"}
    for column, method in columns.items():
        values = [float(row[[h.replace("*", "") for h in head].index(column)]) for row in rows]
        assert found.lowest[method] == pytest.approx(min(values), abs=0.051)
        assert found.highest[method] == pytest.approx(max(values), abs=0.051)


@pytest.mark.parametrize(("sizes", "nearest"), [((20, 1), (20, 1)), ((12, 2), (10, 1)), ((1000, 100), (50, 20))])
def test_the_studied_case_is_the_nearest_one(sizes, nearest):
    found = coverage.measured(*sizes)
    assert (found.n_G, found.n_r) == nearest


def test_every_doubt_turns_one_check(certified):
    c = read(certified).certificate
    assert c is not None
    sound = dataclasses.replace(
        c, reference_improvement=3.0, losing_share=0.0, clipped_share=0.2, n_G=20, n_r=5, largest_gap_share=0.1,
        method="studentized_reference", intervals=dict.fromkeys(c.intervals, 5.0), spending="halves",
    )  # fmt: skip
    assert all(check.good for check in checks(sound, 3))
    doubtful = {
        "reference_improvement": -1.0,
        "losing_share": 0.5,
        "clipped_share": 1.0,
        "n_G": 5,
        "largest_gap_share": 0.9,
        "method": "basic_pooled",
        "intervals": {**sound.intervals, "basic_pooled": 1e9},
        "spending": "none",
    }
    for name, value in doubtful.items():
        found = list(checks(dataclasses.replace(sound, **{name: value}), 3))
        assert [check.good for check in found].count(False) == 1, name


# ---- what is computed for a page -------------------------------------------------------------------------------


def test_figures_are_computed_once_a_policy(refused, tmp_path, monkeypatch):
    run = copied(refused, tmp_path / "run", "evaluation")
    done = []

    def quickly(env, policy, name, full, *_):
        del env, policy
        done.append(full)
        return evaluation.Evaluation(name, full, (1.0, 2.0), 1.0, (), (), None)

    monkeypatch.setattr(evaluation, "compute", quickly)
    first = write(run, full=False).read_bytes()
    assert write(run, full=False).read_bytes() == first
    assert done == [False]
    write(run)
    write(run, full=False)  # what is there already is shown
    assert done == [False, True]
    (run / "evaluation.json").write_text("{")
    write(run)
    assert done == [False, True, True]


def test_what_is_kept_is_what_was_computed(trained):
    (trained / evaluation.FILE).unlink(missing_ok=True)
    found, again = (evaluation.evaluate_run(read(trained), BOWL) for _ in range(2))
    assert (again.returns, again.sweeps, again.explanation) == (found.returns, found.sweeps, found.explanation)


def test_recordings_survive_json():
    time, track = np.arange(4) / 50, np.sin(np.arange(4.0))
    signal = Signal("V", "V", -5.0, 5.0)
    one = Recording("cart-pole", "nominal", "rail", 0.02, time, {"x": track}, {"rail": 0.8}, (signal,),
                    track[:, None], track, track, 50.0, True)  # fmt: skip
    whole = evaluation.Evaluation("abc", False, (1.0,), 1.0, (one,), (), None)
    again = evaluation.Evaluation.from_dict(json.loads(json.dumps(plain(whole.to_dict())))).recordings[0]
    assert (again.outcome, again.signals, again.sizes) == (one.outcome, one.signals, one.sizes)
    np.testing.assert_array_equal(again.commands, one.commands)
    np.testing.assert_array_equal(again.tracks["x"], track)


def test_every_random_parameter_is_swept_and_the_strong_one_comes_first(trained):
    text = words_of(write(trained, BOWL))
    names = [name for name in BOWL.domain if name != "fixed"]
    swept = text.split("What each parameter does")[1].split("Which parameter costs the return")[0]
    assert all(name in swept for name in names)
    assert "fixed" not in swept
    assert min(names, key=swept.index) == "strong"
    assert "Most of the spread comes from strong" in text
    assert "gained if nominal" in text


def test_another_policy_than_the_certified_one_is_not_shown(refused, tmp_path):
    run = copied(refused, tmp_path / "swapped", "evaluation")
    policies.save(policies.fnn(jax.random.key(9), CATAPULT, (2,)), run / "policy.npz")
    assert "is another policy than the one that the certificate speaks of" in words_of(write(run))
    assert not (run / "evaluation.json").exists()


def test_a_platform_of_ones_own_is_asked_for(refused):
    told = read(refused)
    own = dataclasses.replace(told, config={**told.config, "platform": {"effects": "mine"}})
    with pytest.raises(evaluation.NoPolicyError, match=r"spota\.report\.write\(directory, env\)"):
        evaluation.find_policy(own)
    assert evaluation.find_policy(own, CATAPULT)[0] is CATAPULT


# ---- comparisons -----------------------------------------------------------------------------------------------


def outcome(*returns: float) -> Outcome:
    return Outcome(jnp.array(returns)[:, None], jnp.array(returns)[:, None] > 0)


@pytest.fixture(scope="module")
def compared() -> Standings:
    outcomes = {"mine": outcome(1.0, 2.0, 4.0), NASTY: outcome(0.0, 1.0, 2.0)}
    return Standings("bowl", 5.0, True, outcomes, (Difference("mine", NASTY, 4 / 3, 0.5, 2.0, 0.95),))


def test_a_comparison_names_the_best_and_shows_every_policy(compared, tmp_path):
    path = write_comparison(compared, tmp_path / "a" / "report.html", about="3 domains", command="spota compare a b")
    text = words_of(path)
    assert "2 policies compared mine earns most: 2.33 of at most 5 on average over 3 domains" in text
    assert f"mine is better than {NASTY} by 1.33 [0.5, 2]." in text
    assert "spota compare a b" in text
    assert "cannot be told apart" not in text.split("What they earn")[0]
    assert "img" not in Words(path.read_text()).tags


def test_a_comparison_says_with_whom_the_best_could_change_places(compared, tmp_path):
    close = dataclasses.replace(compared.differences[0], low=-0.1)
    result = dataclasses.replace(compared, differences=(close,))
    text = words_of(write_comparison(result, tmp_path / "report.html", about="3 domains", command="spota compare"))
    assert f"It cannot be told apart from {NASTY}." in text


# ---- the look --------------------------------------------------------------------------------------------------


def themes() -> list[dict[str, str]]:
    css = (Path(story.__file__).parent / "page.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    return [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in blocks]


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_both_themes_can_be_read():
    light, dark = themes()
    for theme in (light, {**light, **dark}):
        for ink in ("ink", "quiet", "blue"):
            assert contrast(theme[ink], theme["surface"]) >= 4.5, ink
            assert contrast(theme[ink], theme["page"]) >= 4.5, ink
        for tone in ("good", "bad", "open", "plain"):
            for ink in (tone, "ink", "quiet"):
                assert contrast(theme[ink], theme[f"{tone}-back"]) >= 4.5, (tone, ink)
        for mark in ("blue", "orange", "green", "purple", "grey"):
            assert contrast(theme[mark], theme["surface"]) >= 3, mark


READY = "document.documentElement.dataset.ready === 'yes'"
DRAWN = """[...document.querySelectorAll(".plot")].map((plot) =>
  plot.querySelectorAll(".main-svg .trace, .main-svg .bars").length)"""
SMALLEST = """Math.min(...[...document.querySelectorAll("p, li, td, th, figcaption, summary, dt, dd, pre, small, a")]
  .map((element) => parseFloat(getComputedStyle(element).fontSize)))"""
TEXT_COLOUR = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"


def opened(visit, path: Path, **settings):
    there = visit(path, **settings)
    there.wait(READY)
    return there


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.mark.parametrize(
    ("which", "size", "theme"),
    [
        ("certified", DESKTOP, "dark"),
        ("refused", PHONE, "light"),
        ("assessed", DESKTOP, "light"),
        ("trained", PHONE, "dark"),
        ("moving", PHONE, "light"),
    ],
)
def test_in_a_browser_every_plot_is_drawn_and_everything_can_be_read(visit, request, which, size, theme):
    directory, env = request.getfixturevalue(which), {"trained": BOWL, "moving": CART_POLE}.get(which)
    path = write(directory, env, full=which == "trained")
    assert path.stat().st_size < MOST
    there = opened(visit, path, size=size, color_scheme=theme)
    drawn = there.page.evaluate(DRAWN)
    assert drawn and min(drawn) > 0
    assert there.overflow() == 0
    assert there.page.evaluate(SMALLEST) >= 14
    assert there.requests == there.complaints == []


def test_in_a_browser_the_policy_moves(visit, moving):
    there = opened(visit, write(moving, CART_POLE, full=False), size=PHONE)
    there.page.locator(".spota-player").scroll_into_view_if_needed()
    there.wait("Number(document.querySelector('.spota-scrub').value) > 0.02")
    assert there.page.locator(".spota-figure").count() == 3


def test_in_a_browser_the_plots_follow_the_theme_and_the_printer(visit, refused):
    light, dark = (theme["ink"] for theme in themes())
    there = opened(visit, write(refused, full=False), color_scheme="light")
    assert there.page.evaluate(TEXT_COLOUR) == rgb(light)
    there.page.emulate_media(color_scheme="dark")
    there.wait(f"{TEXT_COLOUR} === '{rgb(dark)}'")
    there.page.emulate_media(color_scheme="dark", media="print")
    there.wait(f"{TEXT_COLOUR} === '{rgb(light)}'")
    assert there.complaints == []


def test_in_a_browser_an_unfinished_run_has_a_page_too(visit, refused, tmp_path):
    run = copied(refused, tmp_path / "killed", "iteration|result|certificate|policy")
    there = opened(visit, write(run), size=PHONE)
    assert there.page.locator("h1").inner_text().strip() == "Unfinished"
    assert there.overflow() == 0
    assert there.requests == there.complaints == []


def test_in_a_browser_a_comparison_is_drawn(visit, compared, tmp_path):
    path = write_comparison(compared, tmp_path / "report.html", about="3 domains", command="spota compare a b")
    there = opened(visit, path, size=PHONE, color_scheme="dark")
    assert min(there.page.evaluate(DRAWN)) > 0
    assert there.page.locator("img").count() == 0
    assert there.overflow() == 0
    assert there.requests == there.complaints == []


def test_in_a_browser_nasty_names_are_text(visit, certified, tmp_path):
    run = copied(certified, tmp_path / NASTY.replace("/", ""))
    there = opened(visit, write(run, full=False), size=PHONE)
    assert there.page.locator("img").count() == 0
    assert NASTY in there.page.locator(".about").inner_text()
    assert there.overflow() == 0
    assert there.complaints == []
