"""What is exported from Stable-Baselines3, in an environment of its own: only where `make bench` has made it."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".bench-venv" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.skipif(
    not PYTHON.exists(), reason="torch and Stable-Baselines3 are in .bench-venv, which `make bench` makes"
)
def test_the_files_of_the_tests_are_made_again(tmp_path):
    ended = subprocess.run(
        [PYTHON, ROOT / "tests" / "data" / "make_onnx.py", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for path in (ROOT / "tests" / "data").glob("*.onnx"):
        assert (tmp_path / path.name).is_file()
