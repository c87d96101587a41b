"""The run directory: one process at a time, one config, blocks that survive a crash and are never trusted blindly."""

import errno
import json
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from spota.files import atomic, blocks
from spota.runs.directory import Run, new_directory

CONFIG = {"env": "cart-pole", "seed": 3, "hidden": [16, 16], "optimizer": {"iterations": 60, "learning_rate": 1e-3}}
ARRAYS = {
    "weights": np.linspace(0.0, 1.0, 7, dtype=np.float32),
    "alive": np.array([True, False]),
    "table": np.array(json.dumps({"ξ": "Δt"})),
}


def compute():
    return ARRAYS


def must_not_compute():
    raise AssertionError("the block was computed again")


def same(left, right):
    assert left.keys() == right.keys()
    for key in left:
        assert left[key].dtype == right[key].dtype
        np.testing.assert_array_equal(left[key], right[key])


def python(code: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True)


@pytest.fixture
def heard():
    return []


@pytest.fixture
def run(tmp_path, heard):
    with Run(tmp_path / "a", CONFIG, heard.append) as run:
        yield run


# Blocks.


def test_a_block_is_computed_once_and_read_bit_for_bit(run):
    same(run.block("iteration-01/candidate", compute), ARRAYS)
    same(run.block("iteration-01/candidate", must_not_compute), ARRAYS)
    assert (run.directory / "iteration-01" / "candidate.npz").is_file()


def test_a_reopened_run_goes_on_with_its_blocks(tmp_path):
    with Run(tmp_path / "a", CONFIG) as run:
        run.block("candidate", compute)
    with Run(tmp_path / "a", CONFIG) as run:
        same(run.block("candidate", must_not_compute), ARRAYS)


def flip(data: bytes) -> bytes:
    middle = data.index(ARRAYS["weights"].tobytes()) + 5
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda d: d[: len(d) // 2], lambda _: b"", lambda _: b"not an archive", lambda d: d[:-1], flip],
    ids=["truncated", "empty", "text", "one byte short", "one bit"],
)
def test_a_damaged_block_is_named_and_computed_again(run, heard, damage):
    run.block("candidate", compute)
    path = run.path_of("candidate")
    path.write_bytes(damage(path.read_bytes()))
    same(run.block("candidate", compute), ARRAYS)
    assert len(heard) == 1
    assert str(path) in heard[0] and "computed again" in heard[0]
    same(run.block("candidate", must_not_compute), ARRAYS)


def test_arrays_that_do_not_match_their_checksum_are_noticed(run, heard):
    run.block("candidate", compute)
    with np.load(run.path_of("candidate")) as archive:
        content = dict(archive)
    np.savez(run.path_of("candidate"), **{**content, "weights": content["weights"] + 1})  # a valid archive
    same(run.block("candidate", compute), ARRAYS)
    assert "damaged" in heard[0]


def test_blocks_of_another_run_or_name_or_maker_are_foreign(run, heard, tmp_path):
    with Run(tmp_path / "b", {**CONFIG, "seed": 4}) as other:
        other.block("candidate", lambda: {"weights": np.zeros(7)})
        run.path_of("candidate").write_bytes(other.path_of("candidate").read_bytes())
    same(run.block("candidate", compute), ARRAYS)
    run.path_of("references").write_bytes(run.path_of("candidate").read_bytes())
    same(run.block("references", lambda: {"gaps": np.ones(2)}), {"gaps": np.ones(2)})
    np.savez(run.path_of("gaps"), gaps=np.ones(2))
    run.block("gaps", compute)
    assert ["another run" in heard[0], "another block" in heard[1], "not written by a run" in heard[2]] == [True] * 3


def test_a_pickle_is_never_loaded(run, heard):
    class Trap:
        def __reduce__(self):
            return os._exit, (1,)

    np.savez(run.path_of("candidate"), about=np.array([Trap()], dtype=object))
    same(run.block("candidate", compute), ARRAYS)
    assert len(heard) == 1


def test_without_a_listener_python_warns(tmp_path):
    with Run(tmp_path / "a", CONFIG) as run:
        run.path_of("candidate").write_bytes(b"")
        with pytest.warns(UserWarning, match="candidate.npz is not a finished block"):
            run.block("candidate", compute)


