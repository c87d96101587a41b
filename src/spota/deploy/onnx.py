"""ONNX files that spota exported, run by onnxruntime: `observation` in, `action` in physical units out.

What a network remembers goes in and comes out, too, and is kept here from one step to the next.
"""

from pathlib import Path

import numpy as np

from spota.files.documents import parse_json
from spota.policies.contract import Contract

CONTRACT = "spota.contract"
"""The metadata that holds the contract as JSON."""
LIMIT = 64 * 2**20


class OnnxController:
    """A file's network, on one thread that does not spin."""

    def __init__(self, path: Path):
        """Load it; a file without our contract is refused, because nobody knows what its numbers mean."""
        try:
            import onnxruntime as ort
        except ImportError as error:
            raise ValueError("ONNX files need onnxruntime; install it with: pip install 'spota[onnx]'") from error
        if not path.is_file() or path.stat().st_size > LIMIT:
            raise ValueError(f"There is no ONNX file {path} of at most {LIMIT:,} bytes.")
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # whatever onnxruntime says of strange files
            raise ValueError(f"{path} is not an ONNX file that onnxruntime can run ({str(error)[:200]}).") from error
        self.papers: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        """What the file says about itself."""
        if CONTRACT not in self.papers:
            raise ValueError(f"{path} has no contract of spota; write it with spota export, or import it first.")
        told = parse_json(self.papers[CONTRACT], f"the contract of {path}")
        self.contract = Contract.from_dict(told)
        size = told.get("memory", {}).get("size", 0)
        self._check_sizes(path, size)
        self._seen = np.zeros((1, len(self.contract.observations)), np.float32)
        self._memory = np.zeros((1, size), np.float32)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        self._feed = {value.name: buffer for value, buffer in zip(inputs, (self._seen, self._memory), strict=False)}
        self._names = [value.name for value in outputs]

    def reset(self) -> None:
        """Remember nothing, as before the first step of an episode."""
        self._memory.fill(0.0)

    def __call__(self, observation: np.ndarray, into: np.ndarray) -> None:
        """Write the command for this observation, and remember."""
        self._seen[0] = observation
        action, *memory = map(np.asarray, self._session.run(self._names, self._feed))
        into[:] = action[0]
        if memory:
            self._memory[:] = memory[0]

    def _check_sizes(self, path: Path, memory: int) -> None:
        """Refuse a file whose inputs and outputs are not those of its contract, the memory last, if there is one."""
        for values, signals in (
            (self._session.get_inputs(), self.contract.observations),
            (self._session.get_outputs(), self.contract.actions),
        ):
            found, wanted = [value.shape[-1] for value in values], [len(signals), *([memory] if memory else [])]
            if found != wanted:
                names = ", ".join(value.name for value in values)
                raise ValueError(f"{path} has {names} of {found} numbers, but its contract has {wanted}.")
