"""`spota export`: a policy as an ONNX file, with its papers."""

from pathlib import Path
from typing import Annotated

import tyro

from spota.commands.output import command, console, print_json, say
from spota.commands.sources import contestants
from spota.runs import exporting, signing


def export(
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.onnx")],
    /,
    env: Annotated[
        str | None, tyro.conf.arg(metavar="ENV", help_behavior_hint="(default: what the policy was made for)")
    ] = None,
    key: Annotated[Path | None, tyro.conf.arg(metavar="KEY.pem", help_behavior_hint="(default: none)")] = None,
    json: bool = False,
) -> None:
    """Write a policy as an ONNX file that any runtime loads, with its contract and its certificate inside.

    The network takes `observation` [batch, d] and returns `action` [batch, a], both in physical units and float32, for
    any batch size. One with memory also takes `memory`, zeros at the beginning of an episode, and returns
    `memory_next`, which it takes in the next step. The metadata has the contract, the certificate of the run, five
    recorded rollouts and hashes, which `spota verify FILE.onnx` compares.

    Args:
        source: A run directory, a policy file, or a linear controller (lqr).
        file: The file to write.
        env: The platform of a controller.
        key: A private key of Ed25519 in PEM; the signature is written to FILE.onnx.sig.
        json: Print one JSON document instead of words.
    """
    platform, named = contestants([source], env)
    (policy,) = named.values()
    certificate = exporting.certificate_of(source, policy)
    written = exporting.export(policy, file, platform, certificate)
    signature = None if key is None else signing.sign(written, key)
    if json:
        about = {"file": str(written), "bytes": written.stat().st_size, "certificate": certificate is not None}
        print_json({**about, "signature": signature and str(signature)})
        return
    papers = "its contract and its certificate" if certificate else "its contract; it has no certificate"
    lines = [f"Wrote {written} ({written.stat().st_size} bytes) with {papers}."]
    lines += [] if signature is None else [f"Wrote its signature {signature}."]
    say("\n".join([*lines, f"{command('verify', written)} tells whether it was changed."]), console)
