"""The written schemas: JSON Schema by its own standard, true of what is written, and what the readers check."""

import json
from pathlib import Path

import jax
import jsonschema
import numpy as np
import pytest

import crafted
import spota.fit
from spota import policies
from spota.certify.certificate import FORMAT, Certificate
from spota.deploy.introduction import Introduction
from spota.envs import PLATFORMS, make
from spota.files import documents
from spota.files.documents import check, read_json, schema_of
from spota.sim import domain_set, table_file

KINDS = ("certificate", "policy file", "domain set", "domain table", "recording", "device contract")
RECORDING = Path(spota.fit.__file__).parent / "data" / "qube" / "chirp+1.5V-0.npz"
FORMAT_1 = Path(__file__).parent / "data" / "certificate-format-1.json"


def about_of(policy, tmp_path):
    with np.load(policies.save(policy, tmp_path / "p.npz")) as archive:
        return json.loads(str(archive["about"]))


def whole(kind: str, tmp_path: Path):
    if kind == "certificate":
        return Certificate.from_json(FORMAT_1.read_text()).to_dict()
    if kind == "recording":
        with np.load(RECORDING) as archive:
            return json.loads(str(archive["about"]))
    if kind == "domain table":
        table = crafted.CART_POLE.domain.learned_from(("0" * 64,))
        return read_json(table_file.save(crafted.CART_POLE.with_domain(table), tmp_path / "table.json", "a test"))
    if kind == "domain set":
        return domain_set.draw(jax.random.key(0), crafted.CART_POLE, 3, 0).to_dict()
    if kind == "device contract":
        return json.loads(Introduction.of(crafted.CART_POLE, 0.006, {"rail_length": 0.8}).to_json())
    remembering = policies.Architecture((2,), memory=2)
    return about_of(policies.new_network(jax.random.key(0), crafted.ENV, remembering), tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_one(kind):
    jsonschema.Draft202012Validator.check_schema(schema_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_as_its_schema_says(kind, tmp_path):
    jsonschema.validate(whole(kind, tmp_path), schema_of(kind))


@pytest.mark.parametrize("name", PLATFORMS)
def test_policies_and_domains_of_every_platform_are_as_the_schema_says(name, tmp_path):
    env = make(name)
    jsonschema.validate(about_of(policies.fnn(jax.random.key(0), env), tmp_path), schema_of("policy file"))
    jsonschema.validate(domain_set.draw(jax.random.key(0), env, 2, 0).to_dict(), schema_of("domain set"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_property_that_is_written_is_described(kind, tmp_path):
    schema = schema_of(kind)
    assert set(whole(kind, tmp_path)) == set(schema["properties"])


@pytest.mark.parametrize("kind", KINDS)
def test_our_reader_of_schemas_agrees_with_the_standard(kind, tmp_path):
    """On what JSON can say; NaN, infinity and numbers beyond a double are refused by us alone."""
    rng, document = np.random.default_rng(0), whole(kind, tmp_path)
    standard, verdicts = jsonschema.Draft202012Validator(schema_of(kind)), []
    for _ in range(300):
        twisted = crafted.twisted(rng, document)
        if any(word in json.dumps(twisted) for word in ("NaN", "Infinity", str(10**400))):
            continue
        try:
            check(twisted, kind, "it")
            ours = True
        except ValueError:
            ours = False
        assert ours == standard.is_valid(twisted), twisted
        verdicts.append(ours)
    assert {True, False} == set(verdicts)


def test_a_certificate_of_the_first_format_is_read():
    old = Certificate.from_json(FORMAT_1.read_text())
    assert (old.domain_sha256, dict(old.blocks), old.recordings) == (None, {}, ())
    assert old.to_dict()["format"] == FORMAT
    assert Certificate.from_json(old.to_json()) == old


def test_fields_that_nobody_knows_are_ignored():
    told = {**json.loads(FORMAT_1.read_text()), "format": FORMAT, "domain_sha256": None, "blocks": {}}
    told |= {"recordings": [], "mood": "good"}
    told["performance"]["weather"] = "fine"
    assert Certificate.from_dict(told) == Certificate.from_json(FORMAT_1.read_text())


def test_a_policy_file_of_the_first_format_is_read(tmp_path):
    policy = policies.fnn(jax.random.key(0), crafted.ENV, (2,))
    good = policies.save(policy, tmp_path / "p.npz").read_bytes()
    about = json.loads(str(crafted.arrays_of(good)["about"]))
    old = {"format": 1, **{name: about[name] for name in ("kind", "contract")}}
    (tmp_path / "old.npz").write_bytes(crafted.with_about(good, old))
    assert policies.fingerprint(policies.load(tmp_path / "old.npz")) == policies.fingerprint(policy)


def test_the_words_of_a_mistake_name_the_place():
    with pytest.raises(ValueError, match=r"it is not a policy file: contract: dt is missing"):
        check({"kind": "FNN", "contract": {"env": "x"}}, "policy file", "it")
    with pytest.raises(ValueError, match=r"is not JSON: NaN is not a number there"):
        documents.parse_json("[NaN]", "it")
