"""What a page says about machines on which a policy fails."""

import dataclasses
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from run_directories import BOWL, CART_POLE, CATAPULT, Words, trained_run

from bowl import Bowl, Hold
from spota import policies
from spota.show.pages import evaluation, failure_section, page, read
from spota.show.pages.failures import FEWEST, Failures, examples, ranks, shift, traits
from spota.show.pages.material import Material

N = 4000


@dataclasses.dataclass(frozen=True, eq=False)
class Planted(Bowl):
    """Every machine earns nothing but those with strong > 0.94, which lose all: 3 % of them."""

    def reward(self, state, action, xi):
        del state, action
        return jnp.where(xi[0] > 0.94, -10.0, 0.0)


def evaluated(env, monkeypatch, policy=None, n=N, level=None):
    monkeypatch.setattr(evaluation, "DRAWN", n)
    return evaluation.compute(env, policy or Hold(jnp.array(0.0)), "any", False, level, {})


def said(env, found, directory) -> str:
    """The words of the section, for a plain training on that platform."""
    told = read(trained_run(directory, env, policies.Linear(jnp.zeros((1, 1)), policies.Contract.of(env))))
    section = failure_section.failures(Material(told, found))
    return Words(str(section)).text


def test_a_planted_failure_rule_is_named_and_nothing_else(monkeypatch, tmp_path):
    found = evaluated(Planted(), monkeypatch)
    assert found.failures.count == pytest.approx(0.03 * N, rel=0.3)
    assert [(trait.name, trait.where) for trait in found.failures.traits] == [("strong", "high")]
    assert found.failures.traits[0].quantile == pytest.approx(0.985, abs=0.005)
    assert found.failures.traits[0].failing == pytest.approx((0.955, 0.985), abs=0.01)
    text = said(Planted(), found, tmp_path / "run")
    assert f"It failed on {found.failures.count} of {N} new random machines" in text
    assert "On failing machines strong is high (their median is above 99 % of all draws)." in text
    assert "idle" not in text and "weak" not in text


def test_a_machine_fails_as_the_certificate_defines_it(monkeypatch):
    found = evaluated(Planted(), monkeypatch, level=-25.0)  # of 0 to −30, and a fifth of this below it is no return
    assert (found.failures.count, found.failures.rare, found.level) == (0, False, -25.0)
    returns = np.array(found.returns)
    found = evaluated(Planted(), monkeypatch, level=-1.0)
    assert found.failures.count == np.sum(-1.0 - returns > 6.0) > 0
    assert found.failures.rare


def test_no_failure_at_all_is_a_sentence_of_its_own(monkeypatch, tmp_path):
    text = said(BOWL, evaluated(BOWL, monkeypatch, n=200), tmp_path / "run")
    assert "It failed on none of 200 new random machines." in text
    assert "have in common" not in text


def test_a_policy_that_fails_everywhere_has_no_rare_failures():
    assert "Failures are not rare: on one machine in twenty it earns 158 or less" in failure_section.count_words(
        Failures(N, 0, 158.0, 500.0, False, ())
    )


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        (lambda u: u < 0.02, "low"),
        (lambda u: np.abs(u - 0.5) > 0.49, "at both ends"),
        (lambda u: (u < 0.02) | (u > 0.99), "low, sometimes high"),
        (lambda u: np.abs(u - 0.5) < 0.01, "in the middle"),
    ],
)
def test_failures_in_any_part_of_a_range_are_found(rule, where):
    drawn = {name: np.random.default_rng(i).random(N) for i, name in enumerate("abc")}
    (found,) = traits(drawn, rule(drawn["b"]))
    assert (found.name, found.where) == ("b", where)


def test_chance_alone_names_a_parameter_in_one_case_of_a_hundred():
    generator, named, times = np.random.default_rng(0), 0, 300
    for _ in range(times):
        drawn = {name: generator.random(500) for name in "abcdefgh"}
        named += bool(traits(drawn, generator.random(500) < 0.05))
    assert named / times < 0.03


