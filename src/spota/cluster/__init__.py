"""Problems and whole runs on the workers of a Ray cluster: the only room that knows Ray, and only `on_ray` imports it.

Nothing here imports jax before a worker has taken its cores, so this file stays empty.
"""
