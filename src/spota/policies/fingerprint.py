"""Which policy it is: a digest over all that decides what it does."""

import hashlib

from jaxtyping import PyTree

from spota.files.blocks import to_arrays
from spota.policies.stacked import Stacked


def fingerprint(policy: PyTree) -> str | None:
    """SHA-256 over the policy's kind, its contract, and its arrays with names, types and shapes.

    The contract is part of it because its ranges scale what the policy sees and does, and so are the pace of a stack
    and the graph of an imported network. None if the policy holds anything
    else than arrays.
    """
    arrays = to_arrays(policy)
    if not arrays or any(array.dtype == object for array in arrays.values()):
        return None
    digest = hashlib.sha256(type(policy).__name__.encode())
    if isinstance(policy, Stacked):
        digest.update(f"{policy.memory} × {policy.stride}".encode())
    if hasattr(policy, "contract"):
        digest.update(policy.contract.to_json().encode())
    digest.update(getattr(policy, "meaning", "").encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