def test_few_failing_machines_have_nothing_in_common():
    drawn = {"a": np.arange(float(N))}
    assert traits(drawn, drawn["a"] >= N - FEWEST + 1) == ()
    assert traits(drawn, drawn["a"] >= N - FEWEST) != ()
    few = Failures(N, 2, 0.0, 1.0, True, ())
    assert failure_section.common_words(few) == "Too few failed to say what they have in common: 2 machines."
    many = dataclasses.replace(few, count=50)
    assert failure_section.common_words(many).startswith("No single parameter sets them apart.")


def test_the_shift_is_that_of_mann_and_whitney():
    generator = np.random.default_rng(1)
    values, failed = generator.integers(0, 10, 300).astype(float), generator.random(300) < 0.2
    want = scipy.stats.mannwhitneyu(values[failed], values[~failed], use_continuity=False, method="asymptotic")
    strength, p = shift(ranks(values), failed)
    assert strength == pytest.approx(want.statistic / (failed.sum() * (~failed).sum()) - 0.5)
    assert p == pytest.approx(want.pvalue, rel=0.01)


def test_examples_are_the_quartiles_of_the_failing_ones():
    returns = np.arange(100.0)
    assert examples(returns, returns < 40) == [29, 19, 9]
    assert examples(returns, returns < 1) == [0]
    assert len(examples(returns, returns < 2)) == 2
    assert examples(returns, returns < 0) == []


class Fall(eqx.Module):
    """Pushes as hard as it can."""

    def __call__(self, observation):
        return jnp.ones((1, *observation.shape[1:]))


@dataclasses.dataclass(frozen=True, eq=False)
class HeavyFails(type(CART_POLE)):
    """A cart-pole that stands still, but for the heaviest poles, which earn nothing from the start."""

    def reward(self, state, action, xi):
        del state, action
        return jnp.where(xi.m_p > 0.175, 0.0, 1.0)


def test_three_failing_machines_move_as_they_were_counted(monkeypatch):
    env = HeavyFails()
    found = evaluated(env, monkeypatch, Fall(), n=800)
    assert [r.caption for r in found.failing] == list(evaluation.SEVERITY)
    assert [r.caption for r in found.recordings] == ["nominal domain", "typical domain", "worst domain found"]
    for recording in found.failing:
        assert recording.returns[-1] < found.failures.level - found.failures.shortfall
    assert [t.name for t in found.failures.traits] == ["pole_mass"]


def test_a_platform_without_a_picture_has_words_only(monkeypatch, tmp_path):
    found = evaluated(Planted(), monkeypatch)
    assert found.failing == found.recordings == ()
    assert "In motion" not in said(Planted(), found, tmp_path / "run")


def test_the_section_leads_to_explain(monkeypatch, trained, refused):
    short = evaluated(CATAPULT, monkeypatch, policies.find(refused, CATAPULT), n=50)
    body = str(failure_section.failures(Material(read(refused), short)))
    assert f"spota explain {refused}" in Words(body).text
    explained = dataclasses.replace(short, explanation={})
    assert 'href="#attribution"' in str(failure_section.failures(Material(read(refused), explained)))
    own = str(failure_section.failures(Material(read(trained), short)))  # no command can name its platform
    assert "spota explain" not in own


def test_a_page_is_never_greener_than_its_evidence(certified, refused):
    def status(story, warnings=(), verdict=None):
        kept = story.kept
        c = dataclasses.replace(kept.certificate, warnings=warnings, verdict=verdict or kept.certificate.verdict)
        told = dataclasses.replace(story, iterations=(dataclasses.replace(kept, certificate=c),))
        text = page(Material(told, None, "no picture"))
        return text.split('<header class="verdict" data-status="')[1].split('"')[0], Words(text).text

    assert status(read(certified))[0] == "certified"
    mark, text = status(read(certified), ("Beware of the dog.",))
    assert mark == "warned"
    assert " Certified, with warnings " in text
    assert status(read(refused))[0] == "undecided"
    assert status(read(refused), verdict="refuted")[0] == "refuted"


def test_only_one_status_is_green():
    style = (Path(failure_section.__file__).parent / "page.css").read_text()
    green = [line for line in style.splitlines() if "--tone: var(--good)" in line]
    assert len(green) == 1
    assert green[0].startswith('.verdict[data-status="certified"] {')
