"""Two jax devices, so that sharding is tested everywhere; broadcasting by accident is an error."""

import jax

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")
