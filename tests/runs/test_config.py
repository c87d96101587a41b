"""Settings: TOML and back, layers, and what is said about mistakes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
import tomli_w

from spota.envs import make
from spota.polopt.analytic import Analytic
from spota.polopt.ppo import PPO
from spota.runs import config

ENV = make("cart-pole")


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    steps: int = 3


@dataclass(frozen=True)
class Outer:
    name: str = "x"
    mode: Literal["a", "b"] = "a"
    sizes: tuple[int, ...] = (16, 16)
    budget: float | None = None
    fast: bool = False
    inner: Inner = field(default_factory=Inner)


def test_settings_survive_toml(tmp_path):
    for settings in (Outer(), Outer("ξ", "b", (), 2.5, True, Inner(1e-4, 7))):
        path = tmp_path / "settings.toml"
        path.write_text(tomli_w.dumps(config.to_dict(settings)), "utf-8")
        assert config.build(Outer, config.read_toml(path), str(path)) == settings


@pytest.mark.parametrize("solver", [PPO(), PPO.paper(), Analytic()])
def test_optimizers_survive_toml(tmp_path, solver):
    path = tmp_path / "settings.toml"
    path.write_text(tomli_w.dumps(config.to_dict(solver)), "utf-8")
    assert config.build(type(solver), config.read_toml(path), str(path)) == solver


def test_whole_numbers_may_be_floats_and_lists_tuples():
    made = config.build(Outer, {"budget": 3, "sizes": [4], "inner": {"rate": 1}}, "here")
    assert made == Outer(sizes=(4,), budget=3.0, inner=Inner(rate=1.0))
    assert isinstance(made.inner.rate, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nmae": "x"}, "f.toml: Outer has no setting 'nmae'; did you mean 'name'?"),
        ({"zzz": 1}, "there are: name, mode"),
        ({"inner": {"rte": 1.0}}, "Inner has no setting 'rte'; did you mean 'rate'?"),
        ({"inner": 3}, "f.toml: inner = 3: Inner is needed"),
        ({"inner": {"steps": 1.5}}, "steps = 1.5: a whole number is needed"),
        ({"inner": {"steps": True}}, "a whole number is needed"),
        ({"fast": 1}, "fast = 1: true or false is needed"),
        ({"mode": "c"}, "mode = 'c' is not a choice; there are: a, b."),
        ({"sizes": 16}, "sizes = 16: a list of whole numbers is needed"),
        ({"sizes": [1.5]}, "a whole number is needed"),
        ({"budget": "much"}, "budget = 'much': a number or nothing is needed"),
    ],
)
def test_mistakes_are_named(values, message):
    for read in (lambda: config.build(Outer, values, "f.toml"), lambda: config.override(Outer(), values, "f.toml")):
        with pytest.raises(ValueError) as told:  # noqa: PT011, compared below
            read()
        assert message in str(told.value)


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(ValueError, match="nothing.toml cannot be read: No such file"):
        config.read_toml(tmp_path / "nothing.toml")
    (tmp_path / "bad.toml").write_text("a = [1")
    with pytest.raises(ValueError, match=r"bad.toml is not valid TOML"):
        config.read_toml(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b'a = "\xe4"')
    with pytest.raises(ValueError, match=r"latin.toml is not valid TOML"):
        config.read_toml(tmp_path / "latin.toml")


def test_flags_are_written_like_toml_and_text_needs_no_quotes():
    told = config.from_flags(["iterations=200", "learning_rate = 1e-3", "fast=true", "then.steps=4", "kind=a \\ b"])
    want = {"iterations": 200, "learning_rate": 1e-3, "fast": True, "then": {"steps": 4}, "kind": "a \\ b"}
    assert told == want
    for wrong in ("iterations", "=3", "iterations=", "a b=3"):
        with pytest.raises(ValueError, match="NAME=VALUE"):
            config.from_flags([wrong])


def test_later_layers_win_also_inside_tables():
    assert config.merge({"a": 1, "t": {"x": 1, "y": 2}}, {"t": {"y": 3}}, {"a": 2}) == {"a": 2, "t": {"x": 1, "y": 3}}


def test_overriding_checks_again():
    assert config.override(PPO(), {"iterations": 7}, "--set").iterations == 7
    with pytest.raises(ValueError, match="λ"):
        config.override(PPO(), {"lam": 2.0}, "--set")


def test_optimizers_by_name_and_preset():
    assert config.optimizer("ppo", ENV) == PPO(smoothing=1.0)
    on_balancer = [config.optimizer(name, make("ball-balancer")) for name in ("ppo", "udr", "epopt")]
    assert {learner.lam for learner in on_balancer} == {0.998}  # 0.95 looks 40 ms ahead, and does not learn there
    assert config.optimizer("ppo", ENV, "paper") == PPO.paper()
    assert config.optimizer("udr", ENV, "paper") == config.override(PPO.paper(), {"fresh_domains": True}, "")
    assert config.optimizer("analytic", ENV) == Analytic()
    with pytest.raises(ValueError, match="did you mean 'ppo'"):
        config.optimizer("pppo", ENV)
    with pytest.raises(ValueError, match="no settings for 'analytic'"):
        config.optimizer("analytic", ENV, "paper")


def test_paths_become_text():
    @dataclass(frozen=True)
    class Place:
        out: Path

    assert config.to_dict(Place(Path("runs"))) == {"out": "runs"}
