"""Two jax devices, so that sharding is tested everywhere; broadcasting by accident is an error; a browser for pages.

The workers of a session and what they start share compiled programs, which nobody keeps after it: a program that ten
files need is compiled once, and still by this session.
"""

import atexit
import os
import shutil
import tempfile

import jax

from browser import browser, visit
from spota.sim import compiled

__all__ = ["browser", "visit"]

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit it
    os.environ[compiled.VARIABLE] = tempfile.mkdtemp(prefix="spota-programs-")
    atexit.register(shutil.rmtree, os.environ[compiled.VARIABLE], ignore_errors=True)
compiled.keep_programs()
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")
