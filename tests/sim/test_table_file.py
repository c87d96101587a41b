"""Tables in files: what is written is read, whatever the ending; what does not fit is refused in words."""

import jax
import numpy as np
import pytest

import spota
from spota.commands.sources import table_named
from spota.runs import plan
from spota.runs.platforms import keep_table, planned
from spota.sim import table_file

CART_POLE = spota.make("cart-pole")
KEY = jax.random.key(3)


def same_draws(a, b):
    return all(np.array_equal(a.sample(KEY, 20)[name], b.sample(KEY, 20)[name]) for name in a)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_written_table_draws_the_same_domains(tmp_path, ending):
    file = table_file.save(CART_POLE, tmp_path / f"table.{ending}")
    read = table_file.read(file, CART_POLE)
    assert read.to_dict() == CART_POLE.domain.to_dict()
    assert same_draws(read, CART_POLE.domain)


def test_rows_that_are_left_out_are_the_platforms(tmp_path):
    file = tmp_path / "t.toml"
    file.write_text('format = 1\nenv = "cart-pole"\n[domain.pole_length]\nfamily = "Uniform"\nlow = 0.1\nhigh = 0.2\n')
    mine = spota.make("cart-pole", domain=file)
    assert mine is spota.make("cart-pole", domain=file)
    assert list(mine.domain) == list(CART_POLE.domain)
    assert (str(mine.domain["pole_length"].marginal), mine.domain["pole_length"].unit) == ("U(0.1, 0.2)", "m")
    assert mine.domain["gravity"].to_dict() == CART_POLE.domain["gravity"].to_dict()


def test_rows_of_an_archive_are_drawn_whole_and_make_room_for_their_delays(tmp_path):
    rows = {name: np.asarray(column) for name, column in CART_POLE.domain.sample(KEY, 5).items()}
    rows["action_delay"] = np.array([0.0, 1.0, 2.0, 3.0, 14.0])
    np.savez(tmp_path / "rows.npz", **rows)  # type: ignore[arg-type]
    mine = spota.make("cart-pole", domain=tmp_path / "rows.npz")
    drawn = mine.domain.sample(KEY, 50)
    both = {(float(a), float(b)) for a, b in zip(drawn["gravity"], drawn["action_delay"], strict=True)}
    assert both <= {(float(a), float(b)) for a, b in zip(rows["gravity"], rows["action_delay"], strict=True)}
    assert mine.effects.delay.longest == 14


def written(tmp_path, text):
    (tmp_path / "t.toml").write_text(text)
    return tmp_path / "t.toml"


HEAD = 'format = 1\nenv = "cart-pole"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('format = 1\nenv = "qube"\n[domain.gravity]\nfamily = "Constant"\nvalue = 9.8\n', "is a table of 'qube'"),
        (HEAD + '[domain.pole_lenght]\nfamily = "Constant"\nvalue = 1\n', "did you mean 'pole_length'"),
        (HEAD + '[domain.pole_length]\nfamily = "Constant"\nvalue = 1.0\nunit = "cm"\n', "in 'cm' there, and in 'm'"),
        (HEAD + '[domain.pole_length]\nfamily = "Constant"\nvalue = -1.0\n', "is positive"),
        (HEAD + "[domain.pole_length]\nvalue = -1\n", "family is missing"),
        (HEAD + '[domain.pole_length]\nfamily = "Observed"\nvalues = [0.1]\n', "gravity has none"),
        ('env = "cart-pole"\n[domain]\n', "format is missing"),
        ("format = 9\n", "has format 9"),
        ("not toml", "is not valid TOML"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        table_file.read(written(tmp_path, text), CART_POLE)


def test_what_is_no_table_is_refused(tmp_path):
    for source, words in ((tmp_path, "neither a fit nor a run"), (tmp_path / "no.toml", "There is no table")):
        with pytest.raises(ValueError, match=words):
            table_file.read(source, CART_POLE)
    np.savez(tmp_path / "r.npz", gravity=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="not one number a row"):
        table_file.read(tmp_path / "r.npz", CART_POLE)
    (tmp_path / "r.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(ValueError, match="has no rows of parameters"):
        table_file.read(tmp_path / "r.npz", CART_POLE)


def test_a_run_keeps_its_table_and_needs_the_file_no_more(tmp_path):
    file = written(tmp_path, HEAD + '[domain.pole_length]\nfamily = "Uniform"\nlow = 0.1\nhigh = 0.2\n')
    chosen = plan.resolve(None, {"env": "cart-pole", "domain": str(file), "preset": "quick"})
    env, run = planned(chosen), tmp_path / "run"
    keep_table(run, chosen, env)
    file.unlink()
    assert planned(chosen, run).domain.to_dict() == env.domain.to_dict()
    assert chosen.domain_sha256 and chosen.env_sha256 != plan.resolve(None, {"env": "cart-pole"}).env_sha256


def test_runs_with_different_tables_ask_which(tmp_path):
    for name, digest in (("a", ""), ("b", 'domain_sha256 = "1"\n')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(digest)
    table_file.save(CART_POLE, tmp_path / "b" / "domain.json")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert table_named([b], "cart-pole", None) == tmp_path / "b"
    assert table_named([a, "lqr"], "cart-pole", None) is None
    with pytest.raises(ValueError, match="different tables; say which machines"):
        table_named([a, b], "cart-pole", None)
