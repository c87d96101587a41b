"""Two jax devices, so that sharding is tested everywhere; broadcasting by accident is an error; a browser for pages."""

import os

import jax

from browser import browser, visit

__all__ = ["browser", "visit"]

os.environ["SPOTA_CACHE"] = "off"  # every test compiles what it runs
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")