@pytest.mark.parametrize("name", ["", "../outside", "/tmp/x", "a//b", "a.b", "a/"])
def test_block_names_stay_inside_the_directory(run, name):
    with pytest.raises(ValueError, match="iteration-01/candidate"):
        run.block(name, compute)


def test_what_needs_pickle_is_refused(run):
    for wrong in (np.array([{}]), jnp.ones(2, jnp.bfloat16)):
        with pytest.raises(ValueError, match="store numbers"):
            run.block("candidate", lambda wrong=wrong: {"x": wrong})
    with pytest.raises(ValueError, match="cannot be called 'about'"):
        run.block("candidate", lambda: {"about": np.ones(1)})
    assert not run.path_of("candidate").exists()


def test_a_tree_goes_into_a_block_and_comes_back(run):
    tree = {"policy": (jnp.ones((2, 3)), [jnp.zeros(2)]), "score": jnp.float32(3)}
    stored = run.block("solution", lambda: blocks.to_arrays(tree))
    assert set(stored) == {"policy.0", "policy.1.0", "score"}
    back = blocks.from_arrays(stored, like={"policy": (0, [0]), "score": 0})
    np.testing.assert_array_equal(back["policy"][0], np.ones((2, 3)))
    with pytest.raises(ValueError, match="no array 'other'"):
        blocks.from_arrays(stored, like={"other": 0})


# Killed processes.

KILLED = """
    import os, sys
    import numpy as np
    from spota.runs.directory import Run

    run = Run(sys.argv[1], {"seed": 0})
    run.log(before=1)
    def compute():
        run.log(inside=1)
        return {"x": np.arange(100000.0)}
    def die(*_, **__):
        os._exit(9)
"""


@pytest.mark.parametrize("moment", ["os.fsync = die", "from pathlib import Path; Path.replace = die"])
def test_killed_while_writing_a_block_nothing_half_written_is_used(tmp_path, heard, moment):
    ended = python(textwrap.dedent(KILLED) + f'\n{moment}\nrun.block("iteration-01/candidate", compute)', str(tmp_path))
    assert ended.returncode == 9, ended.stderr  # config.toml was complete before
    assert not (tmp_path / "iteration-01" / "candidate.npz").exists()
    assert list(tmp_path.rglob(".*.tmp"))
    with Run(tmp_path, {"seed": 0}, heard.append) as run:
        assert not list(tmp_path.rglob(".*.tmp"))
        assert [line["block"] for line in run.metrics() if "block" in line] == ["iteration-01/candidate"]
        run.block("iteration-01/candidate", compute)
        assert run.metrics() == [{"before": 1}]  # the killed attempt's lines are gone
    assert not heard


def test_a_second_process_is_refused_until_the_first_one_ends(tmp_path):
    code = "import sys; from spota.runs.directory import Run; Run(sys.argv[1], {'seed': 0})"
    with Run(tmp_path / "a", {"seed": 0}):
        refused = python(code, str(tmp_path / "a"))
        assert refused.returncode == 1
        assert f"Another process ({os.getpid()}) works in {tmp_path / 'a'}" in refused.stderr
        with pytest.raises(ValueError, match="Another process"):
            Run(tmp_path / "a", {"seed": 0})
    Run(tmp_path / "a", {"seed": 0}).close()


# Config.


def test_config_is_plain_toml(run):
    assert tomllib.loads((run.directory / "config.toml").read_text()) == CONFIG


def test_another_config_is_refused_with_the_keys_that_differ(tmp_path):
    Run(tmp_path / "a", CONFIG).close()
    other = {"env": "cart-pole", "seed": 4, "hidden": [16, 16], "optimizer": {"iterations": 80}}
    with pytest.raises(ValueError, match="a run with other settings") as refused:
        Run(tmp_path / "a", other)
    text = str(refused.value)
    assert "seed is 3 there, 4 now; optimizer.iterations is 60 there, 80 now" in text
    assert "optimizer.learning_rate is 0.001 there, absent now" in text
    assert "--out" in text and "--config" in text
    assert "env is" not in text
    Run(tmp_path / "a", CONFIG).close()  # the refused one has let the lock go


