"""Is a run as it was written? Checksums are compared, and the certificates are computed again from their blocks.

This is about integrity, not about origin: it finds what was edited, exchanged or damaged afterwards. Someone who writes
a whole run anew, with checksums that fit, is not found out; run it again with its config.toml to see for yourself.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from spota import policies
from spota.certify.algorithm import spota
from spota.certify.assessment import assess_policy
from spota.certify.certificate import FORMAT, OLDER, Certificate, differing, table_sha256
from spota.certify.procedure import Memo
from spota.certify.verdict import challenged
from spota.files.blocks import Arrays, content_sha256, read_block, to_arrays
from spota.files.documents import check_format, parse_json, read_json
from spota.policies import fingerprint
from spota.runs import config, plan
from spota.runs.directory import AS_MADE, CONFIG, edited_config, fingerprint_of
from spota.runs.platforms import planned, refuse_code_inside
from spota.sim.env import Platform, Policy
from spota.stats.split import gap_at_least

TOLERANCE = 1e-5
"""Relative: on another machine the last digits of a sum may differ."""


@dataclass(frozen=True)
class Verification:
    """What a look at all files of a run has shown, in words."""

    checked: list[str] = field(default_factory=list)
    """What is as it was written."""
    wrong: list[str] = field(default_factory=list)
    """What is not."""
    skipped: list[str] = field(default_factory=list)
    """What could not be looked at, and why."""

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    def note(self, what: str, wrong: list[str]) -> None:
        """Something was looked at; it is wrong if there are words about it."""
        if wrong:
            self.wrong.extend(wrong)
        else:
            self.checked.append(what)


def verify(directory: str | Path) -> Verification:
    """Look at everything that a run has written."""
    directory, found = Path(directory), Verification()
    settings = _settings(directory)
    found.note(CONFIG, [f"{CONFIG} was edited: {edit}." for edit in edited_config(directory, settings)])
    original = settings if (copy := _copy(directory)) is None else copy
    blocks = _blocks(directory, fingerprint_of(original), found)
    certificates = _certificates(blocks, found)
    _compare_files(directory, certificates, found)
    for name, certificate in certificates.items():
        _compare_hashes(name, certificate, blocks, found)
    kept = min(certificates.values(), key=lambda c: c.ucbog, default=None)
    _compare_policy(directory, kept, blocks, found)
    if certificates:
        _compute_again(directory, blocks, found)
    return found


def _settings(directory: Path) -> dict[str, Any]:
    if not (directory / CONFIG).is_file():
        raise ValueError(f"{directory} is not a run directory, because it has no {CONFIG}; write spota verify RUN.")
    return config.read_toml(directory / CONFIG)


def _copy(directory: Path) -> dict[str, Any] | None:
    path = directory / AS_MADE
    return config.read_toml(path) if path.is_file() else None


def _blocks(directory: Path, run: str, found: Verification) -> dict[str, Arrays]:
    """All blocks whose own checksum is right, by name."""
    blocks: dict[str, Arrays] = {}
    wrong = []
    for path in sorted(directory.rglob("*.npz")):
        name = path.relative_to(directory).with_suffix("").as_posix()
        if name == "policy" or path.name.startswith("."):
            continue
        try:
            blocks[name] = read_block(path, name, run)
        except Exception as error:  # whatever strange bytes provoke
            wrong.append(f"{name}.npz is not as it was written: {' '.join(str(error).split())}.")
    found.note(f"{len(blocks)} blocks", wrong)
    return blocks


def _certificates(blocks: Mapping[str, Arrays], found: Verification) -> dict[str, Certificate]:
    """The last certificate of each iteration, from its blocks."""
    last: dict[str, Certificate] = {}
    for name, arrays in blocks.items():
        if "json" not in arrays:
            continue
        try:
            certificate = Certificate.from_json(str(arrays["json"]), f"{name}.npz")
        except ValueError as error:
            found.wrong.append(str(error))
            continue
        before = last.get(iteration := name.partition("/")[0])
        if before is None or certificate.look >= before.look:  # a challenger comes after its certificate
            last[iteration] = certificate
    return last


def _compare_files(directory: Path, certificates: Mapping[str, Certificate], found: Verification) -> None:
    """The files that people read, with the blocks that they come from."""
    files = {f"{name}/certificate.json": certificate for name, certificate in certificates.items()}
    if certificates:
        files["certificate.json"] = min(certificates.values(), key=lambda c: c.ucbog)
    if certificates and (directory / "result.json").is_file():
        files["result.json"] = files["certificate.json"]
    for name, certificate in files.items():
        try:
            document = read_json(directory / name)
            document = document["certificate"] if name == "result.json" else document
            edits = differing(Certificate.from_dict(document, name), certificate)
            found.note(name, [f"{name} was edited: {edit}." for edit in edits])
        except (OSError, ValueError, KeyError, TypeError) as error:
            found.wrong.append(f"{name} cannot be read: {error}")


def _compare_hashes(name: str, certificate: Certificate, blocks: Mapping[str, Arrays], found: Verification) -> None:
    """The hashes that a certificate names, with what is there."""
    if certificate.domain_sha256 is None:
        found.skipped.append(f"The certificate of {name} has an older format, which names no hashes.")
        return
    wrong = []
    if table_sha256(certificate.domain) != certificate.domain_sha256:
        wrong.append(f"{name}: the table of distributions is not the one that the certificate names.")
    for block, digest in certificate.blocks.items():
        if block not in blocks:
            wrong.append(f"{block}.npz, which the certificate of {name} rests on, is missing or damaged.")
        elif content_sha256(blocks[block]) != digest:
            wrong.append(f"{block}.npz is not the block that the certificate of {name} rests on.")
    found.note(f"the hashes in the certificate of {name}", wrong)


def _compare_policy(
    directory: Path, kept: Certificate | None, blocks: Mapping[str, Arrays], found: Verification
) -> None:
    """The policy, with the certificate or the training that it comes from."""
    path = directory / "policy.npz"
    if not path.is_file():
        found.skipped.append("The run keeps no policy.npz.")
        return
    try:
        policy = policies.load(path)
    except ValueError as error:
        found.wrong.append(f"policy.npz was edited or damaged: {error}")
        return
    same = None
    if kept is not None:
        same = fingerprint(policy) == kept.policy_sha256
    elif "solution" in blocks:
        same = _same_arrays(to_arrays(policy), blocks["solution"], "policy.")
    if same is not None:
        found.note("policy.npz", [] if same else ["policy.npz is another policy than the one that the run found."])


def _same_arrays(mine: Arrays, stored: Arrays, prefix: str) -> bool:
    return all(np.array_equal(array, stored.get(f"{prefix}{name}", np.nan)) for name, array in mine.items())


class _NotThereError(Exception):
    """The run has ended here, or a block is damaged."""


@dataclass
class _Replay:
    """A memo that gives the blocks as they are, but computes every certificate anew and compares."""

    blocks: Mapping[str, Arrays]
    env: Platform
    wrong: list[str] = field(default_factory=list)
    computed: Certificate | None = None

    def __call__(self, name: str, block: Callable[[], Arrays]) -> Arrays:
        """The block's arrays, which the procedure goes on with."""
        if name not in self.blocks:
            raise _NotThereError
        if name.endswith("/certificate"):
            self.computed = Certificate.from_json(str(block()["json"]), name)
            self._compare(name, self.computed)
        elif name.endswith("/challenger") and self.computed is not None:
            self._compare(name, self._challenged(name, self.computed))
        return self.blocks[name]

    def _compare(self, name: str, now: Certificate) -> None:
        then = Certificate.from_json(str(self.blocks[name]["json"]), name)
        edits = differing(then, replace(now, looks=then.looks), TOLERANCE)  # a run may have gone on with more looks
        self.wrong += [f"{name}.npz does not follow from the other blocks: {edit}." for edit in edits]

    def _challenged(self, name: str, certificate: Certificate) -> Certificate:
        mine = self.blocks[f"{name.partition('/')[0]}/performance"]["returns"]
        alpha, theirs = certificate.alpha + certificate.effort_alpha, self.blocks[name]["returns"]
        lower = gap_at_least(theirs, mine, self.env.min_return, self.env.max_return, alpha)
        return challenged(certificate, lower)


