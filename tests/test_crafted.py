"""Files from strangers: whatever is in them, they are read, or refused in one sentence and within a gigabyte."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import crafted
from spota import policies
from spota.certify.certificate import Certificate
from spota.files.documents import read_json
from spota.runs import config, plan
from spota.sim import domain_set

HARMLESS = ("two of a name",)  # what follows an archive is not looked at
POLICIES = {name: data for name, data in crafted.crafted_policies().items() if name not in HARMLESS}


def read_all(directory: Path, how_many: int) -> list[str]:
    """The complaints of a process of its own, whose memory is limited; one kind of file is ONNX."""
    pytest.importorskip("onnx")
    command = [sys.executable, str(Path(crafted.__file__)), str(directory), str(how_many)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    *complaints, last = ended.stdout.splitlines()
    assert last == "done"
    return complaints


def test_a_hundred_spoilt_files_of_each_kind_are_one_sentence_each(tmp_path):
    assert read_all(tmp_path, 100) == []


@pytest.mark.slow
def test_two_thousand_spoilt_files_of_each_kind_are_one_sentence_each(tmp_path):
    assert read_all(tmp_path, 2000) == []


@pytest.mark.parametrize("trick", POLICIES)
def test_a_crafted_policy_file_is_refused_by_name(tmp_path, trick):
    path = tmp_path / "policy.npz"
    path.write_bytes(POLICIES[trick])
    with pytest.raises(ValueError, match=r"policy.npz") as refused:
        policies.load(path)
    assert "\n" not in str(refused.value)


ONNX = crafted.crafted_onnx() if find_spec("onnx") else {}


@pytest.mark.parametrize("trick", ONNX)
def test_a_crafted_onnx_file_is_refused_by_name(tmp_path, trick):
    path = tmp_path / "policy.onnx"
    path.write_bytes(ONNX[trick])
    (tmp_path / "w.bin").write_bytes(bytes(8))
    with pytest.raises(ValueError, match=r"policy.onnx") as refused:
        policies.find(path, crafted.MASS)
    assert "\n" not in str(refused.value)


def changed(document, *path_and_value):
    *path, last, value = path_and_value
    holder = document
    for key in path:
        holder = holder[key]
    holder[last] = value
    return document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("format", 2), "has format 2; this spota reads domain sets of format 1"),
        (("format", "x"), "has format 'x'"),
        (("seed", "x"), "seed is 'x', and a whole number is needed"),
        (("env", 3), "env is 3, and text is needed"),
        (("domains", "gravity", ["x"]), r"domains.gravity\[0\] is 'x', and a finite number is needed"),
        (("domains", "gravity", []), "domains.gravity has no entries"),
        (("domains", "gravity", [1e300] * 5), r"gravity = 1e\+300 is too large"),
        (("distribution", "gravity", "std", "x"), "distribution.gravity.std is 'x'"),
        (("distribution", "gravity", "sign", "x"), "one of any, nonnegative, positive is needed"),
        (("distribution", "gravity", {"family": "Observed", "values": [1.0]}), "give them for each, or for none"),
        (("distribution", "gravity", {"family": "Integers", "low": 0.5, "high": 3}), r"Integers.*low=0.5"),
        (("distribution", "gravity", {"family": "numpyro.LKJ", "dimension": 50_000}), "does not take 'dimension'"),
        (("distribution", "gravity", {"family": "numpyro.Gamma", "rate": 1.0}), "cannot be made of"),
    ],
)
def test_nonsense_in_a_domain_set_is_named(tmp_path, change, message):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(changed(crafted.domain_document(), *change)))
    with pytest.raises(ValueError, match=message):
        domain_set.load(path, crafted.CART_POLE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("format", 9), "has format 9; this spota reads certificates of format 1 and 2 and 3"),
        (("ucbog", "x"), "ucbog is 'x', and a finite number is needed"),
        (("ucbog", None), "ucbog is None"),
        (("verdict", "perfect"), "one of certified, refuted, undecided is needed"),
        (("confidence", 95), "confidence is 95, which is out of range"),
        (("n_G", 2.5), "n_G is 2.5, and a whole number is needed"),
        (("performance", "mean", "x"), "performance.mean is 'x'"),
        (("split", "rare", 3), "split.rare is 3, and a table is needed"),
        (("domain", []), r"domain is \[\], and a table is needed"),
    ],
)
def test_nonsense_in_a_certificate_is_named(tmp_path, change, message):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(changed(crafted.certificate_document(), *change)))
    with pytest.raises(ValueError, match=message):
        Certificate.from_dict(read_json(path), "certificate.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"a = {crafted.deep()}", "it nests too deeply"),
        (f"{'.'.join('a' * 3000)} = 1", "it nests too deeply"),
        ('seed = 1\n[spota]\nn_c = "x"\n', "needs 'env', which is not given"),
        ('env = "catapult"\n[spota]\nbeta = nan\n', "beta = nan: a number is needed"),
        (f'env = "catapult"\n[spota]\nbeta = {10**400}\n', "a number is needed"),
        (f'env = "catapult"\n[spota]\nn_c = {2**70}\n', "a whole number is needed"),
    ],
)
def test_nonsense_in_a_configuration_is_named(tmp_path, text, message):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        plan.resolve(path, {})


def test_a_file_beyond_all_sizes_is_not_even_read(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(10 * crafted.GIGABYTE)  # takes no room
    for read in (policies.load, config.read_toml, read_json):
        with pytest.raises(ValueError, match="bytes"):
            read(path)


def test_what_was_spoilt_was_whole_before(tmp_path):
    pytest.importorskip("onnx")
    for kind, content in {
        "policy": crafted.policy_bytes(),
        "onnx": crafted.onnx_bytes(),
        "domains": crafted.as_json(crafted.domain_document()),
        "config": crafted.as_toml(crafted.settings_document()),
        "certificate": crafted.as_json(crafted.certificate_document()),
    }.items():
        path = tmp_path / kind
        path.write_bytes(content)
        crafted.kinds()[kind][1](path)


def test_arrays_survive_the_careful_reader(tmp_path):
    arrays = {"a": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "b": np.array("ξ"), "c": np.zeros((0, 3), bool)}
    from spota.files.archives import read_archive

    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        found = read_archive(tmp_path / "a.npz", 10_000)
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(found[name], array)