def test_damaged_config_is_refused_by_name(tmp_path):
    Run(tmp_path / "a", CONFIG).close()
    (tmp_path / "a" / "config.toml").write_text("seed = ")
    with pytest.raises(ValueError, match=r"config.toml cannot be read"):
        Run(tmp_path / "a", CONFIG)


def test_fingerprint_depends_on_values_and_not_on_their_order(tmp_path):
    prints = []
    for i, config in enumerate(({"a": 1, "b": 2.5}, {"b": 2.5, "a": 1}, {"a": 1, "b": 2.6})):
        with Run(tmp_path / str(i), config) as run:
            prints.append(run.fingerprint)
    assert prints[0] == prints[1] != prints[2]


# Metrics and JSON.


def test_metrics_are_lines_of_json_and_a_torn_last_line_is_dropped(tmp_path, heard):
    with Run(tmp_path / "a", CONFIG) as run:
        run.log(iteration=1, returns=np.float32(2.5), name="ξ\u2028")
        run.log(iteration=2, returns=float("nan"))
        whole = run.metrics()
    assert whole == [{"iteration": 1, "returns": 2.5, "name": "ξ\u2028"}, {"iteration": 2, "returns": None}]
    with (tmp_path / "a" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"iteration": 3, "ret')
    with Run(tmp_path / "a", CONFIG, heard.append) as run:
        assert run.metrics() == whole
        run.log(iteration=3)
        assert len(run.metrics()) == 3
    assert not heard


def test_other_damage_of_the_metrics_is_told(tmp_path, heard):
    with Run(tmp_path / "a", CONFIG) as run:
        run.log(iteration=1)
        with (tmp_path / "a" / "metrics.jsonl").open("ab") as file:
            file.write(b"\0\0\0\n[1]\n")
    with Run(tmp_path / "a", CONFIG, heard.append) as run:
        assert run.metrics() == [{"iteration": 1}]
    assert "last 2 lines are dropped" in heard[0]


def test_json_has_no_nan(run):
    document = {"nan": np.nan, "inf": np.inf, "low": -np.inf, "gaps": np.ones((1, 2)), "n": np.int64(3), "in": [(1,)]}
    path = run.write_json("certificate.json", document)
    told = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert told == {"nan": None, "inf": "inf", "low": "-inf", "gaps": [[1.0, 1.0]], "n": 3, "in": [[1]]}


# Disks.


def test_a_full_disk_is_told_in_one_sentence_and_leaves_nothing(run, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    run.write_json("result.json", {"old": True})
    monkeypatch.setattr(atomic.os, "fsync", full)
    for write in (lambda: run.block("candidate", compute), lambda: run.write_json("result.json", {})):
        with pytest.raises(OSError, match=r"was not written: the disk is full; make room") as told:
            write()
        assert told.value.errno == errno.ENOSPC
        assert "Errno" not in str(told.value)
    assert not list(run.directory.rglob("*.tmp"))
    assert not run.path_of("candidate").exists()
    assert json.loads((run.directory / "result.json").read_text()) == {"old": True}


def test_a_full_disk_while_logging(run, monkeypatch):
    monkeypatch.setattr(Path, "open", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match=r"metrics.jsonl was not written: the disk is full"):
        run.log(iteration=1)


def test_no_directory_can_be_made_there(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="a file stands where a directory is needed"):
            Run(place, CONFIG)
        with pytest.raises(OSError, match="a file stands where a directory is needed"):
            new_directory(place / "run")
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.EROFS, "read-only")))
    with pytest.raises(OSError, match="the disk is read-only; choose another place"):
        Run(tmp_path / "a", CONFIG)


def test_someone_elses_directory_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    (tmp_path / ".mine.tmp").write_text("")
    with pytest.raises(ValueError, match=r"not a run directory; choose a new one"):
        Run(tmp_path, CONFIG)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".mine.tmp", "thesis.tex"]


def test_new_directories_have_new_names(tmp_path):
    made = [new_directory(tmp_path / "runs" / "cart-pole").name for _ in range(3)]
    assert made == ["cart-pole", "cart-pole-2", "cart-pole-3"]
