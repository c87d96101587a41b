"""Sizes beyond memory, and a confidence beyond all numbers: refused before any work, with an estimate."""

import jax
import pytest

import spota
from spota import policies
from spota.certify.settings import LEAST_ALPHA, Spota
from spota.cli import main
from spota.envs import make
from spota.runs import plan
from spota.sim import memory
from spota.sim.memory import in_units, refuse_beyond_memory

CATAPULT = make("catapult")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("n_G", 10**9), ("n_c", 10**13), ("n_J", 10**13), ("performance_domains", 10**13), ("n_b", 10**13),
     ("hidden", [10**7, 10**7])],
)  # fmt: skip
def test_sizes_beyond_memory_are_refused_with_an_estimate(setting, value):
    with pytest.raises(
        ValueError, match=r"needs at least .* of memory, and this machine has .* GB; write a smaller"
    ) as e:
        plan.resolve(None, {"env": "cart-pole"}, [("here", {"spota": {setting: value}})])
    assert setting in str(e.value)


def test_nothing_is_left_behind_and_no_traceback(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ("train", "cart-pole", "--set", "spota.n_G=1000000000"),
        ("rollout", "cart-pole", "--policy", "lqr", "--domains", "1000000000000"),
        ("domains", "cart-pole", "-n", "1000000000000"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        assert "of memory, and this machine has" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_what_fits_is_not_refused(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 4e9)
    for preset in ("tuned", "quick", "paper"):
        plan.resolve(None, {"env": "ball-balancer", "preset": preset})
    refuse_beyond_memory(4e9, "this", "nothing")


def test_a_network_beyond_memory_is_refused():
    with pytest.raises(ValueError, match=r"write smaller layers"):
        policies.fnn(jax.random.key(0), CATAPULT, (10**7, 10**7))


def test_memory_that_runs_out_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr("spota.cli._run", lambda _: bytearray(2**62))
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "text"), [(999.0, "999 bytes"), (25.4e9, "25.4 GB"), (6e15, "6 PB"), (1e24, "1e+09 PB")]
)
def test_sizes_are_written_as_people_do(size, text):
    assert in_units(size) == text


def test_an_alpha_beyond_all_numbers_is_refused_at_construction():
    with pytest.raises(ValueError, match=r"alpha=1e-300: .*write alpha=1e-06 or more"):
        Spota(alpha=1e-300)
    Spota(alpha=LEAST_ALPHA)


def test_the_smallest_alpha_still_gives_larger_bounds():
    sizes = {"n_c": 5, "n_r": 2, "n_G": 10, "n_J": 1, "n_b": 50, "performance_domains": 2000, "hidden": (2,),
             "max_iterations": 1, "looks": 1}  # fmt: skip
    strict, usual = (spota.train("catapult", settings={**sizes, "alpha": alpha}) for alpha in (LEAST_ALPHA, 0.05))
    assert strict.certificate.ucbog > usual.certificate.ucbog
