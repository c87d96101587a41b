"""`spota verify`: whether a run, or an exported policy, is as it was written."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from spota.commands.output import console, print_json
from spota.commands.running import say
from spota.envs import PLATFORMS, make
from spota.runs import signing
from spota.runs.onnx_verification import platform_in, verify_file
from spota.runs.verification import Verification
from spota.runs.verification import verify as look_at
from spota.sim.env import Platform

EDITED = 1
"""The exit code if something is not as it was written."""
NOT_ORIGIN = "This proves that nothing was changed, not who wrote it; a signature and --key do."


def verify(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|FILE.onnx")],
    /,
    env: Annotated[str | None, tyro.conf.arg(metavar="ENV", help_behavior_hint="(default: the file's own)")] = None,
    key: Annotated[Path | None, tyro.conf.arg(metavar="PUBLIC.pem", help_behavior_hint="(default: none)")] = None,
    json: bool = False,
) -> None:
    """Find out whether a run, or an exported policy, was edited, exchanged or damaged after it was written.

    Of a run all checksums are compared: of the settings, the blocks, the policy, the table of distributions, and the
    certificates with the blocks that they come from. Then the certificates are computed again from these blocks, which
    takes some seconds. Of an exported policy the hashes of network and papers are compared, contract, certificate and
    policy must belong together, onnxruntime must do what spota does, and the recorded rollouts are repeated. The exit
    code is 0 if everything fits, and 1 if not.

    It is a test of integrity, not of origin: someone who writes a whole run anew is not found out. A signature beside
    an exported policy, made with `spota export --key`, proves its origin, too.

    Args:
        run: A run directory, or an ONNX file of `spota export`.
        env: The platform of an exported policy, if it is one of your own: FILE.py:NAME.
        key: The public key in PEM of whom the signature FILE.onnx.sig must be.
        json: Print one JSON document instead of words.
    """
    if run.suffix == ".onnx":
        found = verify_file(run, _platform(run, env))
    elif env is not None or key is not None:
        raise ValueError(f"--env and --key are for exported policies, and {run} is none.")
    else:
        found = look_at(run)
    if key is not None:
        wrong = signing.check_signature(run, key)
        found.note(f"the signature, by the owner of {key}", [] if wrong is None else [wrong])
    if json:
        figures = {"checked": found.checked, "wrong": found.wrong, "skipped": found.skipped}
        print_json({"run": str(run), "intact": found.intact, **figures})
    else:
        say(_words(run, found, signed=key is not None), console)
    if not found.intact:
        sys.exit(EDITED)


def _platform(file: Path, env: str | None) -> Platform | None:
    """The given platform, or the one of ours that a file names; a file's word executes nothing."""
    if env is not None:
        return make(env)
    named = platform_in(file)
    return make(named) if named in PLATFORMS else None


def _words(run: Path, found: Verification, signed: bool) -> str:
    lines = [*found.wrong, *found.skipped]
    lines += [f"As written: {', '.join(found.checked)}."] if found.checked else []
    if not found.intact:
        return "\n".join([*lines, f"{run} was changed: do not rely on its certificate."])
    origin = f" {NOT_ORIGIN}" if run.suffix == ".onnx" and not signed else ""
    return "\n".join([*lines, f"{run} is as it was written.{origin}"])
