"""ONNX files that spota exported, run by onnxruntime: `observation` in, `action` in physical units out."""

from pathlib import Path

import numpy as np

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
        self.contract = Contract.from_json(self.papers[CONTRACT])
        self._check_signals(path)
        self._input = np.zeros((1, len(self.contract.observations)), np.float32)
        self._feed = {self._session.get_inputs()[0].name: self._input}
        self._names = [self._session.get_outputs()[0].name]

    def __call__(self, observation: np.ndarray, into: np.ndarray) -> None:
        """Write the command for this observation."""
        self._input[0] = observation
        into[:] = np.asarray(self._session.run(self._names, self._feed)[0])[0]

    def _check_signals(self, path: Path) -> None:
        shapes = [value[0].shape[-1] for value in (self._session.get_inputs(), self._session.get_outputs())]
        wanted = [len(self.contract.observations), len(self.contract.actions)]
        if any(isinstance(found, int) and found != want for found, want in zip(shapes, wanted, strict=True)):
            raise ValueError(f"{path} takes and gives {shapes} values, but its contract has {wanted} signals.")