def _compute_again(directory: Path, blocks: Mapping[str, Arrays], found: Verification) -> None:
    """Let the procedure run once more on the blocks as they are."""
    try:
        refuse_code_inside(directory, _settings(directory))
        chosen = plan.resolve(directory / CONFIG, {})
        _refuse_other_platform(directory, chosen)
        env = planned(chosen, directory)
        _refuse_older_rules(blocks)
        replay = _Replay(blocks, env)
        with contextlib.suppress(_NotThereError):
            _replay(chosen, env, directory, replay)
    except (ValueError, KeyError) as error:
        found.skipped.append(f"The certificates were not computed again: {error}")
    else:
        found.note("the certificates, computed again from their blocks", replay.wrong)


def _refuse_older_rules(blocks: Mapping[str, Arrays]) -> None:
    written = {name: parse_json(str(arrays["json"]), name) for name, arrays in blocks.items() if "json" in arrays}
    formats = {check_format(one, (*OLDER, FORMAT), "certificate", name) for name, one in written.items()}
    if older := formats - {FORMAT}:
        raise ValueError(
            f"they have format {min(older)}, and this version, which writes format {FORMAT}, computes bounds by other "
            "rules."
        )


def _refuse_other_platform(directory: Path, chosen: plan.Plan) -> None:
    then = config.read_toml(directory / CONFIG).get("env_sha256")
    if then != chosen.env_sha256:
        raise ValueError(f"the code of {chosen.env} is another one than that of the run.")


def _replay(chosen: plan.Plan, env: Platform, directory: Path, memo: Memo) -> None:
    key = jax.random.key(chosen.seed)
    if chosen.algo == "spota":
        spota(key, env, chosen.candidate, chosen.spota, reference_solver=chosen.reference, memo=memo)
        return
    known = {name: policies.find(name, env) for name in chosen.against or ()}
    assess_policy(
        key, env, _assessed(chosen, env, directory), chosen.reference, chosen.spota,
        candidate_solver=chosen.candidate, against=known, memo=memo,
    )  # fmt: skip


def _assessed(chosen: plan.Plan, env: Platform, directory: Path) -> Policy:
    """The policy that was assessed: as the run keeps it or, if it is not a network, where it came from."""
    kept = directory / "policy.npz"
    return policies.find(kept if kept.is_file() else chosen.policy or "nothing", env)
