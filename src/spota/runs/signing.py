"""Signatures beside a file, which prove its origin: Ed25519, by the package `cryptography`.

openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out public.pem
"""

from pathlib import Path
from typing import Any

from spota.files.atomic import write_atomically

ENDING = ".sig"
"""Behind the name of the file that is signed."""


def sign(path: Path, key: Path) -> Path:
    """Write the signature of a file with a private key in PEM."""
    signature = _key(key, private=True).sign(path.read_bytes())
    return write_atomically(signature_of(path), lambda file: file.write(signature))


def check_signature(path: Path, key: Path) -> str | None:
    """None if the signature beside the file is its own, by the owner of this public key in PEM; else why not."""
    public, beside = _key(key, private=False), signature_of(path)
    from cryptography.exceptions import InvalidSignature  # there it is: `_key` has used it

    if not beside.is_file():
        return f"There is no signature {beside}."
    if beside.stat().st_size != 64:
        return f"{beside} is no signature: it has {beside.stat().st_size} bytes instead of 64."
    try:
        public.verify(beside.read_bytes(), path.read_bytes())
    except InvalidSignature:
        return f"{beside} is not the signature of this file by the owner of {key}."
    return None


def signature_of(path: Path) -> Path:
    """Where the signature of a file is."""
    return path.with_name(path.name + ENDING)


def _key(path: Path, private: bool) -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ValueError("Signatures need the package cryptography: pip install 'spota[sign]'.") from error
    what = "a private" if private else "a public"
    if not path.is_file() or path.stat().st_size > 10_000:
        raise ValueError(f"{path} is not {what} key of Ed25519 in PEM.")
    text = path.read_bytes()
    try:
        key = serialization.load_pem_private_key(text, None) if private else serialization.load_pem_public_key(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is not {what} key of Ed25519 in PEM, or it has a password.") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey):
        raise ValueError(f"{path} is not {what} key of Ed25519: make one with openssl genpkey -algorithm ed25519.")
    return key
