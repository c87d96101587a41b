"""An ONNX file of ours is a policy of ours again: the same network, with the contract that it was made for.

A file counts as ours if the network that its tensors make, exported again, has the same meaning: operators, attributes
and numbers. The meaning is hashed, not the file, because protobuf may write one message in several ways.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from spota.files.documents import check, parse_json
from spota.policies.assembly import Stored, assembled
from spota.policies.contract import Contract
from spota.policies.fingerprint import fingerprint
from spota.policies.onnx_export import exported
from spota.policies.onnx_graph import Tensor, node_of
from spota.policies.onnx_limits import array_of
from spota.policies.onnx_memory import told_about_memory
from spota.policies.onnx_values import UnknownError

FORMAT, WITH_MEMORY = 1, 2
"""Of the papers in the metadata, without and with memory."""
PAPERS = (
    "spota.format", "spota.version", "spota.kind", "spota.contract", "spota.certificate", "spota.rollouts",
    "spota.policy_sha256", "spota.domain_sha256", "spota.meaning_sha256", "spota.papers_sha256",
)  # fmt: skip
"""All of them, in their order; the last one is a digest of the others."""


def papers_of(model: Any) -> dict[str, str]:
    """The metadata of a model."""
    return {entry.key: entry.value for entry in model.metadata_props}


def meaning_sha256(model: Any) -> str:
    """What a model computes: opset, inputs, outputs, operators, attributes, and the tensors as little-endian bytes."""
    digest = hashlib.sha256()
    graph = model.graph
    opsets = sorted((o.domain, o.version) for o in model.opset_import)
    ends = [(v.name, v.type.SerializeToString(deterministic=True)) for v in (*graph.input, *graph.output)]
    for part in (opsets, ends, [node_of(node) for node in graph.node]):
        digest.update(repr(part).encode())
    for tensor in graph.initializer:
        digest.update(repr((tensor.name, Tensor.of(array_of(tensor)))).encode())
    return digest.hexdigest()


def papers_sha256(papers: dict[str, str]) -> str:
    """A digest of all papers but itself."""
    rest = [[name, papers.get(name)] for name in PAPERS[:-1]]
    return hashlib.sha256(json.dumps(rest, ensure_ascii=False).encode()).hexdigest()


def is_ours(model: Any) -> bool:
    """Whether a file says that spota wrote it."""
    return "spota.format" in papers_of(model)


def contract_paper(policy: Stored) -> str:
    """The contract as it travels: that of the policy, and how its memory is used, if it has one."""
    memory = told_about_memory(policy)
    contract = json.loads(policy.contract.to_json())
    return json.dumps(contract if memory is None else {**contract, "memory": memory}, ensure_ascii=False)


def contract_in(papers: dict[str, str], where: str) -> Contract:
    """The contract among the papers."""
    return Contract.from_dict(_words_in(papers, where)["contract"])


def our_policy(model: Any, path: Path) -> Stored:
    """The policy in a file of ours; one that was changed is refused."""
    papers = papers_of(model)
    if papers.get("spota.format") not in (str(FORMAT), str(WITH_MEMORY)):
        raise ValueError(
            f"{path} has papers of format {papers.get('spota.format')!r}; this spota reads {FORMAT} and {WITH_MEMORY}."
        )
    words = _words_in(papers, str(path))
    try:
        policy = _rebuilt(model, words)
        same = meaning_sha256(exported(policy, {})) == meaning_sha256(model)
    except (KeyError, TypeError, ValueError, IndexError, UnknownError) as error:
        raise ValueError(f"{path} is no policy of ours: {' '.join(str(error).split())[:200]}.") from error
    if not same or words["contract"].get("memory") != told_about_memory(policy):
        raise ValueError(f"{path} says that spota wrote it, but spota would write it otherwise: it was changed.")
    if fingerprint(policy) != papers.get("spota.policy_sha256"):
        raise ValueError(f"{path} was changed after it was written: its sha256 is that of another policy.")
    return policy


def _words_in(papers: dict[str, str], where: str) -> dict[str, Any]:
    """What the papers say about the policy, in the words of a policy file, and checked like one."""
    contract = parse_json(papers.get("spota.contract", "null"), f"the contract of {where}")
    words = {"format": 3, "kind": papers.get("spota.kind"), "contract": contract}
    memory = contract.get("memory") if isinstance(contract, dict) else None
    if words["kind"] == "Stacked" and isinstance(memory, dict):
        words |= {"memory": memory.get("observations"), "stride": memory.get("stride")}
    words["sha256"] = papers.get("spota.policy_sha256")
    check(words, "policy file", where)
    return words


def _rebuilt(model: Any, words: dict[str, Any]) -> Stored:
    """The policy of the file's tensors, by the names that `onnx_export` gives them."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    layers = range(1, 1 + sum(name.startswith("weight_") for name in tensors))
    names = [f"{part}_{i}" for part in ("weight", "bias") for i in layers]
    first = {"Linear": ["gains"], "Recurrent": ["cell", "cell_bias", "cell_share"]}.get(words["kind"], [])
    return assembled(words, [array_of(tensors[name]) for name in first + names], Contract.from_dict(words["contract"]))
